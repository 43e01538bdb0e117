package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned/fake"
)

// jumping is a clock on which a sleep takes no time and moves it on.
type jumping struct{ *clocktesting.FakeClock }

func newJumping() *jumping {
	return &jumping{clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
}

func (c *jumping) After(d time.Duration) <-chan time.Time {
	out := c.FakeClock.After(d)
	c.Step(d)
	return out
}

// dials answers dials in turn; the last answer stands.
type dials struct {
	answers []error
	count   int
}

func (d *dials) DialContext(context.Context, string, string) (net.Conn, error) {
	err := d.answers[min(d.count, len(d.answers)-1)]
	d.count++
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	_ = far.Close()
	return near, nil
}

type reply struct {
	status v1alpha1.SandboxAcquireStatus
	err    error
	takes  time.Duration
}

var (
	bound   = reply{status: v1alpha1.SandboxAcquireStatus{ClaimName: "a", ClaimUID: "u", Phase: v1alpha1.PhaseBound, Addresses: map[string]string{"mcp": "192.0.2.1:1"}}}
	waiting = reply{takes: 25 * time.Second, status: v1alpha1.SandboxAcquireStatus{ClaimName: "a", ClaimUID: "u", Phase: v1alpha1.PhasePending,
		Reason: v1alpha1.ReasonUnschedulable, Message: "0/3 nodes are available", Created: true, RetryAfterSeconds: 1}}
)

// serving gives a client of a server that answers acquires in turn; the last answer stands. It counts them.
func serving(t *testing.T, replies ...reply) (*Client, *jumping, *int) {
	t.Helper()
	clk := newJumping()
	set := fake.NewSimpleClientset()
	asked := new(int)
	set.PrependReactor("create", "sandboxclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "acquire" {
			return false, nil, nil
		}
		body := action.(clienttesting.CreateAction).GetObject().(*v1alpha1.SandboxAcquire)
		assert.LessOrEqual(t, *body.Spec.WaitSeconds, int32(v1alpha1.MaxWaitSeconds))
		assert.Positive(t, *body.Spec.WaitSeconds, "a caller who does not wait leaves a claim that is never withdrawn")
		r := replies[min(*asked, len(replies)-1)]
		*asked++
		clk.Step(r.takes)
		return true, &v1alpha1.SandboxAcquire{Status: r.status}, r.err
	})
	c := New(set.SandboxV1alpha1(), "ns")
	c.Clock, c.Dialer = clk, &dials{answers: []error{nil}}
	return c, clk, asked
}

var errUntrusted = errors.New("signed by an unknown authority")

var spec = v1alpha1.SandboxAcquireSpec{AgentRuntime: "r", SessionID: "s", Handle: "shell/default"}

