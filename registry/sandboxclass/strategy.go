package sandboxclass

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/validation"
	"github.com/altairalabs/omnia-sandboxes/registry/refusal"
)

// strategy holds the rules of a class of either kind.
type strategy struct {
	rest.DeclarativeValidation // what the tags of v1alpha1 refuse, beside Validate and ValidateUpdate
	names.NameGenerator
	kind kind
}

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}

	_ rest.DeclarativeValidationStrategy = strategy{}
)

func (s strategy) NamespaceScoped() bool { return s.kind.namespaced }

// PrepareForCreate starts the generation.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	meta, _ := parts(obj)
	meta.Generation = 1
}

func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	meta, spec := parts(obj)
	return validation.ValidateSandboxClass(meta, spec, s.kind.namespaced)
}

// PrepareForUpdate moves the generation on a change of spec.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	meta, spec := parts(obj)
	oldMeta, oldSpec := parts(old)
	meta.Generation = oldMeta.Generation
	if !apiequality.Semantic.DeepEqual(spec, oldSpec) {
		meta.Generation++
	}
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	meta, spec := parts(obj)
	oldMeta, oldSpec := parts(old)
	return validation.ValidateSandboxClassUpdate(meta, oldMeta, spec, oldSpec)
}

func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
func (strategy) Canonicalize(runtime.Object)                   {}
func (strategy) AllowCreateOnUpdate(context.Context) bool      { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// refuseUnserved refuses the fields whose behaviour is not built, so that none is accepted and ignored.
func (s strategy) refuseUnserved(obj runtime.Object) error {
	meta, spec := parts(obj)
	if field := unserved(spec); field != "" {
		return refusal.NotYetSupported(s.kind.resource, meta.Name, field, "drop it from the class")
	}
	return nil
}

func unserved(spec *sandbox.SandboxClassSpec) string {
	switch {
	case len(spec.Connections) > 0:
		return "spec.connections"
	case spec.Enrolment != nil:
		return "spec.enrolment"
	}
	return ""
}

func (s strategy) beginCreate(_ context.Context, obj runtime.Object, _ *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
	return func(context.Context, bool) {}, s.refuseUnserved(obj)
}

// beginUpdate lets a class be whose spec does not change: whoever stored it, its labels and finalizers stay editable.
func (s strategy) beginUpdate(_ context.Context, obj, old runtime.Object, _ *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
	_, spec := parts(obj)
	_, oldSpec := parts(old)
	if apiequality.Semantic.DeepEqual(spec, oldSpec) {
		return func(context.Context, bool) {}, nil
	}
	return func(context.Context, bool) {}, s.refuseUnserved(obj)
}
