package integration

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// A pod that the kubelet evicts stays as it ended, beside the one that takes its place.
func TestPod_EvictedByTheKubelet_TheClaimIsBoundAgain(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	pods := w.Kube.CoreV1().Pods(w.namespace)
	before, err := w.PodsOf(t.Context(), w.namespace, claim.UID)
	require.NoError(t, err)
	require.Len(t, before, 1)
	evicted := &before[0]
	evicted.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
	_, err = pods.UpdateStatus(t.Context(), evicted, metav1.UpdateOptions{})
	require.NoError(t, err)

	framework.Eventually(t, framework.BoundTimeout, "another pod runs", func(ctx context.Context) ([]corev1.Pod, error) {
		return w.PodsOf(ctx, w.namespace, claim.UID)
	}, func(now []corev1.Pod) bool {
		running := 0
		for _, pod := range now {
			if pod.Status.Phase == corev1.PodRunning && pod.UID != evicted.UID {
				running++
			}
		}
		return running == 1
	})
	again := w.Claim(t, w.namespace, claim.Name, framework.Bound)
	assert.Equal(t, claim.UID, again.UID)
	assert.Equal(t, claim.Status.Addresses, again.Status.Addresses)
}

// A node is removed with what ran on it. Until Kubernetes collects its pods, which takes it most of a minute, they count as
// ready, and so does the claim.
func TestNode_Gone_TheClaimWaitsInTheSchedulersWords_AndIsBoundOnTheNext(t *testing.T) {
	var own string
	w := newWorld(t, func(c *framework.ClassWrapper) {
		own = c.Cluster().Name
		c.With(func(s *v1alpha1.SandboxClassSpec) { s.NodeSelector = map[string]string{nodeLabel: own} })
	})
	w.fakeNode(own + "-a")
	claim := w.bound("s")
	history := w.Record(t, w.namespace)
	require.NoError(t, w.Kube.CoreV1().Nodes().Delete(t.Context(), own+"-a", metav1.DeleteOptions{}))
	waits := history.First(t, framework.PodTimeout, claim.Name, "cannot be placed", unschedulable)
	assert.Contains(t, framework.Message(waits.Claim), "nodes are available")
	// The scheduler may say it in other words each time.
	type words struct{ Told, Stands string }
	framework.Eventually(t, framework.Shortly, "whoever waits is told what stands on the claim", func(context.Context) (words, error) {
		told, err := w.acquireNow(w.agent, "s")
		if err != nil {
			return words{}, err
		}
		return words{told.Message, framework.Message(w.read(claim.Name))}, nil
	}, func(now words) bool {
		return now.Told == now.Stands && strings.Contains(now.Told, "nodes are available")
	})

	w.fakeNode(own + "-b")
	again := w.Claim(t, w.namespace, claim.Name, framework.Bound)
	assert.Equal(t, claim.UID, again.UID)
	assert.Equal(t, claim.Status.Addresses, again.Status.Addresses)
}

// nodeLabel has a node to itself.
const nodeLabel = "sandbox.omnia/only"

// fakeNode makes a node like the cluster's fake ones, for the world's own class alone, until the test ends.
func (w *world) fakeNode(name string) {
	w.t.Helper()
	like := w.anyFakeNode()
	like.Labels[nodeLabel], like.Labels[corev1.LabelHostname] = w.class, name
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: like.Labels, Annotations: like.Annotations},
		Spec:       corev1.NodeSpec{Taints: like.Spec.Taints},
		Status:     corev1.NodeStatus{Allocatable: like.Status.Allocatable, Capacity: like.Status.Capacity},
	}
	w.Create(w.t, node)
	w.t.Cleanup(func() {
		err := w.Kube.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
		assert.True(w.t, err == nil || apierrors.IsNotFound(err), "got %v", err)
	})
}

// anyFakeNode is one of the cluster's fake nodes.
func (w *world) anyFakeNode() *corev1.Node {
	w.t.Helper()
	nodes, err := w.Kube.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{LabelSelector: framework.FakeNodes})
	require.NoError(w.t, err)
	require.NotEmpty(w.t, nodes.Items, "the cluster has no fake node: bring it up with --fake-nodes=2")
	return &nodes.Items[0]
}
