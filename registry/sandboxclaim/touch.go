package sandboxclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

// TouchREST serves sandboxclaims/{name}/touch: the sandbox is in use.
type TouchREST struct {
	claims  *claims
	callers *callers
}

var _ rest.NamedCreater = &TouchREST{}

// New gives an empty body.
func (*TouchREST) New() runtime.Object { return &sandbox.SandboxTouch{} }

// Destroy does nothing: the store is the claims' own, which destroys it.
func (*TouchREST) Destroy() {}

// Create touches the named claim.
func (r *TouchREST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	body, ok := obj.(*sandbox.SandboxTouch)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is a %T: send a SandboxTouch", obj))
	}
	if err := checkName("SandboxTouch", body.Name, name); err != nil {
		return nil, err
	}
	if name == v1alpha1.AnyClaim {
		return nil, apierrors.NewBadRequest("touch renews one claim: put its name (status.claimName of the acquire) in the URL")
	}
	if admit != nil {
		if err := admit(ctx, body.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	claim, owner, err := namedClaim(ctx, r.claims, r.callers, name, body.Spec.UID)
	if err != nil {
		return nil, err
	}
	if owner == nil {
		return nil, noSuchRuntime(runtimeOf(claim))
	}
	if !dryrun.IsDryRun(options.DryRun) {
		if claim, err = r.claims.use(ctx, claim, owner.IdleTimeout()); err != nil {
			return nil, err
		}
	} else if err := usable(claim); err != nil {
		return nil, err
	}
	body.Status = sandbox.SandboxTouchStatus{ClaimUID: claim.UID, Phase: claim.Status.Phase, LastUsedAt: claim.Status.LastUsedAt}
	body.ManagedFields = nil
	return body, nil
}

// namedClaim reads a claim for a caller who speaks for its runtime, and that runtime; nil if the runtime is gone. An
// unknown and a foreign claim look alike to whoever may not get claims.
func namedClaim(ctx context.Context, store *claims, callers *callers, name string, uid types.UID) (*sandbox.SandboxClaim, *omniav1alpha1.AgentRuntime, error) {
	claim, err := store.get(ctx, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, err
	}
	if err == nil && runtimeOf(claim) != "" {
		owner, refused := callers.speaksForWhatIsLeft(ctx, claim.Namespace, runtimeOf(claim))
		switch {
		case refused == nil:
			if uid != "" && uid != claim.UID {
				return nil, nil, anotherClaim(name)
			}
			return claim, owner, nil
		case !apierrors.IsForbidden(refused):
			return nil, nil, refused
		}
	}
	may, authErr := callers.mayGetClaims(ctx, request.NamespaceValue(ctx), name)
	switch {
	case authErr != nil:
		return nil, nil, authErr
	case may && err != nil:
		return nil, nil, err
	}
	return nil, nil, foreignOrUnknown(name)
}

// usable refuses a use of a claim whose sandbox is gone or going.
func usable(claim *sandbox.SandboxClaim) error {
	switch {
	case claim.DeletionTimestamp != nil:
		return apierrors.NewConflict(sandbox.Resource("sandboxclaims"), claim.Name, errors.New("the claim is being deleted: acquire again"))
	case claim.Status.Phase == sandbox.PhaseFailed, claim.Status.Phase == sandbox.PhaseCompleted:
		return apierrors.NewConflict(sandbox.Resource("sandboxclaims"), claim.Name, fmt.Errorf("the claim is %s: acquire again", claim.Status.Phase))
	}
	return nil
}

// use records a use of the claim, where that is worth a write: it renews lastUsedAt and withdraws a scheduled release.
func (c *claims) use(ctx context.Context, claim *sandbox.SandboxClaim, idleTimeout time.Duration) (*sandbox.SandboxClaim, error) {
	if err := usable(claim); err != nil {
		return nil, err
	}
	now := c.clock.Now()
	if !lifecycle.UseIsWritten(claim.Status.LastUsedAt, claim.Status.ReleaseAt, idleTimeout, now) {
		return claim, nil
	}
	cancelled := false
	used, err := c.updateStatus(ctx, claim, func(fresh *sandbox.SandboxClaim) (bool, error) {
		if err := usable(fresh); err != nil {
			return false, err
		}
		cancelled = fresh.Status.ReleaseAt != nil
		if !lifecycle.UseIsWritten(fresh.Status.LastUsedAt, fresh.Status.ReleaseAt, idleTimeout, now) {
			return false, nil
		}
		markUsed(fresh, now)
		return true, nil
	})
	if err == nil && cancelled {
		releases.WithLabelValues(causeCancelled).Inc()
	}
	return used, err
}

// markUsed makes a claim one that was used now, whose conversation therefore goes on.
func markUsed(claim *sandbox.SandboxClaim, now time.Time) {
	claim.Status.LastUsedAt = &metav1.MicroTime{Time: now}
	claim.Status.ReleaseAt = nil
}
