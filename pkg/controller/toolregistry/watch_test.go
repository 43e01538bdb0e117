package toolregistry

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// within is how long what happens at once may take on a busy machine.
const within = 10 * time.Second

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

func TestNaming(t *testing.T) {
	named := func(namespace, name, class string, kind v1alpha1.ClassKind) client.Object {
		registry := registryOf(class, kind)
		registry.Namespace, registry.Name = namespace, name
		return registry
	}
	w := newWorld(t,
		named("agents", "unset", "small", ""), named("agents", "kind", "small", v1alpha1.SandboxClassKind),
		named("agents", "cluster", "small", v1alpha1.ClusterSandboxClassKind), named("agents", "other", "large", ""),
		named("others", "unset", "small", ""), named("others", "cluster", "small", v1alpha1.ClusterSandboxClassKind))
	class := smallClass()
	assert.ElementsMatch(t, []reconcile.Request{request("agents", "unset"), request("agents", "kind")}, w.r.namingClass(t.Context(), class),
		"those of its namespace, and of its kind")
	assert.ElementsMatch(t, []reconcile.Request{request("agents", "cluster"), request("others", "cluster")},
		w.r.namingClusterClass(t.Context(), &v1alpha1.ClusterSandboxClass{ObjectMeta: metav1.ObjectMeta{Name: "small"}}), "those of all namespaces")
	w.r.listed = func() bool { return false }
	assert.Empty(t, w.r.namingClass(t.Context(), class), "while they are not all known, none")
}

// lateKind is the cache of a cluster that learns of ToolRegistries late.
type lateKind struct {
	informertest.FakeInformers
	informer toolscache.SharedIndexInformer
	known    atomic.Bool
	asked    atomic.Int32
}

func (c *lateKind) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	c.asked.Add(1)
	if !c.known.Load() {
		return nil, &apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Group: omniav1alpha1.GroupName, Kind: "ToolRegistry"}}
	}
	return c.informer, nil
}

func (c *lateKind) IndexField(_ context.Context, _ client.Object, field string, by client.IndexerFunc) error {
	return c.informer.AddIndexers(toolscache.Indexers{field: func(o any) ([]string, error) { return by(o.(client.Object)), nil }})
}

func TestSource_AClusterWithoutTheKind_IsAskedAgain_BesideTheControllers(t *testing.T) {
	watched := cachetesting.NewFakeControllerSource()
	watched.Add(registryOf("small", ""))
	late := &lateKind{informer: toolscache.NewSharedIndexInformer(watched, &omniav1alpha1.ToolRegistry{}, 0, toolscache.Indexers{})}
	go late.informer.RunWithContext(t.Context())
	clock := clocktesting.NewFakeClock(began)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	all := &registries{cache: late}

	err := all.list(t.Context())
	require.True(t, apimeta.IsNoMatchError(err), "got %v", err)
	require.NoError(t, all.source(clock).Start(t.Context(), queue), "it starts, and does not wait for the kind")
	for turn := range int32(3) {
		require.Eventually(t, clock.HasWaiters, within, time.Millisecond)
		assert.Equal(t, 2+turn, late.asked.Load(), "once a turn")
		assert.False(t, all.listed())
		late.known.Store(turn == 2)
		clock.Step(again)
	}
	require.Eventually(t, all.listed, within, time.Millisecond)
	next := func() reconcile.Request {
		require.Eventually(t, func() bool { return queue.Len() > 0 }, within, time.Millisecond)
		got, _ := queue.Get()
		queue.Done(got)
		return got
	}
	assert.Equal(t, request(tools.Namespace, tools.Name), next(), "what there was is looked at")
	later := registryOf("small", "")
	later.Name = "later"
	watched.Add(later)
	assert.Equal(t, request(tools.Namespace, "later"), next(), "and what comes")
	held, err := late.informer.GetIndexer().IndexKeys(byClass, "SandboxClass/small")
	require.NoError(t, err)
	assert.Len(t, held, 2, "found by the class")
}