func TestAcquire(t *testing.T) {
	unavailable := reply{err: apierrors.NewServiceUnavailable("restarting")}
	broken := reply{err: errors.New("connection refused")}
	unserved := reply{err: apierrors.NewGenericServerResponse(404, "post", v1alpha1.Resource("sandboxclaims"), "-", "404 page not found", 0, true)}
	gateway := reply{err: apierrors.NewGenericServerResponse(502, "post", v1alpha1.Resource("sandboxclaims"), "-", "bad gateway", 0, true)}
	reset := reply{err: &url.Error{Op: "Post", Err: syscall.ECONNRESET}}
	goAway := reply{err: &url.Error{Op: "Post", Err: errors.New("http2: server sent GOAWAY and closed the connection")}}
	refused := reply{err: &url.Error{Op: "Post", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}}
	unreached := reply{err: apierrors.NewGenericServerResponse(503, "post", v1alpha1.Resource("sandboxclaims"), "-", "error trying to reach service: EOF", 0, true)}
	slow := reply{err: apierrors.NewGenericServerResponse(504, "post", v1alpha1.Resource("sandboxclaims"), "-", "gateway timeout", 0, true)}
	unready := reply{err: apierrors.NewForbidden(v1alpha1.Resource("sandboxclaims"), "-", errors.New("not yet ready to handle request"))}
	tests := map[string]struct {
		replies []reply
		asked   int
		created bool
	}{
		"bound at once: returned":                           {[]reply{bound}, 1, false},
		"bound in the third piece: created is remembered":   {[]reply{waiting, waiting, bound}, 3, true},
		"the server restarts: asked again":                  {[]reply{unavailable, broken, bound}, 3, false},
		"the group is not served for a moment: asked again": {[]reply{unserved, bound}, 2, false},
		"an aggregator without a server: asked again":       {[]reply{gateway, {err: apierrors.NewInternalError(io.EOF)}, bound}, 3, false},
		"the connection breaks: asked again":                {[]reply{reset, goAway, {err: io.EOF}, bound}, 4, false},
		"nobody listens: asked again":                       {[]reply{refused, bound}, 2, false},
		"the aggregator reaches no replica: asked again":    {[]reply{unreached, bound}, 2, false},
		"a proxy's time is up: asked again":                 {[]reply{slow, {err: apierrors.NewTimeoutError("no answer", 0)}, bound}, 3, false},
		"etcd elects a leader: asked again":                 {[]reply{{err: apierrors.NewInternalError(errors.New("etcdserver: leader changed"))}, bound}, 2, false},
		"what is stored is not understood: asked again":     {[]reply{{err: apierrors.NewInternalError(errors.New("unable to decode"))}, bound}, 2, false},
		"admission is not ready: asked again":               {[]reply{unready, bound}, 2, false},
		"no roles are known yet: asked again":               {[]reply{{err: noRoles("acquire")}, {err: noRoles("acquire")}, bound}, 3, false},
		"too many waiters: asked again after what is said":  {[]reply{{err: apierrors.NewTooManyRequests("full", 7)}, bound}, 2, false},
		"the earlier claim is still ending: asked again":    {[]reply{{err: apierrors.NewServerTimeout(v1alpha1.Resource("sandboxclaims"), "acquire", 1)}, bound}, 2, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, _, asked := serving(t, tt.replies...)
			got, err := c.Acquire(t.Context(), spec)
			require.NoError(t, err)
			assert.Equal(t, tt.asked, *asked)
			assert.Equal(t, tt.created, got.Created)
			assert.Equal(t, "192.0.2.1:1", got.Addresses["mcp"])
		})
	}
}

// noRoles is what an API server answers to whom no role that it knows allows to use a subresource.
func noRoles(subresource string) error {
	return responsewriters.ForbiddenStatusError(authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "system:serviceaccount:ns:r-facade"}, Verb: "create", Namespace: "ns", Name: "-", ResourceRequest: true,
		APIGroup: v1alpha1.SchemeGroupVersion.Group, Resource: "sandboxclaims", Subresource: subresource,
	}, `RBAC: clusterrole.rbac.authorization.k8s.io "omnia-sandboxes:acquire" not found`)
}

func TestAcquireRefusedByTheAuthorizer_AskedAgainForAMoment(t *testing.T) {
	c, clk, asked := serving(t, reply{err: noRoles("acquire")})
	began := clk.Now()
	_, err := c.Acquire(t.Context(), spec)
	require.ErrorContains(t, err, "cannot create resource")
	assert.True(t, apierrors.IsForbidden(err))
	assert.Greater(t, *asked, 3)
	assert.GreaterOrEqual(t, clk.Now().Sub(began), doubtGrace)
	assert.Less(t, clk.Now().Sub(began), 2*doubtGrace)

	c, _, _ = serving(t, reply{err: noRoles("acquire")}, reply{takes: doubtGrace, err: unavailable}, reply{err: noRoles("acquire")}, bound)
	_, err = c.Acquire(t.Context(), spec)
	require.NoError(t, err, "another restart is doubted anew")
}

