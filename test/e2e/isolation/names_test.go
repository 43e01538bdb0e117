package isolation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// The longest legal input, on the real node, so that every name and label is judged by those who must accept it.
func TestNames_TheLongestInput_GivesDistinctSandboxes(t *testing.T) {
	t.Parallel()
	require.NoError(t, shared.prepared)
	w := &world{Cluster: shared.cluster, t: t, namespace: shared.cluster.Namespace(t)}
	runtime := strings.Repeat("long.runtime-", 4) + "with.63.abc"
	session := strings.Repeat("S", 31) + "_" + strings.Repeat("s", 30) + "9"
	name := strings.Repeat("a", 63)
	handles := []string{name + "/" + strings.Repeat("b", 62) + "1", name + "/" + strings.Repeat("b", 62) + "2"}
	for _, part := range []string{runtime, session, name} {
		require.Len(t, part, 63)
	}
	registry := framework.MakeToolRegistry("tools", w.namespace)
	class := attackerClass("long-" + w.namespace)
	w.CreateClasses(t, class)
	registry.Sandbox(name, class.Cluster().Name).MaxInstances(3)
	w.populate(runtime, registry)

	p := prove(t, "names: two handles that differ in their last of 127 characters are two sandboxes")
	claims := []*v1alpha1.SandboxClaim{w.acquired(runtime, session, handles[0]), w.acquired(runtime, session, handles[1])}
	seen := map[types.UID]bool{}
	for _, claim := range claims {
		for _, object := range w.objects(claim) {
			require.False(t, seen[object.GetUID()], "%s is both's", object.GetName())
			seen[object.GetUID()] = true
		}
		pod := w.podOf(claim)
		require.Equal(t, []string{runtime, session}, []string{pod.Labels[v1alpha1.LabelAgentRuntime], pod.Labels[v1alpha1.LabelSession]})
		p.attempted(framework.Bound(claim) && len(claim.Name) <= 55, "%s, with Deployment, Service and NetworkPolicy %s", claim.Status.Phase, claim.Status.SandboxName)
	}
	p.attempted(claims[0].Status.Addresses["mcp"] != claims[1].Status.Addresses["mcp"], "two addresses")
	again := w.acquired(runtime, session, handles[0])
	p.controlled(again.UID == claims[0].UID, "the same handle once more is the same sandbox: %s", again.Name)
}

// objects are what a claim's sandbox is made of.
func (w *world) objects(claim *v1alpha1.SandboxClaim) []framework.Object {
	w.t.Helper()
	name, ctx := claim.Status.SandboxName, w.t.Context()
	deployment, err := w.Kube.AppsV1().Deployments(w.namespace).Get(ctx, name, metav1.GetOptions{})
	require.NoError(w.t, err)
	service, err := w.Kube.CoreV1().Services(w.namespace).Get(ctx, name, metav1.GetOptions{})
	require.NoError(w.t, err)
	policy, err := w.Kube.NetworkingV1().NetworkPolicies(w.namespace).Get(ctx, name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return []framework.Object{deployment, service, policy}
}
