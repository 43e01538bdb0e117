package sandboxclaim

import (
	"context"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/validation"
)

// strategy holds the rules of a claim.
type strategy struct {
	rest.DeclarativeValidation // what the tags of v1alpha1 refuse, beside Validate and ValidateUpdate
	names.NameGenerator
	clock clock.PassiveClock
}

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}

	_ rest.RESTGracefulDeleteStrategy = strategy{}

	_ rest.DeclarativeValidationStrategy = strategy{}
	_ rest.DeclarativeValidationStrategy = statusStrategy{}
)

func (strategy) NamespaceScoped() bool { return true }

// GetResetFields says that a write of the claim does not write its status.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(fieldpath.MakePathOrDie("status"))
}

// PrepareForCreate clears the status, save what acquire gives it, and takes the claim's place in the queue.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	claim := obj.(*sandbox.SandboxClaim)
	now := s.clock.Now()
	claim.Generation = 1
	claim.Status = sandbox.SandboxClaimStatus{QueuedAt: &metav1.MicroTime{Time: now}}
	if o, ok := originOf(ctx); ok {
		claim.Status.Wait = o.wait
		claim.Status.Replaces = o.replaces
		claim.Status.Conditions = []metav1.Condition{provenance(claim.Generation, metav1.Time{Time: now})}
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateSandboxClaim(obj.(*sandbox.SandboxClaim))
}

// PrepareForUpdate keeps the status and moves the generation on a change of spec, which validation then refuses.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	claim, before := obj.(*sandbox.SandboxClaim), old.(*sandbox.SandboxClaim)
	claim.Status = before.Status
	claim.Generation = before.Generation
	if !apiequality.Semantic.DeepEqual(claim.Spec, before.Spec) {
		claim.Generation++
	}
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSandboxClaimUpdate(obj.(*sandbox.SandboxClaim), old.(*sandbox.SandboxClaim))
}

// WarningsOnCreate tells of the deprecated field.
func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if obj.(*sandbox.SandboxClaim).Spec.Mount != nil {
		return []string{"spec.mount: deprecated: use spec.mounts"}
	}
	return nil
}

func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
func (strategy) Canonicalize(runtime.Object)                   {}
func (strategy) AllowCreateOnUpdate(context.Context) bool      { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// CheckGracefulDelete has a claim wait for the controller where the deletion says what becomes of its sandbox: the garbage
// collector, whose work that is elsewhere, deletes no sandbox (pkg/sandbox.Keep). No deletion of a claim has a grace period.
func (strategy) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	claim := obj.(*sandbox.SandboxClaim)
	if claim.Status.SandboxName == "" {
		return false
	}
	finalizer := ""
	switch policy := ptr.Deref(options.PropagationPolicy, metav1.DeletePropagationBackground); {
	case policy == metav1.DeletePropagationForeground:
		finalizer = v1alpha1.FinalizerForeground
	case policy == metav1.DeletePropagationOrphan, ptr.Deref(options.OrphanDependents, false): //nolint:staticcheck // callers may still give it
		finalizer = v1alpha1.FinalizerOrphan
	default:
		return false
	}
	if !slices.Contains(claim.Finalizers, finalizer) {
		claim.Finalizers = append(claim.Finalizers, finalizer)
	}
	return false
}

// beginCreate refuses, with 403, what only acquire may write. It stands in the store, so that no verb goes round it.
func (strategy) beginCreate(ctx context.Context, obj runtime.Object, _ *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
	claim := obj.(*sandbox.SandboxClaim)
	if _, ok := originOf(ctx); !ok {
		if name := acquireOnly(&claim.Spec); name != "" {
			return nil, apierrors.NewForbidden(sandbox.Resource("sandboxclaims"), claim.Name,
				fmt.Errorf("%s is written by the server alone: drop it, or acquire the sandbox by sandboxclaims/-/acquire", name))
		}
	}
	return func(context.Context, bool) {}, nil
}

// statusStrategy is the strategy of the status subresource: it reverses what strategy protects.
type statusStrategy struct{ strategy }

// GetResetFields says that a write of the status writes nothing else.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata", "labels"))
}

// PrepareForUpdate keeps everything but the status, and of the status what is written once, with the object.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	claim, before := obj.(*sandbox.SandboxClaim), old.(*sandbox.SandboxClaim)
	claim.Spec = before.Spec
	claim.Labels = before.Labels
	claim.Generation = before.Generation
	claim.Status.QueuedAt = before.Status.QueuedAt
	claim.Status.Replaces = before.Status.Replaces
	claim.Status.Conditions = keepProvenance(claim.Status.Conditions, before.Status.Conditions)
}

// keepProvenance gives the new conditions with ProvenanceVerified as it is stored, present or absent.
func keepProvenance(conditions, stored []metav1.Condition) []metav1.Condition {
	isProvenance := func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionProvenanceVerified }
	if i := slices.IndexFunc(stored, isProvenance); i >= 0 {
		if j := slices.IndexFunc(conditions, isProvenance); j >= 0 {
			conditions[j] = stored[i]
			return conditions
		}
		return append(conditions, stored[i])
	}
	return slices.DeleteFunc(conditions, isProvenance)
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateSandboxClaimStatusUpdate(obj.(*sandbox.SandboxClaim), old.(*sandbox.SandboxClaim))
}

func resetFields(paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(paths...),
	}
}

// getAttrs gives what selectors look at.
func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	claim, ok := obj.(*sandbox.SandboxClaim)
	if !ok {
		return nil, nil, fmt.Errorf("selecting claims: got a %T", obj)
	}
	set := generic.ObjectMetaFieldsSet(&claim.ObjectMeta, true)
	set["spec.agentRuntimeRef.name"] = runtimeOf(claim)
	set[sessionField] = claim.Spec.SessionID
	set["spec.handle"] = claim.Spec.Handle
	set["status.phase"] = string(claim.Status.Phase)
	return claim.Labels, set, nil
}

// sessionField is indexed by the watch cache, so that a session's claims are found without a scan.
const sessionField = "spec.sessionID"

func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: getAttrs, IndexFields: []string{sessionField}}
}

// runtimeOf is the name of the claim's AgentRuntime; empty for an enrolment.
func runtimeOf(claim *sandbox.SandboxClaim) string {
	if claim.Spec.AgentRuntimeRef == nil {
		return ""
	}
	return claim.Spec.AgentRuntimeRef.Name
}
