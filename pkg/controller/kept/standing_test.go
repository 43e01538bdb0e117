package kept

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// standing is a Bound claim with all that stands for it, as an API server gives them: with defaults, status and
// managedFields, each decoded by itself, so that none shares memory with another.
type standing struct {
	claim      *v1alpha1.SandboxClaim
	policy     *networkingv1.NetworkPolicy
	service    *corev1.Service
	deployment *appsv1.Deployment
	pod        *corev1.Pod
	slice      *discoveryv1.EndpointSlice
}

func standingClaim(t testing.TB, i int) standing {
	t.Helper()
	claim := boundClaim(i)
	s := standing{claim: claim, policy: sandbox.NetworkPolicy(claim, nil), service: sandbox.Service(claim), deployment: sandbox.Deployment(claim)}
	for kind, object := range map[string]client.Object{"c": s.policy, "d": s.service, "e": s.deployment} {
		made(object, uid(kind, i), writtenBy("sandbox-apiserver", "", builtFields))
	}
	completeService(s.service, i)
	completeDeployment(s.deployment)
	s.pod = podOf(s.deployment, i)
	s.slice = sliceOf(s.service, s.pod, i)

	out := standing{
		claim: &v1alpha1.SandboxClaim{}, policy: &networkingv1.NetworkPolicy{}, service: &corev1.Service{},
		deployment: &appsv1.Deployment{}, pod: &corev1.Pod{}, slice: &discoveryv1.EndpointSlice{},
	}
	fromJSON(t, s.claim, out.claim)
	fromProtobuf(t, s.policy, out.policy)
	fromProtobuf(t, s.service, out.service)
	fromProtobuf(t, s.deployment, out.deployment)
	fromProtobuf(t, s.pod, out.pod)
	fromProtobuf(t, s.slice, out.slice)
	return out
}

// fromJSON decodes as our own group is.
func fromJSON(t testing.TB, in, out any) {
	t.Helper()
	text, err := json.Marshal(in)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, out))
}

// fromProtobuf decodes as the host's kinds are.
func fromProtobuf(t testing.TB, in interface{ Marshal() ([]byte, error) }, out interface{ Unmarshal([]byte) error }) {
	t.Helper()
	text, err := in.Marshal()
	require.NoError(t, err)
	require.NoError(t, out.Unmarshal(text))
}

func uid(kind string, i int) types.UID {
	return types.UID(fmt.Sprintf("%s0000000-0000-4000-8000-%012d", kind, i))
}

func made(object client.Object, uid types.UID, by ...metav1.ManagedFieldsEntry) {
	object.SetUID(uid)
	object.SetResourceVersion("1234567")
	object.SetCreationTimestamp(metav1.Time{Time: began})
	object.SetGeneration(1)
	object.SetManagedFields(by)
}

const (
	builtFields = `{"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{}}},` +
		`"f:spec":{"f:selector":{}}}`
	statusFields = `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},` +
		`"f:status":{},"f:type":{}}},"f:observedGeneration":{}}}`
)

func writtenBy(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &metav1.Time{Time: began},
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource}
}

func boundClaim(i int) *v1alpha1.SandboxClaim {
	name, at := fmt.Sprintf("my-agent-sbx-%013d", i), &metav1.MicroTime{Time: began}
	claim := &v1alpha1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "my-agents", Name: name,
			Labels: map[string]string{v1alpha1.LabelAgentRuntime: "my-agent", v1alpha1.LabelSession: string(uid("5", i))},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: omniav1alpha1.SchemeGroupVersion.String(), Kind: "AgentRuntime", Name: "my-agent",
				UID: "0b9f6b1e-0000-4000-8000-000000000001", BlockOwnerDeletion: ptr.To(true)}},
		},
		Spec: v1alpha1.SandboxClaimSpec{
			AgentRuntimeRef: &v1alpha1.AgentRuntimeReference{Name: "my-agent"},
			ClassRef:        v1alpha1.ClassReference{Name: "shell-small", Kind: v1alpha1.ClusterSandboxClassKind},
			SessionID:       string(uid("5", i)), Handle: "shell/default", MaxInstances: ptr.To[int32](1),
			RequestedBy: &v1alpha1.RequestedBy{Subject: string(uid("6", i%100)), Agent: "my-agent"},
		},
		Status: v1alpha1.SandboxClaimStatus{
			ObservedGeneration: 1, Phase: v1alpha1.PhaseBound, Addresses: map[string]string{"mcp": clusterIP(i) + ":8080"}, SandboxName: name + "-sandbox",
			Class: shellClass(), Deployment: &v1alpha1.DeploymentRecord{UID: uid("e", i), Generation: 1},
			QueuedAt: at, BoundAt: at, LastUsedAt: at, Wait: &v1alpha1.WaitLease{RenewTime: *at, DurationSeconds: 35},
			Conditions: []metav1.Condition{
				isTrue(v1alpha1.ConditionProvenanceVerified, v1alpha1.ReasonWrittenByOperator, "the server wrote this claim on behalf of an acquire"),
				isTrue(v1alpha1.ConditionReady, v1alpha1.ReasonSandboxReady, "the sandbox answers at its addresses"),
			},
		},
	}
	made(claim, uid("a", i), writtenBy("sandbox-apiserver", "", builtFields), writtenBy("sandbox-apiserver", "status", statusFields))
	return claim
}

func isTrue(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: metav1.Time{Time: began}}
}

