package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestAgent_AcquiresCallsATool_TouchesAndReleases(t *testing.T) {
	w := newWorld(t, asItIs)
	_, err := w.Kubectl(t.Context(), "--namespace", w.namespace, "patch", "agentruntime", runtimeName, "--type=merge", "--patch", `{"spec":{"sandbox":{"releaseGrace":"1s"}}}`)
	require.NoError(t, err)
	log, code := w.RunPod(t, framework.AgentPod(w.namespace, "player", facade, framework.AgentLabels(runtimeName),
		"play", "-runtime", runtimeName, "-session", "played", "-handle", handle))
	require.Zero(t, code, "%s", log)
	for _, want := range []string{"created: true", "uid=65532 gid=65532", "hello from the sandbox", "release"} {
		assert.Contains(t, log, want)
	}
	framework.Eventually(t, framework.GoneTimeout, "the released sandbox is gone", func(ctx context.Context) (string, error) {
		return w.Kubectl(ctx, "--namespace", w.namespace, "get", "sbclaim,deploy,svc,netpol", "--output", "name")
	}, func(names string) bool { return strings.TrimSpace(names) == "" })
}

func TestStrangerPod_IsRefused(t *testing.T) {
	w := newWorld(t, asItIs)
	log, code := w.RunPod(t, framework.AgentPod(w.namespace, "stranger", "stranger", nil, "acquire", "-runtime", runtimeName, "-handle", handle))
	require.NotZero(t, code)
	assert.Contains(t, log, "is not the ServiceAccount of AgentRuntime")
}

func TestPod_Shape(t *testing.T) {
	w := newWorld(t, func(s *v1alpha1.SandboxClassSpec) { s.Filesystem = &v1alpha1.Filesystem{ReadOnlyRoot: true} })
	claim := w.bound("shape")
	pod := w.pod(claim)
	assert.Equal(t, "shape", pod.Labels[v1alpha1.LabelSession])
	require.Len(t, pod.Spec.Containers, 1)
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		assert.Equal(t, "/tmp", mount.MountPath, "no ServiceAccount token, no other volume")
	}
	assert.EqualValues(t, 65532, *pod.Spec.SecurityContext.RunAsUser)
	assert.True(t, *pod.Spec.SecurityContext.RunAsNonRoot)
	assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.Spec.SecurityContext.SeccompProfile.Type)
	assert.True(t, *pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, corev1.PodQOSBurstable, pod.Status.QOSClass)
}

func TestNetworkPolicy_LetsTheRuntimeInAndNothingOut(t *testing.T) {
	w := newWorld(t, asItIs)
	address := w.bound("isolated").Status.Addresses["mcp"]
	other := w.StartPod(t, framework.AgentPod(w.namespace, "other", "stranger", nil, "listen", "-addr", ":8080"))
	w.StartPod(t, framework.AgentPod(w.namespace, "runtime", facade, framework.AgentLabels(runtimeName), "sleep"))
	w.StartPod(t, framework.AgentPod(w.namespace, "knocker", facade, nil, "sleep"))
	apiserver, err := w.Kube.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	require.NoError(t, err)
	targets := map[string]string{"another pod": other.Status.PodIP + ":8080", "kube-apiserver": apiserver.Spec.ClusterIP + ":443", "the node": w.Info.NodeIP + ":6443"}

	// A network plugin takes a moment to learn of a pod, so a refusal proves something only after the pod was let through elsewhere.
	w.reaches("runtime", address)
	w.reaches("knocker", targets["another pod"])
	out, err := w.exec("knocker", "dial", address)
	require.Error(t, err, "a pod that is not labelled as the runtime reaches the sandbox: %s", out)
	for name, target := range targets {
		w.reaches("runtime", target)
		out, err := w.exec("runtime", "call", "-address", address, "-tool", "shell", "-args", `{"command":"dial `+target+`"}`)
		require.NoError(t, err)
		assert.NotContains(t, out, "connected", "the sandbox reached %s", name)
		assert.Contains(t, out, "dial:", "the sandbox tried to reach %s", name)
	}
}

// exec runs the sample agent's program in a pod.
func (w *world) exec(pod string, args ...string) (string, error) {
	return w.Kubectl(w.t.Context(), append([]string{"--namespace", w.namespace, "exec", pod, "--", "/agent"}, args...)...)
}

// reaches waits until a pod can open a connection to the address.
func (w *world) reaches(pod, address string) {
	w.t.Helper()
	framework.Eventually(w.t, framework.Shortly, "pod "+pod+" reaches "+address, func(context.Context) (string, error) {
		return w.exec(pod, "dial", address)
	}, func(string) bool { return true })
}
