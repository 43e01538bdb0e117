package framework

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// PodTimeout is for a pod to be placed, run and end, on a busy machine.
const PodTimeout = 2 * time.Minute

// OfClaim selects what was built from a claim.
func OfClaim(claim types.UID) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: v1alpha1.LabelClaimUID + "=" + string(claim)}
}

// PodsOf are the pods of a claim, those that are ending too.
func (c *Cluster) PodsOf(ctx context.Context, namespace string, claim types.UID) ([]corev1.Pod, error) {
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, OfClaim(claim))
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// AgentLabels are what Omnia's operator puts on a runtime's pods, and what a sandbox admits.
func AgentLabels(runtime string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":         "omnia-agent",
		"app.kubernetes.io/instance":     runtime,
		"app.kubernetes.io/managed-by":   "omnia-operator",
		"omnia.altairalabs.ai/component": "agent",
	}
}

// AgentPod is a pod of the sample agent's image, within the restricted Pod Security Standard, that runs once.
func AgentPod(namespace, name, serviceAccount string, labels map[string]string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Spec: corev1.PodSpec{
			ServiceAccountName:            serviceAccount,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   ptr.To(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "agent", Image: AgentImage, ImagePullPolicy: corev1.PullIfNotPresent, Args: args,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// RunPod runs a pod to its end and gives its log and its container's exit code.
func (c *Cluster) RunPod(t testing.TB, pod *corev1.Pod) (log string, exitCode int32) {
	t.Helper()
	c.Create(t, pod)
	ended := c.awaitPod(t, pod, "ends", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Terminated != nil
	})
	stream, err := c.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Stream(t.Context())
	if err != nil {
		t.Fatalf("reading the log of pod %s: %v", pod.Name, err)
	}
	defer func() { _ = stream.Close() }()
	var text bytes.Buffer
	if _, err := io.Copy(&text, stream); err != nil {
		t.Fatalf("reading the log of pod %s: %v", pod.Name, err)
	}
	return text.String(), ended.Status.ContainerStatuses[0].State.Terminated.ExitCode
}

// StartPod starts a pod and gives it once it runs and has an address.
func (c *Cluster) StartPod(t testing.TB, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	c.Create(t, pod)
	return c.awaitPod(t, pod, "runs", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" })
}

func (c *Cluster) awaitPod(t testing.TB, pod *corev1.Pod, what string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	return Eventually(t, PodTimeout, fmt.Sprintf("pod %s %s", pod.Name, what), func(ctx context.Context) (*corev1.Pod, error) {
		return c.Kube.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	}, wanted)
}

// ProcessOf finds a process of a pod on this machine, which is the real node, by the pod's UID and the name of its program.
func ProcessOf(pod types.UID, program string) (*os.Process, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	// The kernel keeps the first 15 bytes of a name.
	name := program[:min(len(program), 15)] + "\n"
	for _, file := range groups {
		group, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(group, []byte("pod"+string(pod))) { // it may have ended meanwhile
			continue
		}
		dir := filepath.Dir(file)
		if command, err := os.ReadFile(filepath.Join(dir, "comm")); err != nil || string(command) != name {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		return os.FindProcess(pid)
	}
	return nil, fmt.Errorf("no process %s of pod %s on this machine", program, pod)
}
