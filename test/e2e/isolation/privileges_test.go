package isolation

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

// freePod is a pod that may do everything, within the host's own namespaces. It listens nowhere.
func freePod(namespace, name string) *corev1.Pod {
	pod := attackerPod(namespace, name, nil, "serve", "-http", "")
	pod.Spec.ServiceAccountName = account
	pod.Spec.HostNetwork, pod.Spec.HostPID, pod.Spec.HostIPC = true, true, true
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0), RunAsGroup: ptr.To[int64](0)}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	return pod
}

// gainingPod is a pod of the sandboxes' own user that may gain privileges, and is bound in nothing else that matters here.
func gainingPod(namespace, name string) *corev1.Pod {
	pod := attackerPod(namespace, name, nil, "serve", "-http", "")
	pod.Spec.ServiceAccountName = account
	pod.Spec.SecurityContext = nil
	pod.Spec.Containers[0].SecurityContext = nil
	return pod
}

// privileged makes a namespace whose pods may do everything.
func (w *world) privileged() string {
	w.t.Helper()
	namespace := w.Namespace(w.t)
	_, err := w.Kubectl(w.t.Context(), "label", "--overwrite", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged")
	require.NoError(w.t, err)
	w.ServiceAccount(w.t, namespace, account)
	return namespace
}

func TestPrivileges_NoneIsHadOrGained(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	namespace := w.privileged()
	s := w.bound(plain, "privileges")
	free := w.StartPod(t, freePod(namespace, "free"))
	gaining := w.StartPod(t, gainingPod(namespace, "gaining"))
	rows := []struct {
		promise string
		attempt []string
		control *corev1.Pod
	}{
		{"privileges: it cannot become root by a setuid program", []string{"setuid"}, gaining},
		{"privileges: no_new_privs is set", []string{"status", "NoNewPrivs"}, gaining},
		{"privileges: system calls are filtered", []string{"status", "Seccomp"}, free},
		{"privileges: its user is not root", []string{"status", "Uid"}, free},
		{"privileges: its group is not root's", []string{"status", "Gid"}, free},
		{"privileges: no capability is effective", []string{"status", "CapEff"}, free},
		{"privileges: no capability is permitted", []string{"status", "CapPrm"}, free},
		{"privileges: no capability can be had", []string{"status", "CapBnd"}, gaining},
		{"privileges: it cannot mount", []string{"mount", framework.AttackerFolder}, free},
		{"privileges: it cannot make a user namespace", []string{"userns"}, free},
		{"privileges: it cannot read or forge frames", []string{"packet"}, free},
		{"privileges: it cannot forge packets", []string{"rawsocket"}, free},
		{"privileges: it cannot write the kernel's settings", []string{"sysctl"}, free},
		{"privileges: it cannot see, or take hold of, a process of another container", []string{"ptrace", "pause"}, free},
	}
	for _, kind := range []string{"net", "pid", "ipc", "uts"} {
		host, err := os.Readlink("/proc/self/ns/" + kind)
		require.NoError(t, err)
		rows = append(rows, struct {
			promise string
			attempt []string
			control *corev1.Pod
		}{"privileges: the host's " + kind + " namespace is not its own", []string{"namespace", kind, host}, free})
	}
	var all [][]string
	controls := map[*corev1.Pod][][]string{}
	for _, r := range rows {
		all, controls[r.control] = append(all, r.attempt), append(controls[r.control], r.attempt)
	}
	denied, allowed := s.try(all...), map[*corev1.Pod][]report.Verdict{}
	for pod, attempts := range controls {
		allowed[pod] = w.tryIn(namespace, pod.Name, attempts...)
	}
	for i, r := range rows {
		p := prove(t, r.promise)
		p.denied("in the sandbox", denied[i])
		p.allowed("in pod "+r.control.Name, allowed[r.control][0])
		allowed[r.control] = allowed[r.control][1:]
	}
}

// What a class cannot ask for, admission would refuse; and it judges what the sandbox' pod is.
func TestPodSecurity_RestrictedAdmitsTheSandbox_AndNothingOfTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]change{"everything": func(s *v1alpha1.SandboxClassSpec) {
		s.Env = []v1alpha1.EnvVar{{Name: "HOME", Value: "/tmp"}}
		s.Filesystem = &v1alpha1.Filesystem{ReadOnlyRoot: true, Scratch: []v1alpha1.ScratchVolume{{Name: "cache", MountPath: "/cache", SizeLimit: size("16Mi")}}}
		s.Trusted, s.View = true, &v1alpha1.View{Port: "mcp"}
		s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}})
	namespace, err := w.Kube.CoreV1().Namespaces().Get(t.Context(), w.namespace, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "restricted", namespace.Labels["pod-security.kubernetes.io/enforce"])
	sandboxes := []*sandbox{w.bound(plain, "admitted"), w.bound("everything", "admitted")}
	for name, give := range map[string]func(*corev1.PodSpec){
		"hostNetwork": func(p *corev1.PodSpec) { p.HostNetwork, p.SecurityContext.Sysctls = true, nil },
		"hostPID":     func(p *corev1.PodSpec) { p.HostPID = true },
		"hostIPC":     func(p *corev1.PodSpec) { p.HostIPC = true },
		"hostPath": func(p *corev1.PodSpec) {
			p.Volumes = append(p.Volumes, corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		},
		"privileged": func(p *corev1.PodSpec) {
			p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		},
	} {
		p := prove(t, "pod shape: no "+name)
		for _, s := range sandboxes {
			p.attempted(true, "the pod of %s was admitted to a namespace that enforces restricted", s.claim.Spec.Handle)
		}
		pod := sandboxes[0].pod.DeepCopy()
		pod.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: "host"}
		give(&pod.Spec)
		_, err := w.Kube.CoreV1().Pods(w.namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		p.controlled(err != nil, "the same pod with %s: %v", name, err)
		if assert.Error(t, err) {
			assert.Contains(t, err.Error(), "violates PodSecurity")
		}
	}
}

func TestSecrets_NoToken_NoServiceVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.Create(t, service(w.namespace, "beside", app("beside"), corev1.ServicePort{Port: 80}))
	s := w.bound(plain, "secrets")
	bare := w.start(w.namespace, "bare", nil)
	for promise, attempt := range map[string]string{
		"secrets: no ServiceAccount token is to be read": "token",
		"secrets: no variable tells of a Service":        "env",
	} {
		p := prove(t, promise)
		p.denied("in the sandbox", s.try([]string{attempt})[0])
		p.allowed("in a bare pod", w.tryIn(w.namespace, bare.Name, []string{attempt})[0])
	}
}

func TestReadOnlyRoot_ItsOwnFolderIsNotWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]change{
		"read-only": func(s *v1alpha1.SandboxClassSpec) { s.Filesystem = &v1alpha1.Filesystem{ReadOnlyRoot: true} },
	})
	shut, writable := w.bound("read-only", "written"), w.bound(plain, "written")
	p := prove(t, "readOnlyRoot: a folder of the image that is the user's own cannot be written")
	p.denied("with readOnlyRoot", shut.try([]string{"write", framework.AttackerFolder})[0])
	p.allowed("without it", writable.try([]string{"write", framework.AttackerFolder})[0])
	p.allowed("with it, in /tmp", shut.try([]string{"write", "/tmp"})[0])
}
