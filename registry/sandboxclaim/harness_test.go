package sandboxclaim

import (
	"context"
	"os"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/install"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/etcd"
	"github.com/altairalabs/omnia-sandboxes/pkg/etcd/etcdtest"
)

const (
	namespace = "agents"
	// patience bounds the wait for what must happen; reaching it is a failure.
	patience = 20 * time.Second
)

// began is when every world's time begins.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// server is one etcd for all the tests of the package; each has a prefix of its own.
var server *etcd.Server

func TestMain(m *testing.M) { os.Exit(etcdtest.Main(m, &server)) }

// worlds counts the worlds, each of which has a part of etcd of its own.
var worlds atomic.Int64

// world is a registry on a real etcd, with neighbours and rights that a test sets.
type world struct {
	t *testing.T
	*Storage
	clock *clocktesting.FakeClock
	etcd  *storagebackend.Config

	mu       sync.Mutex
	runtimes map[string]*omniav1alpha1.AgentRuntime
	registry *omniav1alpha1.ToolRegistry
	// reads has things happen just after this replica's reads.
	reads reads
	// broken is what reading the ToolRegistry fails with.
	broken error
	// allowed are the verbs that RBAC allows anyone whose name is not a runtime's ServiceAccount.
	allowed map[string]bool
}

func newWorld(t *testing.T, maxWaiters int) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	w := &world{
		t: t, clock: clocktesting.NewFakeClock(began), allowed: map[string]bool{},
		runtimes: map[string]*omniav1alpha1.AgentRuntime{"my-agent": {
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "my-agent", UID: "runtime-uid"},
			Spec:       omniav1alpha1.AgentRuntimeSpec{Sandbox: &omniav1alpha1.AgentRuntimeSandbox{Enabled: true}},
		}},
		registry: &omniav1alpha1.ToolRegistry{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tools"},
			Spec: omniav1alpha1.ToolRegistrySpec{Sandboxes: []omniav1alpha1.RegistrySandbox{
				{Name: "shell", ClassRef: omniav1alpha1.ClassReference{Name: "shell", Kind: "ClusterSandboxClass"}},
				{Name: "project", TargetPath: "projects/x"},
			}},
		},
	}
	w.registry.Spec.Sandboxes[0].MaxInstances = new(int32)
	*w.registry.Spec.Sandboxes[0].MaxInstances = 2
	w.etcd = storagebackend.NewDefaultConfig(path.Join("/", t.Name(), strconv.FormatInt(worlds.Add(1), 10)), serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion))
	w.etcd.Transport.ServerList = []string{server.Endpoint()}
	w.serve(scheme, maxWaiters)
	return w
}

// serve builds the registry and wakes its waiters until the test ends.
func (w *world) serve(scheme *runtime.Scheme, maxWaiters int) {
	w.t.Helper()
	storage, err := NewStorage(Config{Scheme: scheme, RESTOptions: options{w.etcd, &w.reads}, Clock: w.clock, Neighbours: w, Authorizer: authorizer.AuthorizerFunc(w.authorize), MaxWaiters: maxWaiters})
	require.NoError(w.t, err)
	w.Storage = storage
	w.t.Cleanup(storage.Claims.Destroy)
	// Asked before the store is ready, the waiters' reflector would wait a second before it asks again.
	require.Eventually(w.t, func() bool { return storage.Claims.ReadinessCheck() == nil }, patience, time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	go storage.Waiters.Run(request.WithNamespace(ctx, metav1.NamespaceAll))
	require.Eventually(w.t, storage.Waiters.Synced, patience, time.Millisecond)
}

// replica is another server of the same claims, by the same clock and beside the same neighbours.
func (w *world) replica() *world {
	w.t.Helper()
	other := &world{t: w.t, clock: w.clock, etcd: w.etcd, runtimes: w.runtimes, registry: w.registry, allowed: w.allowed}
	other.serve(w.writes.scheme, 10)
	return other
}

// reads are what happens once, just after the next read of one claim, or of a list.
type reads struct{ afterGet, afterList atomic.Pointer[func()] }

func happens(what *atomic.Pointer[func()]) {
	if happen := what.Swap(nil); happen != nil {
		(*happen)()
	}
}

// store is a replica's store, after whose reads things happen.
type store struct {
	storage.Interface
	reads *reads
}

func (s *store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	defer happens(&s.reads.afterGet)
	return s.Interface.Get(ctx, key, opts, out)
}

func (s *store) GetList(ctx context.Context, key string, opts storage.ListOptions, out runtime.Object) error {
	defer happens(&s.reads.afterList)
	return s.Interface.GetList(ctx, key, opts, out)
}

type options struct {
	config *storagebackend.Config
	reads  *reads
}

func (o options) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: o.config.ForResource(resource), Decorator: o.decorate,
		EnableGarbageCollection: true, DeleteCollectionWorkers: 1, ResourcePrefix: resource.Resource,
	}, nil
}

func (o options) decorate(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
	attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
	cached, destroy, err := genericregistry.StorageWithCacher()(config, prefix, key, newFunc, newListFunc, attrs, triggers, indexers)
	return &store{cached, o.reads}, destroy, err
}

