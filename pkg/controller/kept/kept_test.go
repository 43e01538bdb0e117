package kept

import (
	"maps"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

func keep[T client.Object](t *testing.T, k *Keeper, object T) T {
	t.Helper()
	out, err := k.Keep(object)
	require.NoError(t, err)
	return out.(T)
}

// An informer gives what it made already once more where it fills its cache by a watch.
func TestWhatWasKept_KeptAgain_StaysAsItIs(t *testing.T) {
	k := NewKeeper()
	for _, h := range held {
		t.Run(h.kind, func(t *testing.T) {
			once := keep(t, k, h.of(standingClaim(t, 1)))
			before := once.DeepCopyObject()
			assert.Equal(t, before, keep(t, k, once))
			assert.NotEqual(t, h.of(standingClaim(t, 1)), once)
		})
	}
}

// What a repair writes back is what it read, so whatever strangers put there is left to them.
func TestWhatMayBeWrittenBack_IsWhole(t *testing.T) {
	tampered := func(t *testing.T) standing {
		s := standingClaim(t, 1)
		for _, object := range []client.Object{s.policy, s.service, s.deployment} {
			object.SetAnnotations(map[string]string{"team": "x"})
			object.SetFinalizers([]string{"example.test/theirs"})
			object.SetOwnerReferences(append(object.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "theirs"}))
			maps.Copy(object.GetLabels(), map[string]string{"team": "x"})
		}
		s.policy.Spec.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpExists}}
		s.policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
		s.service.Spec.ExternalIPs, s.service.Spec.PublishNotReadyAddresses = []string{"192.0.2.1"}, true
		s.service.Spec.Ports[0].NodePort = 30080
		template := &s.deployment.Spec.Template
		template.Annotations, template.Labels["team"] = map[string]string{"restarted": "today"}, "x"
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "theirs"})
		s.deployment.Spec.Paused, s.deployment.Spec.MinReadySeconds = true, 7
		return s
	}
	for name, make := range map[string]func(*testing.T) standing{
		"as it was built": func(t *testing.T) standing { return standingClaim(t, 1) },
		"tampered with":   tampered,
		"with nothing in it": func(*testing.T) standing {
			return standing{policy: &networkingv1.NetworkPolicy{}, service: &corev1.Service{}, deployment: &appsv1.Deployment{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, before, after := NewKeeper(), make(t), make(t)
			for _, object := range []client.Object{before.policy, before.service, before.deployment} {
				object.SetManagedFields(nil)
			}
			before.service.Status, before.deployment.Status = corev1.ServiceStatus{}, appsv1.DeploymentStatus{}
			keep(t, k, after.policy)
			keep(t, k, after.service)
			keep(t, k, after.deployment).Status = appsv1.DeploymentStatus{}
			assert.Empty(t, cmp.Diff(before.policy, after.policy))
			assert.Empty(t, cmp.Diff(before.service, after.service))
			assert.Empty(t, cmp.Diff(before.deployment, after.deployment))
		})
	}
}

func TestWhatSandboxesHaveInCommon_IsHeldOnce(t *testing.T) {
	k := NewKeeper()
	a, b, changed := standingClaim(t, 1), standingClaim(t, 2), standingClaim(t, 3)
	changed.deployment.Spec.Template.Spec.Containers[0].Image = "theirs"
	changed.claim.Status.Class.Image = "theirs"
	for _, s := range []standing{a, b, changed} {
		for _, h := range held {
			keep(t, k, h.of(s))
		}
	}
	assert.Same(t, a.claim.Status.Class, b.claim.Status.Class)
	assert.Same(t, unsafe.SliceData(a.deployment.Spec.Template.Spec.Containers), unsafe.SliceData(b.deployment.Spec.Template.Spec.Containers))
	assert.Same(t, unsafe.SliceData(a.policy.Spec.Ingress), unsafe.SliceData(b.policy.Spec.Ingress))
	assert.Same(t, unsafe.SliceData(a.service.Spec.Ports), unsafe.SliceData(b.service.Spec.Ports))
	assert.Equal(t, "theirs", changed.claim.Status.Class.Image)
	assert.Equal(t, "theirs", changed.deployment.Spec.Template.Spec.Containers[0].Image)
	assert.Equal(t, shellClass().Image, a.claim.Status.Class.Image)
	for i, s := range []standing{a, b} {
		assert.True(t, sandbox.SameDeployment(sandbox.Deployment(boundClaim(i+1)), s.deployment))
		assert.True(t, sandbox.SameService(sandbox.Service(boundClaim(i+1)), s.service))
		assert.True(t, sandbox.SameNetworkPolicy(sandbox.NetworkPolicy(boundClaim(i+1), nil), s.policy))
	}
}

