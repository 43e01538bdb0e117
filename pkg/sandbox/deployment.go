package sandbox

import (
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

const (
	containerName = "sandbox"
	// sandboxUser is the user and group of every sandbox.
	sandboxUser int64 = 65532

	terminationGraceSeconds int64 = 10
	probePeriodSeconds      int32 = 1
	probeTimeoutSeconds     int32 = 1
	probeFailureThreshold   int32 = 10

	tmpPath = "/tmp"
)

// tmpLimit bounds /tmp, which every sandbox has: there are clusters whose policies refuse a pod without a volume.
var tmpLimit = resource.MustParse("512Mi")

// noPing keeps every group from sending ICMP echoes, for which there is no rule in a NetworkPolicy: some plugins let them pass, and
// container runtimes let everybody send them.
var noPing = corev1.Sysctl{Name: "net.ipv4.ping_group_range", Value: "1 0"}

// apiServerVariables are those by which the kubelet tells every container where the API server is, service links or not, and
// which it leaves as a container has them.
var apiServerVariables = []string{
	"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS", "KUBERNETES_PORT",
	"KUBERNETES_PORT_443_TCP", "KUBERNETES_PORT_443_TCP_PROTO", "KUBERNETES_PORT_443_TCP_PORT", "KUBERNETES_PORT_443_TCP_ADDR",
}

// Deployment runs the claim's one pod, under the restricted Pod Security Standard whatever the class says.
func Deployment(claim *v1alpha1.SandboxClaim) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: meta(claim),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			// A second pod beside the first would be a second sandbox.
			Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			RevisionHistoryLimit: ptr.To[int32](0),
			Selector:             &metav1.LabelSelector{MatchLabels: selector(claim)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(claim)},
				Spec:       podSpec(class(claim)),
			},
		},
	}
}

func podSpec(class *v1alpha1.SandboxClassSpec) corev1.PodSpec {
	volumes, mounts := volumes(class)
	return corev1.PodSpec{
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To(terminationGraceSeconds),
		RuntimeClassName:              class.RuntimeClassName,
		NodeSelector:                  maps.Clone(class.NodeSelector),
		Tolerations:                   slices.Clone(class.Tolerations),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(sandboxUser), RunAsGroup: ptr.To(sandboxUser),
			FSGroup: ptr.To(sandboxUser), FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			Sysctls:        []corev1.Sysctl{noPing},
		},
		Volumes: volumes,
		Containers: []corev1.Container{{
			Name:            containerName,
			Image:           class.Image,
			ImagePullPolicy: class.ImagePullPolicy,
			Args:            slices.Clone(class.Args),
			Env:             environment(class.Env),
			Ports:           containerPorts(class.Ports),
			Resources:       *class.Resources.DeepCopy(),
			ReadinessProbe:  readiness(class),
			VolumeMounts:    mounts,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				ReadOnlyRootFilesystem:   ptr.To(class.Filesystem != nil && class.Filesystem.ReadOnlyRoot),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

// environment keeps a class's values literal: the kubelet would expand $(NAME), and make $ of $$. It leaves empty where the API
// server is.
func environment(env []v1alpha1.EnvVar) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, e := range env {
		out = append(out, corev1.EnvVar{Name: e.Name, Value: strings.ReplaceAll(e.Value, "$", "$$")})
	}
	for _, name := range apiServerVariables {
		if !slices.ContainsFunc(env, func(e v1alpha1.EnvVar) bool { return e.Name == name }) {
			out = append(out, corev1.EnvVar{Name: name})
		}
	}
	return out
}

func containerPorts(ports []v1alpha1.ClassPort) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, p := range ports {
		out = append(out, corev1.ContainerPort{Name: p.Name, ContainerPort: p.Port, Protocol: corev1.ProtocolTCP})
	}
	return out
}

// readiness probes every second from pod start; ten failures in a row take a running sandbox out of its Service.
func readiness(class *v1alpha1.SandboxClassSpec) *corev1.Probe {
	port := intstr.FromString(class.Ports[0].Name)
	handler := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
	if r := class.Readiness; r != nil {
		if r.Port != "" {
			port = intstr.FromString(r.Port)
		}
		handler.TCPSocket.Port = port
		if r.HTTPGet != nil {
			handler = corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: r.HTTPGet.Path, Port: port, Scheme: corev1.URISchemeHTTP}}
		}
	}
	return &corev1.Probe{
		ProbeHandler: handler, PeriodSeconds: probePeriodSeconds, TimeoutSeconds: probeTimeoutSeconds,
		SuccessThreshold: 1, FailureThreshold: probeFailureThreshold,
	}
}

