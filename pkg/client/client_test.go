package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned/fake"
)

// jumping is a clock on which a sleep takes no time and moves it on.
type jumping struct {
	clock.RealClock
	mu  sync.Mutex
	now time.Time
}

func (c *jumping) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *jumping) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	out := make(chan time.Time, 1)
	out <- c.now
	return out
}

func (c *jumping) pass(d time.Duration) { c.After(d) }

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
	clk := &jumping{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
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
		clk.pass(r.takes)
		return true, &v1alpha1.SandboxAcquire{Status: r.status}, r.err
	})
	c := New(set.SandboxV1alpha1(), "ns")
	c.Clock, c.Dialer = clk, &dials{answers: []error{nil}}
	return c, clk, asked
}

var spec = v1alpha1.SandboxAcquireSpec{AgentRuntime: "r", SessionID: "s", Handle: "shell/default"}

func TestAcquire(t *testing.T) {
	unavailable := reply{err: apierrors.NewServiceUnavailable("restarting")}
	broken := reply{err: errors.New("connection refused")}
	unserved := reply{err: apierrors.NewGenericServerResponse(404, "post", v1alpha1.Resource("sandboxclaims"), "", "404 page not found", 0, true)}
	tests := map[string]struct {
		replies []reply
		asked   int
		created bool
	}{
		"bound at once: returned":                           {[]reply{bound}, 1, false},
		"bound in the third piece: created is remembered":   {[]reply{waiting, waiting, bound}, 3, true},
		"the server restarts: asked again":                  {[]reply{unavailable, broken, bound}, 3, false},
		"the group is not served for a moment: asked again": {[]reply{unserved, bound}, 2, false},
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

func TestAcquireWaitsAsLongAsTheServerSays(t *testing.T) {
	c, clk, _ := serving(t, reply{err: apierrors.NewTooManyRequests("full", 7)}, bound)
	began := clk.Now()
	_, err := c.Acquire(t.Context(), spec)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, clk.Now().Sub(began), 7*time.Second)
}

func TestAcquireRefused(t *testing.T) {
	refusal := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: v1alpha1.StatusReasonSandboxFailed, Message: "it failed"}}
	c, _, asked := serving(t, reply{err: refusal})
	_, err := c.Acquire(t.Context(), spec)
	assert.True(t, v1alpha1.IsSandboxFailed(err), "%v", err)
	assert.Equal(t, 1, *asked, "a refusal is not asked again")

	missing := apierrors.NewNotFound(v1alpha1.Resource("agentruntimes"), "r")
	c, _, asked = serving(t, reply{err: missing})
	_, err = c.Acquire(t.Context(), spec)
	assert.True(t, apierrors.IsNotFound(err))
	assert.Equal(t, 1, *asked)
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
	assert.Equal(t, 7, *asked)
	assert.WithinDuration(t, began.Add(DefaultDeadline), clk.Now(), 30*time.Second)

	c, _, _ = serving(t, reply{err: errors.New("connection refused"), takes: time.Minute})
	_, err = c.Acquire(t.Context(), spec)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Contains(t, err.Error(), "connection refused")
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
	c.Clock, c.Dialer = &jumping{}, &dials{answers: []error{nil}}
	c.Deadline, c.callSlack = time.Second, -950*time.Millisecond // Each call is given 50 ms.
	got, err := c.Acquire(t.Context(), spec)
	require.NoError(t, err)
	assert.Equal(t, "a", got.Name)
	assert.EqualValues(t, 2, asked.Load())
}

// acting gives a sandbox whose touch or release is answered with err, and what was asked of the server.
func acting(t *testing.T, errs ...error) (*Sandbox, *[]clienttesting.CreateAction) {
	t.Helper()
	set := fake.NewSimpleClientset()
	var asked []clienttesting.CreateAction
	set.PrependReactor("create", "sandboxclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := errs[min(len(asked), len(errs)-1)]
		asked = append(asked, action.(clienttesting.CreateAction))
		if action.GetSubresource() == "touch" {
			return true, &v1alpha1.SandboxTouch{}, err
		}
		return true, &v1alpha1.SandboxRelease{}, err
	})
	c := New(set.SandboxV1alpha1(), "ns")
	c.Clock = &jumping{}
	return &Sandbox{Namespace: "ns", Name: "a", UID: "u", client: c}, &asked
}

func TestTouchSendsTheUID(t *testing.T) {
	s, asked := acting(t, nil)
	require.NoError(t, s.Touch(t.Context()))
	assert.EqualValues(t, "u", (*asked)[0].GetObject().(*v1alpha1.SandboxTouch).Spec.UID)
}

func TestKeepAlive(t *testing.T) {
	another := apierrors.NewConflict(v1alpha1.Resource("sandboxclaims"), "a", errors.New("another one by now"))
	s, asked := acting(t, nil, apierrors.NewServiceUnavailable("restarting"), nil, another)
	err := s.KeepAlive(t.Context(), time.Minute)
	var gone *GoneError
	require.ErrorAs(t, err, &gone)
	assert.Len(t, *asked, 4, "what passes is tried again, what is gone ends it")
}

func TestRelease(t *testing.T) {
	resource := v1alpha1.Resource("sandboxclaims")
	for name, err := range map[string]error{
		"there: released":                    nil,
		"gone: is released":                  apierrors.NewNotFound(resource, "a"),
		"gone, and the server does not tell": apierrors.NewForbidden(resource, "a", errors.New("no such claim")),
		"another by now: ours is released":   apierrors.NewConflict(resource, "a", errors.New("another")),
	} {
		t.Run(name, func(t *testing.T) {
			s, asked := acting(t, err)
			require.NoError(t, s.Release(t.Context()))
			assert.EqualValues(t, "u", (*asked)[0].GetObject().(*v1alpha1.SandboxRelease).Spec.UID)
		})
	}
	s, _ := acting(t, apierrors.NewServiceUnavailable("restarting"))
	require.Error(t, s.Release(t.Context()), "what may pass is the caller's to try again")
}
