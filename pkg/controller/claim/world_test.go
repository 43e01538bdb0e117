package claim

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/keymutex"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/controller/kept"
)

const (
	namespace   = "agents"
	claimName   = "my-agent-sbx-a"
	sandboxName = claimName + "-sandbox"

	namespaceUID = "namespace-uid"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a reconciler over two clusters that are held in memory, and a record of what it does to them.
type world struct {
	*testing.T
	r     *Reconciler
	clock *clocktesting.FakePassiveClock
	// events holds what people were told.
	events *events.FakeRecorder
	// did are the writes and uncached reads since the last clear, in order.
	did    []string
	noting sync.Mutex
	// hidden are host objects that the cache does not hold yet or never will, as kind/name.
	hidden map[string]bool
	// refuse, where it gives an error for "verb kind", has that call fail.
	refuse map[string]error

	host, claims client.WithWatch // what the test itself reads and writes by, unrecorded

	keeper *kept.Keeper
}

// newWorld holds an enabled runtime, a class, a claim that was just created, and what else is given for the host.
func newWorld(t *testing.T, claim *v1alpha1.SandboxClaim, onHost ...client.Object) *world {
	hostScheme, claimsScheme := runtime.NewScheme(), runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(hostScheme))
	require.NoError(t, omniav1alpha1.AddToScheme(hostScheme))
	require.NoError(t, v1alpha1.AddToScheme(claimsScheme))
	require.NoError(t, v1alpha1.AddToScheme(hostScheme)) // the host gives claims, too, by the aggregator
	w := &world{T: t, clock: clocktesting.NewFakePassiveClock(began), events: events.NewFakeRecorder(100), hidden: map[string]bool{}, refuse: map[string]error{}, keeper: kept.NewKeeper()}
	w.host = fake.NewClientBuilder().WithScheme(hostScheme).
		WithObjects(append(onHost, enabledRuntime(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, UID: namespaceUID}})...).
		WithStatusSubresource(&appsv1.Deployment{}, &corev1.Pod{}).
		WithIndex(&corev1.Pod{}, podsByClaim, labelIndex(v1alpha1.LabelClaimUID)).
		WithIndex(&discoveryv1.EndpointSlice{}, slicesByService, labelIndex(discoveryv1.LabelServiceName)).
		Build()
	w.claims = fake.NewClientBuilder().WithScheme(claimsScheme).
		WithObjects(claim, shellClass()).
		WithStatusSubresource(&v1alpha1.SandboxClaim{}).
		Build()
	w.r = &Reconciler{
		Claims: w.recorded(w.claims), ClaimsLive: w.live(w.claims),
		Host: w.recorded(w.host), HostLive: w.live(w.host), Events: w.events, Clock: w.clock,
		admissions: keymutex.NewHashed(admissionLocks),
	}
	w.r.claims = &listed{w.claims, func() client.ObjectList { return &v1alpha1.SandboxClaimList{} }, claimIndexes, w.keeper.Keep}
	w.r.policies = &listed{w.host, func() client.ObjectList { return &networkingv1.NetworkPolicyList{} }, policyIndexes, w.keeper.Keep}
	w.r.deployments = &listed{w.host, func() client.ObjectList { return &appsv1.DeploymentList{} }, deploymentIndexes, w.keeper.Keep}
	w.r.services = &listed{w.host, func() client.ObjectList { return &corev1.ServiceList{} }, serviceIndexes, w.keeper.Keep}
	return w
}

// listed is a cache's index that holds whatever there is of a kind whenever it is asked.
type listed struct {
	from client.Reader
	list func() client.ObjectList
	by   toolscache.Indexers
	keep toolscache.TransformFunc
}

func (l *listed) ByIndex(name, value string) ([]any, error) {
	now, err := l.now()
	if err != nil {
		return nil, err
	}
	return now.ByIndex(name, value)
}

