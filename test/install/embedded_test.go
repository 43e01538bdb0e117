package install

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestEmbedded_ServerReplaced_ClaimsAndSandboxesStay_UninstallLeavesNothing(t *testing.T) {
	w := install(t, framework.LocalOverlay, nil)
	sandbox := w.acquire("s")
	pod := w.pod(sandbox)

	servers := w.servers()
	require.Len(t, servers, 1)
	require.NoError(t, w.Kube.CoreV1().Pods(framework.SystemNamespace).Delete(t.Context(), servers[0].Name, metav1.DeleteOptions{}))
	framework.Eventually(t, framework.PodTimeout, "another pod of the server is ready", func(ctx context.Context) (*corev1.Pod, error) {
		return w.Kube.CoreV1().Pods(framework.SystemNamespace).Get(ctx, servers[0].Name, metav1.GetOptions{})
	}, func(p *corev1.Pod) bool { return p.UID != servers[0].UID && ready(p) })
	require.NoError(t, w.WaitServed(t.Context()))

	again := w.acquire("s")
	assert.Equal(t, sandbox.UID, again.UID, "the claims are on the volume")
	assert.Equal(t, pod.UID, w.pod(again).UID, "nothing happened to the sandbox")

	before := w.namespaces()
	w.uninstall()
	w.nothingLeft(before)
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (w *world) namespaces() []string {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Namespaces().List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	var names []string
	for _, namespace := range list.Items {
		names = append(names, namespace.Name)
	}
	return names
}

// nothingLeft looks for what an uninstallation could leave: objects of ours, sandboxes, and namespaces that do not end.
func (w *world) nothingLeft(before []string) {
	w.t.Helper()
	require.Contains(w.t, before, framework.SystemNamespace)
	assert.NotContains(w.t, w.namespaces(), framework.SystemNamespace)
	out, err := w.Kubectl(w.t.Context(), "get", "clusterroles,clusterrolebindings,apiservices,flowschemas,prioritylevelconfigurations",
		"--selector", "app.kubernetes.io/part-of=omnia-sandboxes", "--output", "name")
	require.NoError(w.t, err)
	assert.Empty(w.t, out)
	out, err = w.Kubectl(w.t.Context(), "--namespace", metav1.NamespaceSystem, "get", "rolebindings",
		"--selector", "app.kubernetes.io/part-of=omnia-sandboxes", "--output", "name")
	require.NoError(w.t, err)
	assert.Empty(w.t, out)
	framework.Eventually(w.t, framework.GoneTimeout, "the sandboxes are gone", func(ctx context.Context) (string, error) {
		return w.Kubectl(ctx, "--namespace", w.namespace, "get", "deployments,pods,services,networkpolicies", "--output", "name")
	}, func(names string) bool { return strings.TrimSpace(names) == "" })
	// A group that is announced and not served would hold up every namespace of the cluster.
	require.NoError(w.t, w.Kube.CoreV1().Namespaces().Delete(w.t.Context(), w.namespace, metav1.DeleteOptions{}))
	framework.Eventually(w.t, framework.GoneTimeout, "a namespace can be deleted", func(ctx context.Context) (bool, error) {
		_, err := w.Kube.CoreV1().Namespaces().Get(ctx, w.namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}, func(gone bool) bool { return gone })
}