// shellClass is manifests/samples' own.
func shellClass() *v1alpha1.SandboxClassSpec {
	return &v1alpha1.SandboxClassSpec{
		Image: "sandbox.omnia/sample-sandbox:dev", ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:     []v1alpha1.ClassPort{{Name: "mcp", Port: 8080}},
		Readiness: &v1alpha1.Readiness{Port: "mcp", HTTPGet: &v1alpha1.HTTPGet{Path: "/healthz"}},
		Resources: corev1.ResourceRequirements{Requests: quantities("50m", "32Mi"), Limits: quantities("500m", "128Mi")},
	}
}

func quantities(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func clusterIP(i int) string { return fmt.Sprintf("10.96.%d.%d", i/250, i%250+1) }

func completeService(service *corev1.Service, i int) {
	spec := &service.Spec
	spec.ClusterIP, spec.ClusterIPs = clusterIP(i), []string{clusterIP(i)}
	spec.IPFamilies, spec.IPFamilyPolicy = []corev1.IPFamily{corev1.IPv4Protocol}, ptr.To(corev1.IPFamilyPolicySingleStack)
	spec.SessionAffinity, spec.InternalTrafficPolicy = corev1.ServiceAffinityNone, ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
}

func completeDeployment(deployment *appsv1.Deployment) {
	deployment.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
	deployment.ManagedFields = append(deployment.ManagedFields, writtenBy("kube-controller-manager", "status", statusFields))
	deployment.Spec.ProgressDeadlineSeconds = ptr.To[int32](600)
	completePodSpec(&deployment.Spec.Template.Spec)
	condition := func(kind appsv1.DeploymentConditionType, reason, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
			LastUpdateTime: metav1.Time{Time: began}, LastTransitionTime: metav1.Time{Time: began}}
	}
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, TerminatingReplicas: ptr.To[int32](0),
		Conditions: []appsv1.DeploymentCondition{
			condition(appsv1.DeploymentAvailable, "MinimumReplicasAvailable", "Deployment has minimum availability."),
			condition(appsv1.DeploymentProgressing, "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", deployment.Name+"-6d4c5f7b9c")),
		},
	}
}

func completePodSpec(spec *corev1.PodSpec) {
	spec.RestartPolicy, spec.DNSPolicy, spec.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, corev1.DefaultSchedulerName
	container := &spec.Containers[0]
	container.TerminationMessagePath, container.TerminationMessagePolicy = corev1.TerminationMessagePathDefault, corev1.TerminationMessageReadFile
}

func podOf(deployment *appsv1.Deployment, i int) *corev1.Pod {
	const hash = "6d4c5f7b9c"
	pod := &corev1.Pod{ObjectMeta: *deployment.Spec.Template.ObjectMeta.DeepCopy(), Spec: *deployment.Spec.Template.Spec.DeepCopy(), Status: podStatus(i)}
	pod.Namespace, pod.GenerateName, pod.Name = deployment.Namespace, deployment.Name+"-"+hash+"-", deployment.Name+"-"+hash+"-x7k2q"
	pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	replicaSet := metav1.ObjectMeta{Name: deployment.Name + "-" + hash, UID: uid("f", i)}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&replicaSet, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	made(pod, uid("b", i), writtenBy("kube-controller-manager", "", builtFields), writtenBy("kubelet", "status", statusFields))

	pod.Spec.NodeName, pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "node-17.example.test", "default", "default"
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = ptr.To[int32](0), ptr.To(corev1.PreemptLowerPriority)
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)})
	}
	return pod
}

func podStatus(i int) corev1.PodStatus {
	at, ip := metav1.Time{Time: began}, fmt.Sprintf("10.244.%d.%d", i/250, i%250+1)
	status := corev1.PodStatus{
		ObservedGeneration: 1, Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, StartTime: &at,
		HostIP: "192.0.2.17", HostIPs: []corev1.HostIP{{IP: "192.0.2.17"}}, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "sandbox", Ready: true, Started: ptr.To(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
			Image:       "sandbox.omnia/sample-sandbox:dev",
			ImageID:     "sandbox.omnia/sample-sandbox@sha256:2c1ee4b1b2e3f9a9c9f7a1c38d6e9d9f0d7b6a5c4e3f2a1b0c9d8e7f6a5b4c3d",
			ContainerID: fmt.Sprintf("containerd://%064d", i), AllocatedResources: quantities("50m", "32Mi"),
			Resources:    &corev1.ResourceRequirements{Requests: quantities("50m", "32Mi"), Limits: quantities("500m", "128Mi")},
			VolumeMounts: []corev1.VolumeMountStatus{{Name: "sandbox-tmp", MountPath: "/tmp"}},
			User:         &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: 65532, GID: 65532, SupplementalGroups: []int64{65532}}},
		}},
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: at})
	}
	return status
}

func sliceOf(service *corev1.Service, pod *corev1.Pod, i int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, GenerateName: service.Name + "-", Name: service.Name + "-b8xk4", Labels: maps.Clone(service.Labels),
			Annotations:     map[string]string{corev1.EndpointsLastChangeTriggerTime: began.Format(time.RFC3339)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, schema.GroupVersionKind{Version: "v1", Kind: "Service"})},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{pod.Status.PodIP}, NodeName: &pod.Spec.NodeName,
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("mcp"), Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	slice.Labels[discoveryv1.LabelServiceName] = service.Name
	slice.Labels[discoveryv1.LabelManagedBy] = "endpointslice-controller.k8s.io"
	made(slice, uid("9", i), writtenBy("kube-controller-manager", "", builtFields))
	return slice
}