func (l *listed) GetByKey(key string) (any, bool, error) {
	now, err := l.now()
	if err != nil {
		return nil, false, err
	}
	return now.GetByKey(key)
}

func (l *listed) ListIndexFuncValues(name string) []string {
	now, err := l.now()
	if err != nil {
		panic(err)
	}
	return now.ListIndexFuncValues(name)
}

func (l *listed) now() (toolscache.Indexer, error) {
	list, now := l.list(), toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, l.by)
	if err := l.from.List(context.Background(), list); err != nil {
		return nil, err
	}
	return now, apimeta.EachListItem(list, func(o runtime.Object) error {
		held, err := l.keep(o)
		if err != nil {
			return err
		}
		return now.Add(held)
	})
}

func (w *world) note(c client.Client, verb string, object client.Object) error {
	kind := w.kind(c, object)
	w.noting.Lock()
	defer w.noting.Unlock()
	w.did = append(w.did, verb+" "+kind)
	return w.refuse[verb+" "+kind]
}

func (w *world) kind(c client.Client, object client.Object) string {
	gvk, err := c.GroupVersionKindFor(object)
	require.NoError(w, err)
	return gvk.Kind
}

// recorded is the cached client: it notes writes, does not see what is hidden, and reads of an object no more than a cache
// keeps.
func (w *world) recorded(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			kind := w.kind(c, into)
			if w.hidden[kind+"/"+key.Name] {
				return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
			}
			if err := w.refuse["get "+kind]; err != nil {
				return err
			}
			if err := c.Get(ctx, key, into, opts...); err != nil {
				return err
			}
			_, err := w.keeper.Keep(into)
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, into, opts...); err != nil {
				return err
			}
			return apimeta.EachListItem(into, func(object runtime.Object) error {
				_, err := w.keeper.Keep(object)
				return err
			})
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if err := w.note(c, "create", object); err != nil {
				return err
			}
			return c.Create(ctx, object, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			if err := w.note(c, "update", object); err != nil {
				return err
			}
			return c.Update(ctx, object, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if err := w.note(c, "delete", object); err != nil {
				return err
			}
			return c.Delete(ctx, object, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := w.note(c, "patch", object); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := w.note(c, "patch "+sub, object); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, object, patch, opts...)
		},
	})
}

// live is the uncached reader: it sees all, and every read of it is noted.
func (w *world) live(c client.WithWatch) client.Reader {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if err := w.note(c, "read", into); err != nil {
				return err
			}
			return c.Get(ctx, key, into, opts...)
		},
	})
}

// reconcile reconciles the claim once and gives what that did.
func (w *world) reconcile() ([]string, reconcile.Result, error) { return w.reconcileOf(claimName) }

// reconcileOf reconciles the claim of a name once.
func (w *world) reconcileOf(name string) ([]string, reconcile.Result, error) {
	w.did = nil
	result, err := w.r.Reconcile(w.Context(), reconcileRequest(name))
	return w.did, result, err
}

func reconcileRequest(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

// settle reconciles until nothing is done any more.
func (w *world) settle() {
	w.Helper()
	for range 5 {
		did, _, err := w.reconcile()
		require.NoError(w, err)
		if len(did) == 0 {
			return
		}
	}
	require.Fail(w, "it never settles", "last: %v\n%s", w.did, w.dump())
}

func (w *world) claim() *v1alpha1.SandboxClaim {
	w.Helper()
	return w.claimOf(claimName)
}

func (w *world) claimOf(name string) *v1alpha1.SandboxClaim {
	w.Helper()
	claim := &v1alpha1.SandboxClaim{}
	require.NoError(w, w.claims.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, claim))
	return claim
}

// told gives what people were told since the last time, in order.
func (w *world) told() []string {
	var out []string
	for {
		select {
		case event := <-w.events.Events:
			out = append(out, event)
		default:
			return out
		}
	}
}