// AgentRuntime is a Neighbours' method.
func (w *world) AgentRuntime(_ context.Context, _, name string) (*omniav1alpha1.AgentRuntime, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r, ok := w.runtimes[name]; ok {
		return r, nil
	}
	return nil, apierrors.NewNotFound(omniav1alpha1.Resource("agentruntimes"), name)
}

// ToolRegistry is a Neighbours' method.
func (w *world) ToolRegistry(context.Context, *omniav1alpha1.AgentRuntime) (*omniav1alpha1.ToolRegistry, error) {
	if w.broken != nil {
		return nil, w.broken
	}
	if w.registry == nil {
		return nil, apierrors.NewNotFound(omniav1alpha1.Resource("toolregistries"), "")
	}
	return w.registry, nil
}

// ServiceAccount is a Neighbours' method.
func (w *world) ServiceAccount(_ context.Context, r *omniav1alpha1.AgentRuntime) (string, error) {
	if over := r.Spec.PodOverrides; over != nil {
		return over.ServiceAccountName, nil
	}
	return r.Name + "-facade", nil
}

// authorize answers as RBAC would.
func (w *world) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if w.allowed[a.GetVerb()+" "+a.GetResource()] {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// as is the context of a request by a ServiceAccount of the namespace.
func (w *world) as(account string) context.Context {
	ctx := request.WithNamespace(w.t.Context(), namespace)
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, APIGroup: sandbox.GroupName, APIVersion: "v1alpha1", Resource: "sandboxclaims", Subresource: "acquire", Namespace: namespace})
	return request.WithUser(ctx, &user.DefaultInfo{Name: "system:serviceaccount:" + namespace + ":" + account})
}

func (w *world) agent() context.Context { return w.as("my-agent-facade") }

func acquireOf(session, handle string, wait int32) *sandbox.SandboxAcquire {
	return &sandbox.SandboxAcquire{Spec: sandbox.SandboxAcquireSpec{AgentRuntime: "my-agent", SessionID: session, Handle: handle, WaitSeconds: &wait}}
}

func (w *world) acquire(ctx context.Context, name string, body *sandbox.SandboxAcquire) (*sandbox.SandboxAcquireStatus, error) {
	obj, err := w.Acquire.Create(ctx, name, body, nil, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &obj.(*sandbox.SandboxAcquire).Status, nil
}

type outcome struct {
	status *sandbox.SandboxAcquireStatus
	err    error
}

// waiting acquires in the background, and returns once the call waits.
func (w *world) waiting(ctx context.Context, body *sandbox.SandboxAcquire) <-chan outcome {
	w.t.Helper()
	out := make(chan outcome, 1)
	before := w.waiters()
	go func() {
		status, err := w.acquire(ctx, v1alpha1.AnyClaim, body)
		out <- outcome{status, err}
	}()
	require.Eventually(w.t, func() bool { return w.waiters() > before && w.exists(body) }, patience, time.Millisecond)
	return out
}

func (w *world) exists(body *sandbox.SandboxAcquire) bool {
	claim, err := w.writes.get(w.agent(), ClaimName(body.Spec.AgentRuntime, body.Spec.SessionID, body.Spec.Handle))
	return err == nil && claim.Status.Wait != nil
}

func (w *world) waiters() int {
	w.Waiters.mu.Lock()
	defer w.Waiters.mu.Unlock()
	return w.Waiters.count
}

func (w *world) result(out <-chan outcome) (*sandbox.SandboxAcquireStatus, error) {
	w.t.Helper()
	select {
	case o := <-out:
		return o.status, o.err
	case <-time.After(patience):
		require.Fail(w.t, "the acquire did not return")
		return nil, nil
	}
}

func (w *world) get(name string) *sandbox.SandboxClaim {
	w.t.Helper()
	claim, err := w.writes.get(w.agent(), name)
	require.NoError(w.t, err)
	return claim
}

// becomes plays the controller: it writes a phase, with the Ready condition's reason and message.
func (w *world) becomes(name string, phase sandbox.Phase, reason, message string) *sandbox.SandboxClaim {
	w.t.Helper()
	claim, err := w.writes.updateStatus(w.agent(), w.get(name), func(c *sandbox.SandboxClaim) (bool, error) {
		c.Status.Phase = phase
		status := metav1.ConditionFalse
		if phase == sandbox.PhaseBound {
			status = metav1.ConditionTrue
			c.Status.Addresses = map[string]string{"mcp": "10.0.0.1:8080"}
			c.Status.BoundAt = &metav1.MicroTime{Time: w.clock.Now()}
			c.Status.LastUsedAt = &metav1.MicroTime{Time: w.clock.Now()}
		}
		apimeta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message})
		return true, nil
	})
	require.NoError(w.t, err)
	return claim
}

// set writes a claim's status as the controller might.
func (w *world) set(name string, change func(*sandbox.SandboxClaimStatus)) *sandbox.SandboxClaim {
	w.t.Helper()
	claim, err := w.writes.updateStatus(w.agent(), w.get(name), func(c *sandbox.SandboxClaim) (bool, error) {
		change(&c.Status)
		return true, nil
	})
	require.NoError(w.t, err)
	return claim
}

// byHand creates a claim as a person with RBAC would.
func (w *world) byHand(claim *sandbox.SandboxClaim) (*sandbox.SandboxClaim, error) {
	claim.Namespace = namespace
	obj, err := w.Claims.Create(asClaims(w.as("admin")), claim, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*sandbox.SandboxClaim), nil
}
