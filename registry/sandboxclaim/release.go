package sandboxclaim

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/validation"
	"github.com/altairalabs/omnia-sandboxes/registry/refusal"
)

// ReleaseREST serves sandboxclaims/{name}/release: the conversation has ended.
type ReleaseREST struct {
	claims  *claims
	callers *callers
}

var _ rest.NamedCreater = &ReleaseREST{}

// New gives an empty body.
func (*ReleaseREST) New() runtime.Object { return &sandbox.SandboxRelease{} }

// Destroy does nothing: the store is the claims' own, which destroys it.
func (*ReleaseREST) Destroy() {}

// Create releases the named claim, or with - the session's claims. It is idempotent: nothing to release is success.
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
	if body.Spec.Cancel {
		return nil, refusal.NotYetSupported("sandboxclaims", name, "spec.cancel", "a release deletes at once, so there is none to withdraw; acquire again")
	}
	if admit != nil {
		if err := admit(ctx, body.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	claims, err := r.find(ctx, name, body)
	if err != nil {
		return nil, err
	}
	body.Status = sandbox.SandboxReleaseStatus{}
	if len(claims) > 0 {
		audit.AddAuditAnnotation(ctx, auditClaim, namesOf(claims))
	}
	for i := range claims {
		released, err := r.release(ctx, &claims[i], dryrun.IsDryRun(options.DryRun))
		if err != nil {
			return nil, err
		}
		if released != nil {
			body.Status.Claims = append(body.Status.Claims, *released)
		}
	}
	body.ManagedFields = nil
	return body, nil
}

// find gives the claims that the call is about, to a caller who speaks for their runtime.
func (r *ReleaseREST) find(ctx context.Context, name string, body *sandbox.SandboxRelease) ([]sandbox.SandboxClaim, error) {
	if name == v1alpha1.AnyClaim {
		if _, err := r.callers.speaksFor(ctx, request.NamespaceValue(ctx), body.Spec.AgentRuntime); err != nil {
			return nil, err
		}
		return r.claims.bySession(ctx, body.Spec.AgentRuntime, body.Spec.SessionID)
	}
	claim, _, err := namedClaim(ctx, r.claims, r.callers, name, body.Spec.UID)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []sandbox.SandboxClaim{*claim}, nil
}

func namesOf(claims []sandbox.SandboxClaim) string {
	names := make([]string, len(claims))
	for i := range claims {
		names[i] = claims[i].Name
	}
	return strings.Join(names, ",")
}

// release deletes a claim that is live; a Failed one is left to whoever looks at it, a terminating one is gone already.
func (r *ReleaseREST) release(ctx context.Context, claim *sandbox.SandboxClaim, dryRun bool) (*sandbox.ReleasedClaim, error) {
	if usable(claim) != nil {
		return nil, nil //nolint:nilerr // there is nothing to release, which is success
	}
	if !dryRun {
		err := r.claims.deleteAnyVersion(ctx, claim)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil, nil // gone meanwhile, or another claim of this name by now
		}
		if err != nil {
			return nil, fmt.Errorf("releasing claim %s: %w", claim.Name, err)
		}
	}
	return &sandbox.ReleasedClaim{Name: claim.Name, UID: claim.UID, Deleted: true}, nil
}