func volumes(class *v1alpha1.SandboxClassSpec) ([]corev1.Volume, []corev1.VolumeMount) {
	var volumes []corev1.Volume
	var mounts []corev1.VolumeMount
	add := func(name, at string, limit resource.Quantity, medium corev1.StorageMedium) {
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium, SizeLimit: &limit}}})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: at})
	}
	hasTmp := false
	if class.Filesystem != nil {
		for _, v := range class.Filesystem.Scratch {
			medium := corev1.StorageMediumDefault
			if v.Medium == v1alpha1.ScratchMediumMemory {
				medium = corev1.StorageMediumMemory
			}
			add(v.Name, v.MountPath, v.SizeLimit.DeepCopy(), medium)
			hasTmp = hasTmp || path.Clean(v.MountPath) == tmpPath
		}
	}
	if !hasTmp {
		add(v1alpha1.ReservedScratchName, tmpPath, tmpLimit.DeepCopy(), corev1.StorageMediumDefault)
	}
	return volumes, mounts
}

// Record names a Deployment as it stands.
func Record(deployment *appsv1.Deployment) *v1alpha1.DeploymentRecord {
	return &v1alpha1.DeploymentRecord{UID: deployment.UID, Generation: deployment.Generation}
}

// Untouched says whether a Deployment that stands is the one that the claim was last Bound with, its spec not changed since.
// It is then left as it is, whatever this server would build: an upgraded server replaces no sandbox under its agent.
func Untouched(claim *v1alpha1.SandboxClaim, stands *appsv1.Deployment) bool {
	record := claim.Status.Deployment
	return record != nil && *record == *Record(stands)
}

// SameDeployment says whether a Deployment that stands is as it was built. What the API server or a cluster's admission
// added to fields that are left open does not count; a container, a volume or a label more does.
func SameDeployment(built, stands *appsv1.Deployment) bool {
	b, s := &built.Spec, &stands.Spec
	return Labelled(built, stands) &&
		equality.Semantic.DeepEqual(b.Replicas, s.Replicas) &&
		b.Strategy.Type == s.Strategy.Type && !s.Paused &&
		equality.Semantic.DeepEqual(b.Template.Labels, s.Template.Labels) &&
		samePod(&b.Template.Spec, &s.Template.Spec)
}

func samePod(built, stands *corev1.PodSpec) bool {
	if len(stands.Containers) != len(built.Containers) || len(stands.InitContainers) != 0 || len(stands.EphemeralContainers) != 0 ||
		len(stands.Volumes) != len(built.Volumes) || stands.HostNetwork || stands.HostPID || stands.HostIPC ||
		!equality.Semantic.DeepEqual(built.NodeSelector, stands.NodeSelector) || len(stands.Tolerations) != len(built.Tolerations) {
		return false
	}
	b, s := &built.Containers[0], &stands.Containers[0]
	return len(s.Env) == len(b.Env) && len(s.EnvFrom) == 0 && len(s.Args) == len(b.Args) && len(s.Command) == 0 &&
		len(s.Ports) == len(b.Ports) && len(s.VolumeMounts) == len(b.VolumeMounts) &&
		s.Lifecycle == nil && s.LivenessProbe == nil && s.StartupProbe == nil &&
		equality.Semantic.DeepEqual(b.SecurityContext, s.SecurityContext) &&
		equality.Semantic.DeepEqual(built.SecurityContext, stands.SecurityContext) &&
		equality.Semantic.DeepDerivative(*built, *stands)
}

// Labelled says whether an object that stands bears the labels that it was built with.
func Labelled(built, stands metav1.Object) bool {
	have := stands.GetLabels()
	for k, v := range built.GetLabels() {
		if have[k] != v {
			return false
		}
	}
	return true
}
