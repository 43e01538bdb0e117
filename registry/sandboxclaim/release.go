package sandboxclaim

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/validation"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

// ReleaseREST serves sandboxclaims/{name}/release: the conversation has ended, or goes on after all.
type ReleaseREST struct {
	claims  *claims
	callers *callers
	clock   clock.PassiveClock
}

var _ rest.NamedCreater = &ReleaseREST{}

// New gives an empty body.
func (*ReleaseREST) New() runtime.Object { return &sandbox.SandboxRelease{} }

// Destroy does nothing: the store is the claims' own, which destroys it.
func (*ReleaseREST) Destroy() {}

// Create releases the named claim, or with - the session's claims, or withdraws their release. It is idempotent: nothing
// to release is success.
func (r *ReleaseREST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	body, ok := obj.(*sandbox.SandboxRelease)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is a %T: send a SandboxRelease", obj))
	}
	if err := checkName("SandboxRelease", body.Name, name); err != nil {
		return nil, err
	}
	anyClaim := name == v1alpha1.AnyClaim
	if errs := validation.ValidateSandboxRelease(body, anyClaim); len(errs) > 0 {
		return nil, apierrors.NewInvalid(sandbox.Kind("SandboxRelease"), name, errs)
	}
	if admit != nil {
		if err := admit(ctx, body.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	claims, owner, err := r.find(ctx, name, body)
	if err != nil {
		return nil, err
	}
	body.Status = sandbox.SandboxReleaseStatus{}
	if len(claims) > 0 {
		audit.AddAuditAnnotation(ctx, auditClaim, namesOf(claims))
	}
	dryRun := dryrun.IsDryRun(options.DryRun)
	for i := range claims {
		var done *sandbox.ReleasedClaim
		if body.Spec.Cancel {
			done, err = r.cancel(ctx, &claims[i], dryRun)
		} else {
			done, err = r.release(ctx, &claims[i], owner, dryRun)
		}
		if err != nil {
			return nil, err
		}
		if done != nil {
			body.Status.Claims = append(body.Status.Claims, *done)
		}
	}
	body.ManagedFields = nil
	return body, nil
}

// find gives the claims that the call is about, to a caller who speaks for their runtime, and that runtime. It is nil if it
// is gone: whoever may speak for it still lets go of what it left behind.
func (r *ReleaseREST) find(ctx context.Context, name string, body *sandbox.SandboxRelease) ([]sandbox.SandboxClaim, *omniav1alpha1.AgentRuntime, error) {
	if name == v1alpha1.AnyClaim {
		owner, err := r.callers.speaksForWhatIsLeft(ctx, request.NamespaceValue(ctx), body.Spec.AgentRuntime)
		if err != nil {
			return nil, nil, err
		}
		claims, err := r.claims.bySession(ctx, body.Spec.AgentRuntime, body.Spec.SessionID)
		return claims, owner, err
	}
	claim, owner, err := namedClaim(ctx, r.claims, r.callers, name, body.Spec.UID)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return []sandbox.SandboxClaim{*claim}, owner, nil
}

func namesOf(claims []sandbox.SandboxClaim) string {
	names := make([]string, len(claims))
	for i := range claims {
		names[i] = claims[i].Name
	}
	return strings.Join(names, ",")
}

// release carries out what the end of its conversation makes of a claim, and gives nil if that is nothing. A claim that
// changed under it is read and decided on again: it may just have become Bound, or been used.
func (r *ReleaseREST) release(ctx context.Context, claim *sandbox.SandboxClaim, owner *omniav1alpha1.AgentRuntime, dryRun bool) (*sandbox.ReleasedClaim, error) {
	for uid := claim.UID; claim.UID == uid; {
		due := lifecycle.Release(versionedClaim(claim), owner, r.clock.Now())
		if due == (lifecycle.Released{}) {
			return nil, nil
		}
		done := &sandbox.ReleasedClaim{Name: claim.Name, UID: uid, ReleaseAt: due.At, Deleted: due.Delete}
		if dryRun {
			return done, nil
		}
		err := r.carryOut(ctx, claim, due)
		if err == nil {
			return done, nil
		}
		if apierrors.IsConflict(err) {
			claim, err = r.claims.get(ctx, claim.Name)
		}
		if apierrors.IsNotFound(err) {
			return nil, nil // gone meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("releasing claim %s: %w", done.Name, err)
		}
	}
	return nil, nil // another claim of this name by now
}

// carryOut writes what was decided, if the claim is still as it was then; a conflict otherwise.
func (r *ReleaseREST) carryOut(ctx context.Context, claim *sandbox.SandboxClaim, due lifecycle.Released) error {
	switch {
	case due.Delete:
		if err := r.claims.delete(ctx, claim); err != nil {
			return err
		}
		releases.WithLabelValues(causeAtOnce).Inc()
	case claim.Status.ReleaseAt == nil:
		_, err := r.claims.updateStatus(ctx, claim, func(fresh *sandbox.SandboxClaim) (bool, error) {
			if fresh.ResourceVersion != claim.ResourceVersion {
				return false, changedMeanwhile(claim.Name)
			}
			fresh.Status.ReleaseAt = due.At
			return true, nil
		})
		if err != nil {
			return err
		}
		releases.WithLabelValues(causeScheduled).Inc()
	}
	return nil
}

// onlyReleased is a throttle within which only a scheduled release makes a use worth a write.
const onlyReleased = time.Duration(math.MaxInt64)

// cancel withdraws a claim's release, and gives nil if the claim has ended. A claim without one is left as it is.
func (r *ReleaseREST) cancel(ctx context.Context, claim *sandbox.SandboxClaim, dryRun bool) (*sandbox.ReleasedClaim, error) {
	err := usable(claim)
	if err == nil && claim.Status.ReleaseAt != nil && !dryRun {
		_, err = r.claims.use(ctx, claim, onlyReleased)
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("withdrawing the release of claim %s: %w", claim.Name, err)
	}
	return &sandbox.ReleasedClaim{Name: claim.Name, UID: claim.UID}, nil
}
