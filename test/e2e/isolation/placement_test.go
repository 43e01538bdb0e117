package isolation

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestRuntimeClass_ItsHandlerRunsTheContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	require.NotEmpty(t, w.Info.OtherHandler, "this cluster has no second runtime handler: run `go run ./hack/cluster up`")
	name := "other-" + w.namespace
	w.CreateUntilEnd(t, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: w.Info.OtherHandler})
	other := newWorld(t, map[string]change{"other": func(s *v1alpha1.SandboxClassSpec) { s.RuntimeClassName = &name }})
	p := prove(t, "runtimeClassName: its handler runs the sandbox, where the cluster's default would have")
	p.attempted(recorded(other.bound("other", "handled")), "of the class: its container is recorded by handler %s", w.Info.OtherHandler)
	p.controlled(!recorded(w.bound(plain, "handled")), "without it: its container is not")
}

// recorded says whether a sandbox' container is one of the second handler's.
func recorded(s *sandbox) bool {
	s.t.Helper()
	require.Len(s.t, s.pod.Status.ContainerStatuses, 1)
	_, id, _ := strings.Cut(s.pod.Status.ContainerStatuses[0].ContainerID, "://")
	require.NotEmpty(s.t, id)
	_, err := os.Stat(filepath.Join(s.Info.OtherHandlerRoot, id))
	return err == nil
}

func TestNodeSelector_OnlyANodeWithTheLabel(t *testing.T) {
	t.Parallel()
	value := rand.String(8)
	w := newWorld(t, map[string]change{"selecting": func(s *v1alpha1.SandboxClassSpec) { s.NodeSelector = map[string]string{mark: value} }})
	p := prove(t, "nodeSelector: a sandbox runs on a node with the label alone")
	waits := w.Claim(t, w.namespace, w.waits("selecting", "selecting"), unschedulable)
	p.attempted(true, "while no node has it: %s, %s", waits.Status.Phase, framework.Message(waits))
	_, err := w.Kubectl(t.Context(), "label", "--overwrite", "nodes", w.Info.NodeName, mark+"="+value)
	require.NoError(t, err)
	p.controlled(w.bound("selecting", "selecting").pod.Spec.NodeName == w.Info.NodeName, "once %s has it: runs there", w.Info.NodeName)
}

// Every other pod would be kept off the node meanwhile, so this runs beside nothing.
func TestTolerations_ATaintKeepsOthersOff(t *testing.T) {
	w := newWorld(t, map[string]change{"tolerating": func(s *v1alpha1.SandboxClassSpec) {
		s.Tolerations = []corev1.Toleration{{Key: mark, Operator: corev1.TolerationOpEqual, Value: "tried", Effect: corev1.TaintEffectNoSchedule}}
	}})
	_, err := w.Kubectl(t.Context(), "taint", "nodes", w.Info.NodeName, mark+"=tried:NoSchedule")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unmark(context.Background(), w.Cluster)) })
	p := prove(t, "tolerations: a sandbox runs on a tainted node if its class tolerates the taint")
	p.attempted(w.bound("tolerating", "tolerating").pod.Spec.NodeName == w.Info.NodeName, "of a class that tolerates it: runs on %s", w.Info.NodeName)
	kept := w.Claim(t, w.namespace, w.waits(plain, "kept"), unschedulable)
	p.controlled(strings.Contains(framework.Message(kept), "untolerated taint"), "of a class that does not: %s", framework.Message(kept))
	require.NoError(t, unmark(t.Context(), w.Cluster))
	p.controlled(framework.Bound(w.bound(plain, "kept").claim), "and once the taint is gone: Bound")
}

func unschedulable(c *v1alpha1.SandboxClaim) bool {
	return c.Status.Phase == v1alpha1.PhasePending && framework.Reason(c) == v1alpha1.ReasonUnschedulable
}
