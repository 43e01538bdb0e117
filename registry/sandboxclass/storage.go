package sandboxclass

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// REST serves one of the two kinds.
type REST struct {
	*genericregistry.Store
	kind kind
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
)

// ShortNames are what a person types.
func (r *REST) ShortNames() []string { return []string{r.kind.shortName} }

// NewNamespacedREST serves SandboxClass.
func NewNamespacedREST(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (*REST, error) {
	return newREST(scheme, getter, namespacedKind)
}

// NewClusterREST serves ClusterSandboxClass.
func NewClusterREST(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (*REST, error) {
	return newREST(scheme, getter, clusterKind)
}

func newREST(scheme *runtime.Scheme, getter generic.RESTOptionsGetter, kind kind) (*REST, error) {
	rules := strategy{DeclarativeValidation: rest.DeclarativeValidation{Scheme: scheme}, NameGenerator: names.SimpleNameGenerator, kind: kind}
	store := &genericregistry.Store{
		NewFunc:                   kind.newObject,
		NewListFunc:               kind.newList,
		DefaultQualifiedResource:  sandbox.Resource(kind.resource),
		SingularQualifiedResource: sandbox.Resource(kind.singular),
		CreateStrategy:            rules,
		UpdateStrategy:            rules,
		DeleteStrategy:            rules,
		BeginCreate:               rules.beginCreate,
		BeginUpdate:               rules.beginUpdate,
		TableConvertor:            tableConvertor{},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter}); err != nil {
		return nil, fmt.Errorf("building the storage of %s: %w", kind.resource, err)
	}
	return &REST{Store: store, kind: kind}, nil
}
