package kept

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// measured is how many claims' objects are measured. More tell nothing else.
const measured = 500

// held are the kinds that the caches hold of each claim, and the label that each is indexed by, if it is.
var held = []struct {
	kind    string
	of      func(standing) client.Object
	indexed string
}{
	{"SandboxClaim", func(s standing) client.Object { return s.claim }, v1alpha1.LabelAgentRuntime},
	{"NetworkPolicy", func(s standing) client.Object { return s.policy }, ""},
	{"Service", func(s standing) client.Object { return s.service }, ""},
	{"Deployment", func(s standing) client.Object { return s.deployment }, v1alpha1.LabelAgentRuntime},
	{"Pod", func(s standing) client.Object { return s.pod }, v1alpha1.LabelClaimUID},
	{"EndpointSlice", func(s standing) client.Object { return s.slice }, discoveryv1.LabelServiceName},
}

// What is asserted is far from what is measured, since that differs with Go and Kubernetes: it is what there would be if a
// kind were held whole again.
func TestMemoryOfAClaimThatStands(t *testing.T) {
	keeper := NewKeeper()
	for _, h := range held { // what is made once for all is not counted
		_, err := keeper.Keep(h.of(standingClaim(t, 0)))
		require.NoError(t, err)
	}
	var whole, kept float64
	for _, h := range held {
		before, store := live(), indexer(t, h.indexed)
		for i := range measured {
			object, err := stripManagedFields(h.of(standingClaim(t, i))) // whoever keeps anything drops them
			require.NoError(t, err)
			require.NoError(t, store.Add(object))
		}
		w := float64(live()-before) / measured
		for _, object := range store.List() {
			_, err := keeper.Keep(object)
			require.NoError(t, err)
		}
		k := float64(live()-before) / measured
		runtime.KeepAlive(store)
		t.Logf("%-13s whole %6.0f bytes, kept %6.0f", h.kind, w, k)
		whole, kept = whole+w, kept+k
		assert.Less(t, k, w*9/10, "nothing of a %s is dropped or shared", h.kind)
	}
	t.Logf("%-13s whole %6.0f bytes, kept %6.0f", "together", whole, kept)
	assert.Less(t, kept, whole*6/10)
}

// live is how many bytes of the heap are in use.
func live() int64 {
	runtime.GC()
	runtime.GC() // what the first found to be finished with is freed
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// indexer is as an informer's, which controller-runtime indexes by a value in the object's namespace, and in all of them.
func indexer(t *testing.T, label string) cache.Indexer {
	t.Helper()
	out := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if label != "" {
		require.NoError(t, out.AddIndexers(cache.Indexers{label: func(o any) ([]string, error) {
			object := o.(client.Object)
			value := object.GetLabels()[label]
			return []string{fmt.Sprintf("%s/%s", object.GetNamespace(), value), "__all_namespaces/" + value}, nil
		}}))
	}
	return out
}