func TestAcquireWaitsAsLongAsTheServerSays(t *testing.T) {
	c, clk, _ := serving(t, reply{err: apierrors.NewTooManyRequests("full", 7)}, bound)
	began := clk.Now()
	_, err := c.Acquire(t.Context(), spec)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, clk.Now().Sub(began), 7*time.Second)
}

func TestAcquireRefused(t *testing.T) {
	refusal := func(code int32, reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: "it is refused"}}
	}
	resource := v1alpha1.Resource("sandboxclaims")
	for name, tt := range map[string]struct {
		err error
		is  func(error) bool
	}{
		"SandboxFailed":             {refusal(409, v1alpha1.StatusReasonSandboxFailed), v1alpha1.IsSandboxFailed},
		"SandboxEnded":              {refusal(410, v1alpha1.StatusReasonSandboxEnded), v1alpha1.IsSandboxEnded},
		"MaxPerSession":             {refusal(403, v1alpha1.StatusReasonMaxPerSession), v1alpha1.IsMaxPerSession},
		"UnknownSandbox":            {refusal(422, v1alpha1.StatusReasonUnknownSandbox), v1alpha1.IsUnknownSandbox},
		"forbidden":                 {apierrors.NewForbidden(resource, "-", errors.New("not yours")), apierrors.IsForbidden},
		"unauthorized":              {apierrors.NewUnauthorized("who are you"), apierrors.IsUnauthorized},
		"a proxy's 403":             {apierrors.NewGenericServerResponse(403, "post", resource, "-", "go away", 0, true), apierrors.IsForbidden},
		"no such runtime":           {apierrors.NewNotFound(v1alpha1.Resource("agentruntimes"), "r"), apierrors.IsNotFound},
		"an untrusted certificate":  {&url.Error{Err: &tls.CertificateVerificationError{Err: errUntrusted}}, func(err error) bool { return errors.Is(err, errUntrusted) }},
		"a server that speaks HTTP": {&url.Error{Err: tls.RecordHeaderError{Msg: "no TLS"}}, func(err error) bool { return errors.As(err, new(tls.RecordHeaderError)) }},
	} {
		t.Run(name+": given at once", func(t *testing.T) {
			c, _, asked := serving(t, reply{err: tt.err})
			_, err := c.Acquire(t.Context(), spec)
			assert.True(t, tt.is(err), "%v", err)
			assert.True(t, tt.is(fmt.Errorf("acquiring: %w", err)), "wrapped by its caller")
			assert.Equal(t, 1, *asked)
		})
	}
}

func TestAcquireDeadline(t *testing.T) {
	c, clk, asked := serving(t, waiting)
	began := clk.Now()
	_, err := c.Acquire(t.Context(), spec)
	var notReady *NotReadyError
	require.ErrorAs(t, err, &notReady)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Contains(t, err.Error(), "0/3 nodes are available", "it quotes the scheduler")
	assert.Equal(t, v1alpha1.ReasonUnschedulable, notReady.Reason)
	assert.Equal(t, clk.Now().Sub(began), notReady.Waited)
	assert.Equal(t, 7, *asked)
	assert.WithinDuration(t, began.Add(DefaultDeadline), clk.Now(), 30*time.Second)

	c, _, _ = serving(t, reply{err: errors.New("connection refused"), takes: time.Minute})
	_, err = c.Acquire(t.Context(), spec)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Contains(t, err.Error(), "connection refused")
}

func TestAcquireDeadlineAfterAFailedCall(t *testing.T) {
	c, _, _ := serving(t, waiting, reply{err: apierrors.NewServiceUnavailable("restarting"), takes: DefaultDeadline})
	_, err := c.Acquire(t.Context(), spec)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Contains(t, err.Error(), "0/3 nodes are available", "what the claim waits for is still told")
	assert.Contains(t, err.Error(), "restarting")
	assert.True(t, apierrors.IsServiceUnavailable(err))
}

