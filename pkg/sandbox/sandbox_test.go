package sandbox

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

func claimOf(class v1alpha1.SandboxClassSpec) *v1alpha1.SandboxClaim {
	return &v1alpha1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "my-agents", Name: "my-agent-sbx-7k2qp", UID: "0b9f6b1e-0000-4000-8000-000000000001"},
		Spec:       v1alpha1.SandboxClaimSpec{AgentRuntimeRef: &v1alpha1.AgentRuntimeReference{Name: "my-agent"}, SessionID: "session-7", Handle: "codegen/default"},
		Status:     v1alpha1.SandboxClaimStatus{SandboxName: "my-agent-sbx-7k2qp-sandbox", Class: &class},
	}
}

func plain() v1alpha1.SandboxClassSpec {
	return v1alpha1.SandboxClassSpec{
		Image: "example.test/shell:1", ImagePullPolicy: corev1.PullIfNotPresent,
		Ports: []v1alpha1.ClassPort{{Name: "mcp", Port: 8080}},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("512Mi")}},
	}
}

func everything() v1alpha1.SandboxClassSpec {
	class := plain()
	class.Args = []string{"-addr=:8080"}
	class.Env = []v1alpha1.EnvVar{{Name: "HOME", Value: "/cache"}, {Name: "EMPTY"}, {Name: "LITERAL", Value: "$(HOME) $$5"}}
	class.Ports = append(class.Ports, v1alpha1.ClassPort{Name: "view", Port: 9090})
	class.Readiness = &v1alpha1.Readiness{Port: "view", HTTPGet: &v1alpha1.HTTPGet{Path: "/healthz"}}
	class.Filesystem = &v1alpha1.Filesystem{ReadOnlyRoot: true, Scratch: []v1alpha1.ScratchVolume{
		{Name: "cache", MountPath: "/cache", SizeLimit: resource.MustParse("4Gi"), Medium: v1alpha1.ScratchMediumDisk},
		{Name: "tmp", MountPath: "/tmp", SizeLimit: resource.MustParse("16Mi"), Medium: v1alpha1.ScratchMediumMemory},
	}}
	class.RuntimeClassName = ptr.To("gvisor")
	class.NodeSelector = map[string]string{"pool": "agents"}
	class.Tolerations = []corev1.Toleration{{Key: "agents", Operator: corev1.TolerationOpExists}}
	class.Egress = &v1alpha1.Egress{DNS: true, AllowedServices: []v1alpha1.AllowedService{
		{Name: "mirror", Namespace: "artifacts", Ports: []int32{443}}, {Name: "queue"},
	}}
	return class
}

func TestGolden(t *testing.T) {
	for name, class := range map[string]v1alpha1.SandboxClassSpec{"plain": plain(), "everything": everything()} {
		claim := claimOf(class)
		rules, faults := Egress(claim, servicesOf(mirror(), queue()), []DNSPeer{dnsPeer(t, "kube-system/k8s-app=kube-dns")})
		assert.Empty(t, faults)
		for kind, object := range map[string]any{"deployment": Deployment(claim), "service": Service(claim), "networkpolicy": NetworkPolicy(claim, rules)} {
			t.Run(name+" "+kind, func(t *testing.T) {
				got, err := yaml.Marshal(object)
				require.NoError(t, err)
				file := filepath.Join("testdata", name+"-"+kind+".yaml")
				if *update {
					require.NoError(t, os.WriteFile(file, got, 0o600))
				}
				want, err := os.ReadFile(file)
				require.NoError(t, err)
				assert.Empty(t, cmp.Diff(string(want), string(got)), "run with -update if the change is meant: it reaches only sandboxes built from now on")
			})
		}
	}
}

func TestPolicyAndServiceMatchThePod(t *testing.T) {
	claim := claimOf(everything())
	pod := k8slabels.Set(Deployment(claim).Spec.Template.Labels)
	policy, err := metav1.LabelSelectorAsSelector(&NetworkPolicy(claim, nil).Spec.PodSelector)
	require.NoError(t, err)
	assert.True(t, policy.Matches(pod), "a policy that matches no pod binds none")
	assert.True(t, k8slabels.SelectorFromSet(Service(claim).Spec.Selector).Matches(pod))

	other := claimOf(everything())
	other.UID = "another"
	assert.False(t, policy.Matches(k8slabels.Set(Deployment(other).Spec.Template.Labels)), "nor may it match another claim's")
}

func TestDefaultReadinessDialsTheFirstPort(t *testing.T) {
	probe := Deployment(claimOf(plain())).Spec.Template.Spec.Containers[0].ReadinessProbe
	require.NotNil(t, probe.TCPSocket)
	assert.Equal(t, "mcp", probe.TCPSocket.Port.StrVal)
	assert.EqualValues(t, 1, probe.PeriodSeconds)
	assert.EqualValues(t, 10, probe.FailureThreshold)
}

// defaulted is a Deployment as the API server would store it: what is built, with its own defaults in the open fields.
func defaulted(d *appsv1.Deployment) *appsv1.Deployment {
	d = d.DeepCopy()
	d.Spec.ProgressDeadlineSeconds = ptr.To[int32](600)
	pod := &d.Spec.Template.Spec
	pod.DNSPolicy, pod.RestartPolicy, pod.SchedulerName = corev1.DNSClusterFirst, corev1.RestartPolicyAlways, "default-scheduler"
	c := &pod.Containers[0]
	c.TerminationMessagePath, c.TerminationMessagePolicy = "/dev/termination-log", corev1.TerminationMessageReadFile
	c.Resources.Requests = c.Resources.Limits.DeepCopy()
	d.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
	return d
}

