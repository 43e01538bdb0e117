package sandboxclaim

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/pkg/interned"
)

// Config is what the registry of claims is built from.
type Config struct {
	// Scheme knows the group's kinds.
	Scheme *runtime.Scheme
	// RESTOptions leads to etcd.
	RESTOptions generic.RESTOptionsGetter
	// Clock tells the time; nothing here asks for it otherwise.
	Clock clock.Clock
	// Neighbours reads AgentRuntimes and ToolRegistries of the host cluster.
	Neighbours Neighbours
	// Authorizer answers whether a caller may speak for a runtime that is not its own.
	Authorizer authorizer.Authorizer
	// Admission is asked about the create that an acquire implies; nil asks nobody.
	Admission admission.Interface
	// MaxWaiters is how many acquires may wait at once in this replica.
	MaxWaiters int
}

// Storage serves SandboxClaim and its subresources.
type Storage struct {
	Claims  *REST
	Status  *StatusREST
	Acquire *AcquireREST
	Touch   *TouchREST
	Release *ReleaseREST
	// Waiters wakes those who wait on claims; it must run while the server serves.
	Waiters *Waiters

	writes *claims
}

// REST serves claims themselves.
type REST struct{ *genericregistry.Store }

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
)

// ShortNames are what a person types.
func (*REST) ShortNames() []string { return []string{"sbclaim"} }

// NewStorage wires the registry of claims.
func NewStorage(cfg Config) (*Storage, error) {
	rules := strategy{DeclarativeValidation: rest.DeclarativeValidation{Scheme: cfg.Scheme}, NameGenerator: names.SimpleNameGenerator, clock: cfg.Clock}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &sandbox.SandboxClaim{} },
		NewListFunc:               func() runtime.Object { return &sandbox.SandboxClaimList{} },
		DefaultQualifiedResource:  sandbox.Resource("sandboxclaims"),
		SingularQualifiedResource: sandbox.Resource("sandboxclaim"),
		PredicateFunc:             predicate,
		CreateStrategy:            rules,
		UpdateStrategy:            rules,
		DeleteStrategy:            rules,
		ResetFieldsStrategy:       rules,
		BeginCreate:               rules.beginCreate,
		TableConvertor:            tableConvertor{},
	}
	options := &generic.StoreOptions{
		RESTOptions: sparing{cfg.RESTOptions, interned.NewPool(remembered)},
		AttrFunc:    getAttrs,
		TriggerFunc: storage.IndexerFuncs{sessionField: func(obj runtime.Object) string { return obj.(*sandbox.SandboxClaim).Spec.SessionID }},
		Indexers: &cache.Indexers{storage.FieldIndex(sessionField): func(obj any) ([]string, error) {
			claim, ok := obj.(*sandbox.SandboxClaim)
			if !ok {
				return nil, fmt.Errorf("indexing claims by session: got a %T", obj)
			}
			return []string{claim.Spec.SessionID}, nil
		}},
	}
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, fmt.Errorf("building the storage of sandboxclaims: %w", err)
	}
	statusStore := *store
	statusStore.UpdateStrategy = statusStrategy{rules}
	statusStore.ResetFieldsStrategy = statusStrategy{rules}

	writes := &claims{
		store: store, status: &statusStore, clock: cfg.Clock,
		admission: admission.WithAudit(cfg.Admission), interfaces: admission.NewObjectInterfacesFromScheme(cfg.Scheme), scheme: cfg.Scheme,
	}
	callers := &callers{neighbours: cfg.Neighbours, authorizer: cfg.Authorizer}
	waiters := NewWaiters(store, cfg.MaxWaiters)
	return &Storage{
		Claims:  &REST{store},
		Status:  &StatusREST{&statusStore},
		Acquire: &AcquireREST{claims: writes, callers: callers, neighbours: cfg.Neighbours, waiters: waiters, clock: cfg.Clock},
		Touch:   &TouchREST{claims: writes, callers: callers},
		Release: &ReleaseREST{claims: writes, callers: callers, clock: cfg.Clock},
		Waiters: waiters,
		writes:  writes,
	}, nil
}

// TrackFields lets the writes that acquire, touch and release make record who owns which field, as every other write
// does. The converter exists only once the group is installed, so this is called between that and serving.
func (s *Storage) TrackFields(converter managedfields.TypeConverter) error {
	main, err := s.writes.newFieldManager(converter, "", s.writes.store.ResetFieldsStrategy)
	if err != nil {
		return err
	}
	status, err := s.writes.newFieldManager(converter, "status", s.writes.status.ResetFieldsStrategy)
	if err != nil {
		return err
	}
	s.writes.fields, s.writes.statusFields = main, status
	return nil
}

// StatusREST serves the status subresource.
type StatusREST struct{ store *genericregistry.Store }

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
	_ rest.TableConvertor      = &StatusREST{}
)

// New gives an empty claim.
func (*StatusREST) New() runtime.Object { return &sandbox.SandboxClaim{} }

// Destroy does nothing: the store is the claims' own, which destroys it.
func (*StatusREST) Destroy() {}

// Get reads a claim.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update writes a claim's status. It never creates one.
func (r *StatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, info, createValidation, updateValidation, false, options)
}

// GetResetFields says what a write of the status does not write.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable prints claims as the main resource does.
func (r *StatusREST) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, options)
}