func TestAcquireWithinItsContextsDeadline(t *testing.T) {
	c, clk, asked := serving(t, waiting)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := clk.Now()
	_, err := c.Acquire(ctx, spec)
	var notReady *NotReadyError
	require.ErrorAs(t, err, &notReady)
	assert.Contains(t, err.Error(), "0/3 nodes are available")
	assert.Equal(t, 3, *asked)
	assert.Less(t, clk.Now().Sub(began), 90*time.Second)
	require.NoError(t, ctx.Err(), "it answered before its caller left")

	ctx, cancel = context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, err = c.Acquire(ctx, spec)
	require.ErrorAs(t, err, &notReady)
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	c, _, _ := serving(t, waiting)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Acquire(ctx, spec)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAcquireWaitsForThePort(t *testing.T) {
	refused := errors.New("connection refused")
	c, _, _ := serving(t, bound)
	d := &dials{answers: []error{refused, refused, nil}}
	c.Dialer = d
	_, err := c.Acquire(t.Context(), spec)
	require.NoError(t, err)
	assert.Equal(t, 3, d.count)

	c, _, _ = serving(t, bound)
	c.Dialer = &dials{answers: []error{refused}}
	got, err := c.Acquire(t.Context(), spec)
	var unreachable *UnreachableError
	require.ErrorAs(t, err, &unreachable)
	require.ErrorIs(t, err, refused)
	assert.Nil(t, got)
	assert.Equal(t, "192.0.2.1:1", unreachable.Address)
	assert.Equal(t, "a", unreachable.Sandbox.Name, "it can still be released")
}

func TestAcquireGivesUpACallThatIsNeverAnswered(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			_, _ = io.Copy(io.Discard, r.Body) // Only then does the server see the caller hang up.
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(w).Encode(v1alpha1.SandboxAcquire{Status: bound.status}))
	}))
	t.Cleanup(server.Close)
	set, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	c := New(set.SandboxV1alpha1(), "ns")
	c.Clock, c.Dialer = newJumping(), &dials{answers: []error{nil}}
	c.Deadline, c.callSlack = time.Second, -950*time.Millisecond // Each call is given 50 ms.
	got, err := c.Acquire(t.Context(), spec)
	require.NoError(t, err)
	assert.Equal(t, "a", got.Name)
	assert.EqualValues(t, 2, asked.Load())
}

// outlasting answers acquires at once and notes by how much each call outlasts the wait that it asks for.
type outlasting struct {
	clock *jumping
	by    []time.Duration
}

func (o *outlasting) RoundTrip(r *http.Request) (*http.Response, error) {
	var body v1alpha1.SandboxAcquire
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	ends, _ := r.Context().Deadline()
	wait := time.Duration(*body.Spec.WaitSeconds) * time.Second
	o.by = append(o.by, time.Until(ends)-wait)
	o.clock.Step(wait)
	answer, err := json.Marshal(v1alpha1.SandboxAcquire{Status: waiting.status})
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(answer)), Request: r}, err
}

// A claim that is given up at the deadline is withdrawn by its lease: every call is answered, also the last, so the server
// never sees anybody hang up. It does when ctx is cancelled, and withdraws the claim then.
func TestAcquireDeadlineHangsUpOnNoCall(t *testing.T) {
	for _, deadline := range []time.Duration{DefaultDeadline, 1500 * time.Millisecond, time.Second, 10 * time.Millisecond} {
		server := &outlasting{clock: newJumping()}
		set, err := versioned.NewForConfig(&rest.Config{Host: "http://server.test", Transport: server})
		require.NoError(t, err)
		c := New(set.SandboxV1alpha1(), "ns")
		c.Clock, c.Deadline = server.clock, deadline
		_, err = c.Acquire(t.Context(), spec)
		var late *NotReadyError
		require.ErrorAs(t, err, &late)
		assert.Equal(t, "a", late.Claim)
		require.NoError(t, late.Last)
		require.NotEmpty(t, server.by)
		for _, slack := range server.by {
			assert.Greater(t, slack, 500*time.Millisecond, "time for the answer, after the wait (deadline %s)", deadline)
		}
	}
}