// change changes the AgentRuntime.
func (w *world) change(change func(*omniav1alpha1.AgentRuntimeSandbox)) {
	w.Helper()
	runtime := &omniav1alpha1.AgentRuntime{}
	require.NoError(w, w.host.Get(w.Context(), client.ObjectKeyFromObject(enabledRuntime()), runtime))
	change(runtime.Spec.Sandbox)
	require.NoError(w, w.host.Update(w.Context(), runtime))
}

// ready is the claim's Ready condition.
func (w *world) ready() metav1.Condition {
	w.Helper()
	return v1alpha1.ReadyCondition(w.claim().Status.Conditions)
}

// onHost reads the host's object of the sandbox's name into the given one. False means that there is none.
func (w *world) onHost(into client.Object) bool {
	w.Helper()
	err := w.host.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: sandboxName}, into)
	require.NoError(w, client.IgnoreNotFound(err))
	return err == nil
}

// serve has the sandbox be ready and routed, as the host's controllers would.
func (w *world) serve() {
	w.Helper()
	service := &corev1.Service{}
	require.True(w, w.onHost(service))
	service.Spec.ClusterIP = "10.0.0.1"
	require.NoError(w, w.host.Update(w.Context(), service))
	w.rollOut(1, 1, appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: 1, ReadyReplicas: 1})
	require.NoError(w, w.host.Create(w.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sandboxName + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: sandboxName},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))}},
		Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
	}))
}

// rollOut gives the Deployment a generation, which the memory does not count by itself, and a status.
func (w *world) rollOut(generation, observed int64, status appsv1.DeploymentStatus) {
	w.Helper()
	deployment := &appsv1.Deployment{}
	require.True(w, w.onHost(deployment))
	deployment.Generation = generation
	require.NoError(w, w.host.Update(w.Context(), deployment))
	deployment.Status, deployment.Status.ObservedGeneration = status, observed
	require.NoError(w, w.host.Status().Update(w.Context(), deployment))
}

func (w *world) podWaits(reason, message string) {
	w.Helper()
	require.NoError(w, w.host.Create(w.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Labels: map[string]string{v1alpha1.LabelClaimUID: "uid-1"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}},
	}))
}

// dump prints the claim and its objects, for a test that failed.
func (w *world) dump() string {
	out := ""
	for _, o := range []any{w.claim(), &networkingv1.NetworkPolicy{}, &corev1.Service{}, &appsv1.Deployment{}} {
		if object, ok := o.(client.Object); ok && object.GetName() == "" && !w.onHost(object) {
			continue
		}
		text, err := yaml.Marshal(o)
		out += fmt.Sprintf("%T (%v)\n%s\n", o, err, text)
	}
	return out
}

func newClaim() *v1alpha1.SandboxClaim {
	return &v1alpha1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claimName, UID: "uid-1", Generation: 1},
		Spec: v1alpha1.SandboxClaimSpec{
			AgentRuntimeRef: &v1alpha1.AgentRuntimeReference{Name: "my-agent"},
			ClassRef:        v1alpha1.ClassReference{Name: "shell", Kind: v1alpha1.ClusterSandboxClassKind}, SessionID: "s",
		},
	}
}

func enabledRuntime() *omniav1alpha1.AgentRuntime {
	return &omniav1alpha1.AgentRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "my-agent"},
		Spec:       omniav1alpha1.AgentRuntimeSpec{Sandbox: &omniav1alpha1.AgentRuntimeSandbox{Enabled: true}},
	}
}

func shellClass() *v1alpha1.ClusterSandboxClass {
	return &v1alpha1.ClusterSandboxClass{
		ObjectMeta: metav1.ObjectMeta{Name: "shell"},
		Spec: v1alpha1.SandboxClassSpec{
			Image: "shell:1", ImagePullPolicy: corev1.PullIfNotPresent, Trusted: true, Ports: []v1alpha1.ClassPort{{Name: "mcp", Port: 8080}},
		},
	}
}
