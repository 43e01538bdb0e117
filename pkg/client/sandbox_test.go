package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned/fake"
)

var (
	claims      = v1alpha1.Resource("sandboxclaims")
	notFound    = apierrors.NewNotFound(claims, "a")
	forbidden   = apierrors.NewForbidden(claims, "a", errors.New("no such claim, or not yours"))
	another     = apierrors.NewConflict(claims, "a", errors.New("another one by now"))
	unavailable = apierrors.NewServiceUnavailable("restarting")
	notServed   = apierrors.NewGenericServerResponse(404, "post", claims, "a", "404 page not found", 0, true)
)

// acting gives a sandbox whose touches and releases are answered by answers in turn, the last of which stands, and what
// was asked of the server. A release by session tells of the claims in session.
func acting(t *testing.T, session []types.UID, answers ...error) (*Sandbox, *jumping, *[]clienttesting.CreateActionImpl) {
	t.Helper()
	set := fake.NewSimpleClientset()
	var asked []clienttesting.CreateActionImpl
	set.PrependReactor("create", "sandboxclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := answers[min(len(asked), len(answers)-1)]
		call, ok := action.(clienttesting.CreateActionImpl)
		require.True(t, ok)
		asked = append(asked, call)
		if action.GetSubresource() == "touch" {
			return true, &v1alpha1.SandboxTouch{}, err
		}
		answer := &v1alpha1.SandboxRelease{}
		if call.Name == v1alpha1.AnyClaim {
			for _, uid := range session {
				answer.Status.Claims = append(answer.Status.Claims, v1alpha1.ReleasedClaim{Name: "a", UID: uid})
			}
		}
		return true, answer, err
	})
	c := New(set.SandboxV1alpha1(), "ns")
	clk := newJumping()
	c.Clock = clk
	return &Sandbox{Namespace: "ns", Name: "a", UID: "u", client: c, runtime: "r", session: "s"}, clk, &asked
}

func TestTouch(t *testing.T) {
	for name, tt := range map[string]struct {
		answer error
		gone   bool
	}{
		"there: touched":                     {nil, false},
		"not found: gone":                    {notFound, true},
		"gone, and the server does not tell": {forbidden, true},
		"another by now: gone":               {another, true},
		"the server restarts: not gone":      {unavailable, false},
		"the group is not served: not gone":  {notServed, false},
		"no roles are known yet: not gone":   {noRoles("touch"), false},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, asked := acting(t, nil, tt.answer)
			err := s.Touch(t.Context())
			assert.EqualValues(t, "u", (*asked)[0].Object.(*v1alpha1.SandboxTouch).Spec.UID)
			var gone *GoneError
			assert.Equal(t, tt.gone, errors.As(err, &gone))
			require.ErrorIs(t, err, tt.answer)
		})
	}
}

func TestKeepAlive(t *testing.T) {
	s, clk, asked := acting(t, nil, nil, unavailable, notServed, nil, another)
	began := clk.Now()
	err := s.KeepAlive(t.Context(), time.Minute)
	var gone *GoneError
	require.ErrorAs(t, err, &gone)
	assert.Equal(t, "a", gone.Claim)
	assert.Len(t, *asked, 5, "what passes is tried again, what is gone ends it")
	assert.WithinDuration(t, began.Add(3*time.Minute), clk.Now(), 5*time.Second, "what passes is tried again before the next interval")
}

func TestKeepAliveRefusedByTheAuthorizer_TriedAgainForAMoment(t *testing.T) {
	s, _, asked := acting(t, nil, nil, noRoles("touch"), noRoles("touch"), nil, another)
	require.ErrorAs(t, s.KeepAlive(t.Context(), time.Minute), new(*GoneError))
	assert.Len(t, *asked, 5)

	refused := noRoles("touch")
	s, clk, _ := acting(t, nil, nil, refused)
	began := clk.Now()
	err := s.KeepAlive(t.Context(), time.Minute)
	require.ErrorIs(t, err, refused)
	assert.NotErrorAs(t, err, new(*GoneError))
	assert.Less(t, clk.Now().Sub(began), 2*time.Minute+2*doubtGrace, "two intervals, and the doubt")
}

func TestKeepAliveEndsWithItsContext(t *testing.T) {
	s, _, asked := acting(t, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, s.KeepAlive(ctx, 0))
	assert.Empty(t, *asked)
}

func TestRelease(t *testing.T) {
	tests := map[string]struct {
		answers []error
		session []types.UID
		asked   int
		err     error
	}{
		"there: released":                                   {[]error{nil}, nil, 1, nil},
		"not found: is released":                            {[]error{notFound}, nil, 1, nil},
		"another by now: ours is released":                  {[]error{another}, nil, 1, nil},
		"the server restarts: the caller's to try again":    {[]error{unavailable}, nil, 1, unavailable},
		"the group is not served: likewise":                 {[]error{notServed}, nil, 1, notServed},
		"forbidden, not in the session: is released":        {[]error{forbidden, nil}, nil, 2, nil},
		"forbidden, another in the session: ours is":        {[]error{forbidden, nil}, []types.UID{"v"}, 2, nil},
		"forbidden, in the session: refused":                {[]error{forbidden, nil}, []types.UID{"u", "v"}, 2, forbidden},
		"forbidden, the session too: refused":               {[]error{forbidden, forbidden}, nil, 2, forbidden},
		"forbidden, the session is not known now: told":     {[]error{forbidden, unavailable}, nil, 2, unavailable},
		"forbidden, a dry run is not allowed here: refused": {[]error{forbidden, apierrors.NewBadRequest("no dry run")}, nil, 2, forbidden},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, _, asked := acting(t, tt.session, tt.answers...)
			err := s.Release(t.Context())
			require.ErrorIs(t, err, tt.err)
			require.Len(t, *asked, tt.asked)
			assert.Equal(t, v1alpha1.SandboxReleaseSpec{UID: "u"}, (*asked)[0].Object.(*v1alpha1.SandboxRelease).Spec)
			for _, look := range (*asked)[1:] {
				assert.Equal(t, []string{metav1.DryRunAll}, look.CreateOptions.DryRun, "it only looks")
				assert.Equal(t, v1alpha1.SandboxReleaseSpec{AgentRuntime: "r", SessionID: "s"}, look.Object.(*v1alpha1.SandboxRelease).Spec)
			}
		})
	}
}

func TestReleaseOnlyLooksOnTheWire(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/sandboxclaims/a/release") {
			w.WriteHeader(http.StatusForbidden)
			assert.NoError(t, json.NewEncoder(w).Encode(forbidden.ErrStatus))
			return
		}
		assert.Equal(t, "/apis/sandbox.omnia/v1alpha1/namespaces/ns/sandboxclaims/-/release", r.URL.Path)
		assert.Equal(t, metav1.DryRunAll, r.URL.Query().Get("dryRun"))
		assert.NoError(t, json.NewEncoder(w).Encode(v1alpha1.SandboxRelease{}))
	}))
	t.Cleanup(server.Close)
	set, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	s := &Sandbox{Namespace: "ns", Name: "a", UID: "u", client: New(set.SandboxV1alpha1(), "ns"), runtime: "r", session: "s"}
	require.NoError(t, s.Release(t.Context()))
}