func TestOtherKinds_LoseManagedFieldsAlone(t *testing.T) {
	whole := &omniav1alpha1.AgentRuntime{
		ObjectMeta: metav1.ObjectMeta{Name: "my-agent", Labels: map[string]string{"team": "x"}, Annotations: map[string]string{"a": "b"}},
		Spec:       omniav1alpha1.AgentRuntimeSpec{Sandbox: &omniav1alpha1.AgentRuntimeSandbox{Enabled: true, MaxConcurrent: ptr.To[int32](7)}},
	}
	given := whole.DeepCopy()
	given.ManagedFields = []metav1.ManagedFieldsEntry{writtenBy("m", "", statusFields)}
	assert.Equal(t, whole, keep(t, NewKeeper(), given))
}

// Of a Service that is nobody's sandbox, where it leads is all that is read, and nothing is ever written back.
func TestServiceOfOthers_IsKeptForWhereItLeads(t *testing.T) {
	others := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "mirror", UID: "u", ResourceVersion: "7", Labels: map[string]string{"team": "x"},
			Annotations: map[string]string{"long": "text"}, Finalizers: []string{"theirs"}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1", Selector: map[string]string{"app": "mirror"},
			Ports: []corev1.ServicePort{{Port: 443}}, LoadBalancerSourceRanges: []string{"192.0.2.0/24"}},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}}},
	}
	assert.Equal(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "mirror", UID: "u", ResourceVersion: "7"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "mirror"}, Ports: []corev1.ServicePort{{Port: 443}}},
	}, keep(t, NewKeeper(), others.DeepCopy()))

	s := standingClaim(t, 1)
	s.service.Labels = nil
	s.service.Spec.ExternalIPs = []string{"192.0.2.1"}
	assert.Equal(t, []string{"192.0.2.1"}, keep(t, NewKeeper(), s.service.DeepCopy()).Spec.ExternalIPs, "a sandbox's own may be written back, whatever labels it bears")
}

// A policy may select a sandbox by a label that a webhook gave its pod.
func TestPodKeepsTheLabelsThatItsClaimDoesNotTell(t *testing.T) {
	s := standingClaim(t, 1)
	s.pod.Labels["mesh"] = "on"
	labels := keep(t, NewKeeper(), s.pod).Labels
	assert.Equal(t, "on", labels["mesh"])
	assert.NotContains(t, labels, v1alpha1.LabelSession)
	assert.Contains(t, labels, v1alpha1.LabelClaimUID)
}

func TestTraceparent_IsKeptUntilItsClaimIsBound(t *testing.T) {
	const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	annotated := func(text string) *v1alpha1.SandboxClaim {
		return &v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationTraceparent: text, "team": "x"}}}
	}
	assert.Equal(t, map[string]string{v1alpha1.AnnotationTraceparent: traceparent}, keep(t, NewKeeper(), annotated(traceparent)).Annotations)
	assert.Nil(t, keep(t, NewKeeper(), annotated("by hand, and at any length")).Annotations)
	bound := annotated(traceparent)
	bound.Status.BoundAt = &metav1.MicroTime{}
	assert.Nil(t, keep(t, NewKeeper(), bound).Annotations)
}
