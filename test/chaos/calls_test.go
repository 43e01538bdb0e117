package chaos

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

const (
	// atOnce is how long a call may take that waits for nothing, before it counts as not answered.
	atOnce = 10 * time.Second
	// patience is how long an acquire of a new sandbox may wait.
	patience = v1alpha1.MaxWaitSeconds * time.Second
	// askAgain is how soon what failed is asked again.
	askAgain = 50 * time.Millisecond
)

// caller is a runtime's own ServiceAccount, through the aggregator. Each call is made once: client-go's own repetitions, on
// whose account nobody would see what was refused, are off.
type caller struct {
	rest      rest.Interface
	namespace string
	runtime   string
}

func (c *caller) post(ctx context.Context, timeout time.Duration, claim, verb string, body, answer runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.rest.Post().Namespace(c.namespace).Resource("sandboxclaims").Name(claim).SubResource(verb).
		MaxRetries(0).Body(body).Do(ctx).Into(answer)
}

func (c *caller) acquire(ctx context.Context, key judge.Key, lasts time.Duration) (*v1alpha1.SandboxAcquireStatus, error) {
	body := framework.MakeAcquire(key.Runtime, key.Session, key.Handle)
	body.Spec.WaitSeconds = ptr.To(int32(lasts / time.Second))
	answer := &v1alpha1.SandboxAcquire{}
	err := c.post(ctx, lasts+atOnce, v1alpha1.AnyClaim, "acquire", body, answer)
	return &answer.Status, err
}

func (c *caller) touch(ctx context.Context, claim *v1alpha1.SandboxAcquireStatus) error {
	body := &v1alpha1.SandboxTouch{Spec: v1alpha1.SandboxTouchSpec{UID: claim.ClaimUID}}
	return c.post(ctx, atOnce, claim.ClaimName, "touch", body, &v1alpha1.SandboxTouch{})
}

func (c *caller) release(ctx context.Context, session string) error {
	body := &v1alpha1.SandboxRelease{Spec: v1alpha1.SandboxReleaseSpec{AgentRuntime: c.runtime, SessionID: session}}
	return c.post(ctx, atOnce, v1alpha1.AnyClaim, "release", body, &v1alpha1.SandboxRelease{})
}

// outcome is what became of a call.
type outcome int

const (
	// served: it was answered as it should be.
	served outcome = iota
	// unserved: the servers did not answer, or not yet with what was asked for.
	unserved
	// unheard: kube-apiserver did not let it through to the servers.
	unheard
	// refused: the servers said no for good, which they never should here.
	refused
)

var never = []func(error) bool{
	v1alpha1.IsSandboxesDisabled, v1alpha1.IsMaxPerSession, v1alpha1.IsMaxInstances, v1alpha1.IsUnknownSandbox,
	v1alpha1.IsSandboxEnded, v1alpha1.IsSandboxFailed, v1alpha1.IsDeclarationMismatch, v1alpha1.IsNotYetSupported,
}

// judged tells apart whose the failure of a call is. kube-apiserver is the first to be reached: where it is gone there is no
// answer, and while it starts, or no longer knows our group, it refuses everybody: 401, 403, 404.
func judged(err error) outcome {
	if err == nil {
		return served
	}
	for _, is := range never {
		if is(err) {
			return refused
		}
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		if errors.Is(err, context.DeadlineExceeded) {
			return unserved // It was taken, and stayed without an answer.
		}
		return unheard
	}
	switch status.Status().Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		if !strings.Contains(err.Error(), "not yet ready") { // as the servers' own admission says
			return unheard
		}
	}
	return unserved
}

// ledger is what was asked for, by which a claim may go.
type ledger struct {
	mu       sync.Mutex
	released map[string]bool         // by runtime and session: somebody asked for its end
	cut      map[judge.Key]time.Time // when an acquire last ended without an answer
}

func newLedger() *ledger {
	return &ledger{released: map[string]bool{}, cut: map[judge.Key]time.Time{}}
}

func (l *ledger) release(key judge.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released[key.Runtime+"/"+key.Session] = true
}

func (l *ledger) wasReleased(key judge.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.released[key.Runtime+"/"+key.Session]
}

func (l *ledger) cutOff(key judge.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[key] = time.Now()
}

// withdrawn says whether a claim that waited may have been given up: its caller was cut off, or its wait ran out.
func (l *ledger) withdrawn(claim *judge.Claim) bool {
	status := &claim.Status
	if status.Wait == nil || claim.Admitted() || status.Phase != "" && status.Phase != v1alpha1.PhaseQueued {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ends := status.Wait.RenewTime.Add(time.Duration(status.Wait.DurationSeconds) * time.Second)
	return !l.cut[claim.Key()].IsZero() || time.Now().After(ends)
}

// account holds what becomes of claims against what was asked for.
type account struct {
	*ledger
	*judge.Events
}

func (a *account) changed(before, now *judge.Claim) {
	if now.Status.Phase == v1alpha1.PhaseFailed {
		a.Break(judge.Lost, string(now.UID), "claim %s failed: %s", now.Name, framework.Message(now.SandboxClaim))
	}
	if now.Status.ReleaseAt != nil && !a.wasReleased(now.Key()) {
		a.Break(judge.Lost, string(now.UID), "claim %s is to be released, and nobody asked for that: %s", now.Name, now)
	}
}

func (a *account) gone(claim *judge.Claim) {
	if !a.wasReleased(claim.Key()) && !a.withdrawn(claim) {
		a.Break(judge.Lost, string(claim.UID), "claim %s went without a cause: %s", claim.Name, claim)
	}
}