func TestSameDeployment(t *testing.T) {
	built := Deployment(claimOf(everything()))
	tests := map[string]struct {
		change func(*appsv1.Deployment)
		want   bool
	}{
		"the API server's defaults: the same": {func(*appsv1.Deployment) {}, true},
		"a label more: the same":              {func(d *appsv1.Deployment) { d.Labels["team"] = "x" }, true},
		"another image":                       {func(d *appsv1.Deployment) { pod(d).Containers[0].Image = "evil" }, false},
		"two replicas":                        {func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) }, false},
		"a container more":                    {func(d *appsv1.Deployment) { pod(d).Containers = append(pod(d).Containers, corev1.Container{Name: "x"}) }, false},
		"an init container":                   {func(d *appsv1.Deployment) { pod(d).InitContainers = []corev1.Container{{Name: "x"}} }, false},
		"a volume more":                       {func(d *appsv1.Deployment) { pod(d).Volumes = append(pod(d).Volumes, corev1.Volume{Name: "x"}) }, false},
		"a variable more": {func(d *appsv1.Deployment) {
			pod(d).Containers[0].Env = append(pod(d).Containers[0].Env, corev1.EnvVar{Name: "X"})
		}, false},
		"a command":          {func(d *appsv1.Deployment) { pod(d).Containers[0].Command = []string{"sh"} }, false},
		"the host's network": {func(d *appsv1.Deployment) { pod(d).HostNetwork = true }, false},
		"a token":            {func(d *appsv1.Deployment) { pod(d).AutomountServiceAccountToken = ptr.To(true) }, false},
		"a capability": {func(d *appsv1.Deployment) {
			pod(d).Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
		}, false},
		"privileged":  {func(d *appsv1.Deployment) { pod(d).Containers[0].SecurityContext.Privileged = ptr.To(true) }, false},
		"no identity": {func(d *appsv1.Deployment) { delete(d.Spec.Template.Labels, v1alpha1.LabelClaimUID) }, false},
		"a higher limit": {func(d *appsv1.Deployment) {
			pod(d).Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("8")
		}, false},
		"paused, so that it mends nothing": {func(d *appsv1.Deployment) { d.Spec.Paused = true }, false},
		"a group more":                     {func(d *appsv1.Deployment) { pod(d).SecurityContext.SupplementalGroups = []int64{0} }, false},
		"another node":                     {func(d *appsv1.Deployment) { pod(d).NodeSelector["x"] = "y" }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stands := defaulted(built)
			tt.change(stands)
			assert.Equal(t, tt.want, SameDeployment(built, stands))
		})
	}
}

func pod(d *appsv1.Deployment) *corev1.PodSpec { return &d.Spec.Template.Spec }

func TestSameNetworkPolicy(t *testing.T) {
	built := NetworkPolicy(claimOf(plain()), nil)
	for name, change := range map[string]func(*networkingv1.NetworkPolicySpec){
		"an egress rule more": func(s *networkingv1.NetworkPolicySpec) { s.Egress = []networkingv1.NetworkPolicyEgressRule{{}} },
		"an ingress rule more": func(s *networkingv1.NetworkPolicySpec) {
			s.Ingress = append(s.Ingress, networkingv1.NetworkPolicyIngressRule{})
		},
		"egress no longer bound": func(s *networkingv1.NetworkPolicySpec) { s.PolicyTypes = s.PolicyTypes[:1] },
		"another pod selected":   func(s *networkingv1.NetworkPolicySpec) { s.PodSelector.MatchLabels = map[string]string{"a": "b"} },
		"a peer's namespace open": func(s *networkingv1.NetworkPolicySpec) {
			s.Ingress[0].From[0].NamespaceSelector = &metav1.LabelSelector{}
		},
	} {
		t.Run(name+": not the same", func(t *testing.T) {
			stands := built.DeepCopy()
			change(&stands.Spec)
			assert.False(t, SameNetworkPolicy(built, stands))
		})
	}
	assert.True(t, SameNetworkPolicy(built, built.DeepCopy()))
}

func TestSameService(t *testing.T) {
	built := Service(claimOf(plain()))
	stands := built.DeepCopy()
	stands.Spec.ClusterIP, stands.Spec.ClusterIPs = "10.0.0.1", []string{"10.0.0.1"}
	assert.True(t, SameService(built, stands), "what the API server fills in is its own")
	for name, change := range map[string]func(*corev1.ServiceSpec){
		"another port":     func(s *corev1.ServiceSpec) { s.Ports[0].TargetPort.StrVal = "x" },
		"another selector": func(s *corev1.ServiceSpec) { s.Selector = map[string]string{"a": "b"} },
		"a node port":      func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort },
		"an external IP":   func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"192.0.2.1"} },
	} {
		t.Run(name+": not the same", func(t *testing.T) {
			changed := stands.DeepCopy()
			change(&changed.Spec)
			assert.False(t, SameService(built, changed))
		})
	}
}

func TestAddresses(t *testing.T) {
	claim := claimOf(everything())
	assert.Equal(t, map[string]string{"mcp": "10.0.0.1:8080", "view": "10.0.0.1:9090"}, Addresses(claim, "10.0.0.1"))
	assert.Equal(t, "[fd00::1]:8080", Addresses(claim, "fd00::1")["mcp"])
}

func TestNameFitsAService(t *testing.T) {
	claim := &v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 55)}}
	assert.Len(t, Name(claim), 63)
}
