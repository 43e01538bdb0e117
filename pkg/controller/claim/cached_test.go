package claim

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/keymutex"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

// feed is what a cache hears of each kind.
type feed map[schema.GroupVersionKind]*cachetesting.FakeControllerSource

// overCaches is a reconciler over the caches and the clients that it has in earnest. The caches hold what is given and hear of
// our own group by the feed; the clients write to the address.
func overCaches(t testing.TB, address string, ours, hosts []runtime.Object) (*Reconciler, feed) {
	t.Helper()
	hostScheme, claimsScheme := runtime.NewScheme(), runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(hostScheme))
	require.NoError(t, omniav1alpha1.AddToScheme(hostScheme))
	require.NoError(t, v1alpha1.AddToScheme(claimsScheme))
	r := &Reconciler{Events: events.NewFakeRecorder(10), Clock: clocktesting.NewFakePassiveClock(began), admissions: keymutex.NewHashed(admissionLocks)}
	r.takeover.done = true
	host, _ := cacheOf(t, address, hostScheme, hosts, &r.Host)
	claims, heard := cacheOf(t, address, claimsScheme, ours, &r.Claims)
	require.NoError(t, r.addIndexes(t.Context(), host, claims))
	for _, c := range []cache.Cache{host, claims} {
		go func() { _ = c.Start(t.Context()) }() // what it did not fill is missed below
		require.True(t, c.WaitForCacheSync(t.Context()))
	}
	return r, heard
}

func cacheOf(t testing.TB, address string, scheme *runtime.Scheme, objects []runtime.Object, by *client.Client) (cache.Cache, feed) {
	t.Helper()
	heard, mapper := feed{}, apimeta.NewDefaultRESTMapper(nil)
	for gvk := range scheme.AllKnownTypes() {
		scope := apimeta.RESTScopeNamespace
		if gvk.Kind == string(v1alpha1.ClusterSandboxClassKind) {
			scope = apimeta.RESTScopeRoot
		}
		mapper.Add(gvk, scope)
		heard[gvk] = cachetesting.NewFakeControllerSource()
	}
	kindOf := func(o runtime.Object) schema.GroupVersionKind {
		kinds, _, err := scheme.ObjectKinds(o)
		require.NoError(t, err)
		return kinds[0]
	}
	for _, o := range objects {
		heard[kindOf(o)].Add(o)
	}
	config := &rest.Config{Host: address}
	out, err := cache.New(config, cache.Options{
		Scheme: scheme, Mapper: mapper, HTTPClient: http.DefaultClient,
		NewInformer: func(_ toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(heard[kindOf(o)], o, resync, indexers)
		},
	})
	require.NoError(t, err)
	*by, err = client.New(config, client.Options{Scheme: scheme, Mapper: mapper, HTTPClient: http.DefaultClient,
		Cache: &client.CacheOptions{Reader: out, EnableReadYourWritesConsistency: ptr.To(true)}})
	require.NoError(t, err)
	return out, heard
}

// A decision counts what was decided a moment ago, also where the cache has not heard of it yet, and does not wait until it has.
func TestQueue_HoldsWhatWasDecided(t *testing.T) {
	claim := queuedClaim(1)
	r, heard := overCaches(t, "http://127.0.0.1:1", []runtime.Object{claim}, nil)
	key := types.NamespacedName{Namespace: namespace, Name: "my-agent"}
	slots := func() int32 {
		queue, err := r.queue(t.Context(), key, enabledRuntime())
		require.NoError(t, err)
		return queue.Slots()
	}
	require.Zero(t, slots())

	admitted := claim.DeepCopy()
	admitted.Status.Class, admitted.Status.SandboxName = &shellClass().Spec, sandbox.Name(claim)
	r.given.add(admitted)
	assert.EqualValues(t, 1, slots(), "while it is being written")
	admitted.ResourceVersion = "2" // the cache's are counted from 1
	r.given.wrote(admitted)
	assert.EqualValues(t, 1, slots(), "until it comes back")

	failed := admitted.DeepCopy()
	failed.Status.Phase = v1alpha1.PhaseFailed
	heard[v1alpha1.SchemeGroupVersion.WithKind("SandboxClaim")].Modify(failed)
	require.Eventually(t, func() bool { return slots() == 0 }, 10*time.Second, time.Millisecond, "what the cache heard since holds")
	assert.Empty(t, r.given.claims, "nothing is remembered of it")
}

// A decision about a claim says nothing of the next one of its name.
func TestGiven_OfAnotherClaim(t *testing.T) {
	var g given
	earlier, claim := queuedClaim(1), queuedClaim(1)
	earlier.UID, earlier.Status.Phase = "earlier", v1alpha1.PhaseBound
	g.add(earlier)
	claims, err := g.over([]*v1alpha1.SandboxClaim{claim})
	require.NoError(t, err)
	assert.Same(t, claim, claims[0])
	assert.Empty(t, g.claims)
}

// full is a runtime of which half the claims are Bound, as many as it may have, and half Queued.
func full(b *testing.B, claims int) *Reconciler {
	b.Helper()
	runtimeOfAll := enabledRuntime()
	runtimeOfAll.Spec.Sandbox.MaxConcurrent = ptr.To(int32(claims / 2))
	ours, hosts := []runtime.Object{shellClass()}, []runtime.Object{runtimeOfAll}
	for n := range claims {
		claim := queuedClaim(n)
		claim.UID = types.UID(fmt.Sprintf("6f6ad0a5-2d5a-4ce8-9f6f-%012d", n))
		claim.Spec.Handle = "shell/default"
		claim.Status.Phase, claim.Status.ObservedGeneration, claim.Status.LastUsedAt = v1alpha1.PhaseQueued, 1, &metav1.MicroTime{Time: began}
		claim.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: 1,
			LastTransitionTime: metav1.Time{Time: began}, Reason: v1alpha1.ReasonCeilingReached,
			Message: fmt.Sprintf("AgentRuntime agents/my-agent has its spec.sandbox.maxConcurrent of %d in use: waiting for one to end, oldest first", claims/2)}}
		if n < claims/2 {
			claim.Status.Class, claim.Status.SandboxName, claim.Status.Phase = &shellClass().Spec, sandbox.Name(claim), v1alpha1.PhaseBound
			hosts = append(hosts, sandbox.Deployment(claim))
		}
		ours = append(ours, claim)
	}
	r, _ := overCaches(b, "http://127.0.0.1:1", ours, hosts) // where nobody answers: nothing is to be written
	return r
}

// One waiter is looked at, and has to wait on.
func BenchmarkReconcileOfAWaiter(b *testing.B) {
	for _, claims := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("%d claims", claims), func(b *testing.B) {
			r := full(b, claims)
			b.ReportAllocs()
			for b.Loop() {
				_, err := r.Reconcile(b.Context(), reconcileRequest(fmt.Sprintf("c%d", claims-1)))
				require.NoError(b, err)
			}
		})
	}
}

// All waiters are looked at, and have to wait on.
func BenchmarkPassOverTheWaiters(b *testing.B) {
	for _, claims := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("%d claims", claims), func(b *testing.B) {
			r := full(b, claims)
			b.ReportAllocs()
			for b.Loop() {
				require.Empty(b, r.outdated(b.Context()))
			}
		})
	}
}
