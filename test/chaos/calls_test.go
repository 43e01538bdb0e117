package chaos

import (
	"context"
	"errors"
	"net/http"
	"strings"
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
