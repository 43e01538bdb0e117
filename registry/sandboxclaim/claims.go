package sandboxclaim

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// fieldManagerName owns what the server writes into a claim's status on a caller's behalf.
const fieldManagerName = "sandbox-apiserver"

// claims is the store as the actions use it: reads and writes that the API's own handlers would otherwise wrap in
// admission, field ownership and preconditions.
type claims struct {
	store, status *genericregistry.Store
	clock         clock.PassiveClock
	scheme        *runtime.Scheme
	admission     admission.Interface
	interfaces    admission.ObjectInterfaces
	// fields and statusFields are nil until TrackFields.
	fields, statusFields *managedfields.FieldManager
}

func (c *claims) newFieldManager(converter managedfields.TypeConverter, subresource string, reset rest.ResetFieldsStrategy) (*managedfields.FieldManager, error) {
	return managedfields.NewDefaultFieldManager(converter, runtime.UnsafeObjectConvertor(c.scheme), c.scheme, c.scheme,
		v1alpha1.SchemeGroupVersion.WithKind("SandboxClaim"), sandbox.SchemeGroupVersion, subresource,
		fieldpath.NewExcludeFilterSetMap(reset.GetResetFields()))
}

// asClaims gives the store a context in which the request is about claims: it reads the subresource from there.
func asClaims(ctx context.Context) context.Context {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || info.Subresource == "" {
		return ctx
	}
	own := *info
	own.Subresource = ""
	return request.WithRequestInfo(ctx, &own)
}

func (c *claims) get(ctx context.Context, name string) (*sandbox.SandboxClaim, error) {
	obj, err := c.store.Get(asClaims(ctx), name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*sandbox.SandboxClaim), nil
}

// bySession lists the claims that a runtime holds for a session.
func (c *claims) bySession(ctx context.Context, runtimeName, session string) ([]sandbox.SandboxClaim, error) {
	selector := fields.AndSelectors(
		fields.OneTermEqualSelector(sessionField, session),
		fields.OneTermEqualSelector("spec.agentRuntimeRef.name", runtimeName))
	obj, err := c.store.List(asClaims(ctx), &internalversion.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing the session's claims: %w", err)
	}
	return obj.(*sandbox.SandboxClaimList).Items, nil
}

// create makes a claim as acquire's own, through admission as if the caller had created it: mutating admission may add
// labels and annotations but not change the name, the owner or the spec, and validating admission sees the object that is stored.
func (c *claims) create(ctx context.Context, claim *sandbox.SandboxClaim, from origin, options *metav1.CreateOptions) (*sandbox.SandboxClaim, error) {
	ctx = asClaims(ctx)
	validate := rest.ValidateAllObjectFunc
	if c.fields != nil {
		claim = c.fields.UpdateNoErrors(&v1alpha1.SandboxClaim{TypeMeta: metav1.TypeMeta{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SandboxClaim"}}, claim, fieldManagerName).(*sandbox.SandboxClaim)
	}
	if c.admission != nil {
		user, _ := request.UserFrom(ctx)
		attributes := admission.NewAttributesRecord(claim, nil, v1alpha1.SchemeGroupVersion.WithKind("SandboxClaim"), claim.Namespace, claim.Name,
			v1alpha1.SchemeGroupVersion.WithResource("sandboxclaims"), "", admission.Create, options, dryrun.IsDryRun(options.DryRun), user)
		if err := c.mutate(ctx, claim, attributes); err != nil {
			return nil, err
		}
		validate = rest.AdmissionToValidateObjectFunc(c.admission, attributes, c.interfaces)
	}
	obj, err := c.store.Create(withOrigin(ctx, from), claim, validate, options)
	if err != nil {
		return nil, err
	}
	return obj.(*sandbox.SandboxClaim), nil
}

func (c *claims) mutate(ctx context.Context, claim *sandbox.SandboxClaim, attributes admission.Attributes) error {
	mutation, ok := c.admission.(admission.MutationInterface)
	if !ok || !mutation.Handles(admission.Create) {
		return nil
	}
	before := claim.DeepCopy()
	if err := mutation.Admit(ctx, attributes, c.interfaces); err != nil {
		return err
	}
	if claim.Name != before.Name || !apiequality.Semantic.DeepEqual(before.Spec, claim.Spec) ||
		!apiequality.Semantic.DeepEqual(before.OwnerReferences, claim.OwnerReferences) {
		return apierrors.NewForbidden(sandbox.Resource("sandboxclaims"), before.Name,
			errors.New("a mutating admission policy or webhook changed the name, the owner or the spec of an acquired claim: exempt sandboxclaims from it"))
	}
	return nil
}

// updateStatus changes the status of the claim with this UID, retrying on conflict. change gives false to leave it as it is.
func (c *claims) updateStatus(ctx context.Context, claim *sandbox.SandboxClaim, change func(*sandbox.SandboxClaim) (bool, error)) (*sandbox.SandboxClaim, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		next := old.DeepCopyObject().(*sandbox.SandboxClaim)
		if next.UID != claim.UID {
			return nil, anotherClaim(claim.Name)
		}
		changed, err := change(next)
		if err != nil || !changed || c.statusFields == nil {
			return next, err
		}
		return c.statusFields.UpdateNoErrors(old, next, fieldManagerName), nil
	})
	obj, _, err := c.status.Update(asClaims(ctx), claim.Name, info, nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*sandbox.SandboxClaim), nil
}

// delete removes the claim if it is still what was read. The controller removes its sandbox after it.
func (c *claims) delete(ctx context.Context, claim *sandbox.SandboxClaim) error {
	_, _, err := c.store.Delete(asClaims(ctx), claim.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: ptr.To(claim.UID), ResourceVersion: ptr.To(claim.ResourceVersion)},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	return err
}

// anotherClaim refuses because the name's claim is not the one that the caller knows.
func anotherClaim(name string) error {
	return apierrors.NewConflict(sandbox.Resource("sandboxclaims"), name,
		errors.New("the claim of this name is another one by now (its UID differs): acquire again"))
}

// changedMeanwhile refuses to act on a claim that is no longer what was decided about.
func changedMeanwhile(name string) error {
	return apierrors.NewConflict(sandbox.Resource("sandboxclaims"), name, errors.New("the claim changed meanwhile: ask again"))
}
