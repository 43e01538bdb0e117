package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// says says whether a claim has a condition of a type with a reason; an empty reason is for none.
func says(kind, reason string) func(*v1alpha1.SandboxClaim) bool {
	return func(claim *v1alpha1.SandboxClaim) bool {
		c := apimeta.FindStatusCondition(claim.Status.Conditions, kind)
		return c == nil && reason == "" || c != nil && c.Reason == reason
	}
}

// networkPolicy waits until the sandbox's NetworkPolicy is as wanted.
func (w *world) networkPolicy(claim *v1alpha1.SandboxClaim, what string, wanted func(*networkingv1.NetworkPolicy) bool) *networkingv1.NetworkPolicy {
	w.t.Helper()
	return framework.Eventually(w.t, framework.Shortly, what, func(ctx context.Context) (*networkingv1.NetworkPolicy, error) {
		return w.Kube.NetworkingV1().NetworkPolicies(w.namespace).Get(ctx, claim.Status.SandboxName, metav1.GetOptions{})
	}, wanted)
}

func TestEgress_ServiceComesChangesAndGoes_PolicyFollows(t *testing.T) {
	there := shared.cluster.Namespace(t)
	w := newWorld(t, func(class *framework.ClassWrapper) {
		class.With(func(s *v1alpha1.SandboxClassSpec) {
			s.Egress = &v1alpha1.Egress{AllowedServices: []v1alpha1.AllowedService{{Name: "mirror", Namespace: there, Ports: []int32{443}}}}
		})
	})
	claim := w.bound("s")
	claim = w.Claim(t, w.namespace, claim.Name, says(v1alpha1.ConditionEgressResolved, v1alpha1.ReasonServiceNotFound))
	assert.Equal(t, v1alpha1.PhaseBound, claim.Status.Phase, "a sandbox without what it may reach is a sandbox")
	w.networkPolicy(claim, "nothing is allowed", func(p *networkingv1.NetworkPolicy) bool { return len(p.Spec.Egress) == 0 })

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: "mirror"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "mirror"}, Ports: []corev1.ServicePort{
			{Name: "https", Port: 443, TargetPort: intstr.FromString("tls")}, {Name: "http", Port: 80}}}}
	w.Create(t, service)
	policy := w.networkPolicy(claim, "the Service is allowed", func(p *networkingv1.NetworkPolicy) bool { return len(p.Spec.Egress) == 1 })
	require.Len(t, policy.Spec.Egress[0].Ports, 1)
	assert.Equal(t, "tls", policy.Spec.Egress[0].Ports[0].Port.StrVal)
	assert.Equal(t, map[string]string{corev1.LabelMetadataName: there}, policy.Spec.Egress[0].To[0].NamespaceSelector.MatchLabels)
	w.Claim(t, w.namespace, claim.Name, says(v1alpha1.ConditionEgressResolved, v1alpha1.ReasonEgressAllowed))

	service.Spec.Selector, service.Spec.Ports[0].TargetPort = map[string]string{"app": "other"}, intstr.FromInt32(9443)
	require.NoError(t, w.Client.Update(t.Context(), service))
	w.networkPolicy(claim, "the policy follows the selector and the port at once", func(p *networkingv1.NetworkPolicy) bool {
		return len(p.Spec.Egress) == 1 && p.Spec.Egress[0].To[0].PodSelector.MatchLabels["app"] == "other" && p.Spec.Egress[0].Ports[0].Port.IntVal == 9443
	})

	service.Spec.Selector = nil
	require.NoError(t, w.Client.Update(t.Context(), service))
	w.Claim(t, w.namespace, claim.Name, says(v1alpha1.ConditionEgressResolved, v1alpha1.ReasonServiceHasNoSelector))
	w.networkPolicy(claim, "nothing is allowed", func(p *networkingv1.NetworkPolicy) bool { return len(p.Spec.Egress) == 0 })
}

func TestEgress_DNS_AllowsTheResolverAlone(t *testing.T) {
	w := newWorld(t, func(class *framework.ClassWrapper) {
		class.With(func(s *v1alpha1.SandboxClassSpec) { s.Egress = &v1alpha1.Egress{DNS: true} })
	})
	claim := w.bound("s")
	policy := w.networkPolicy(claim, "one rule", func(p *networkingv1.NetworkPolicy) bool { return len(p.Spec.Egress) == 1 })
	require.Len(t, policy.Spec.Egress[0].To, 1)
	peer := policy.Spec.Egress[0].To[0]
	assert.Equal(t, map[string]string{"k8s-app": "kube-dns"}, peer.PodSelector.MatchLabels)
	assert.Equal(t, map[string]string{corev1.LabelMetadataName: "kube-system"}, peer.NamespaceSelector.MatchLabels)
	require.Len(t, policy.Spec.Egress[0].Ports, 2)
	for _, port := range policy.Spec.Egress[0].Ports {
		assert.EqualValues(t, 53, port.Port.IntVal)
	}
}

func TestIsolationWeakened_NamesThePolicyAndClears(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	assert.True(t, says(v1alpha1.ConditionIsolationWeakened, "")(claim), framework.Show(claim))
	open := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "workspace-x-isolation"},
		Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, Egress: []networkingv1.NetworkPolicyEgressRule{{}}}}
	w.Create(t, open)
	weakened := w.Claim(t, w.namespace, claim.Name, says(v1alpha1.ConditionIsolationWeakened, v1alpha1.ReasonPolicyAllowsMore))
	assert.Contains(t, apimeta.FindStatusCondition(weakened.Status.Conditions, v1alpha1.ConditionIsolationWeakened).Message, "workspace-x-isolation (egress)")
	assert.Equal(t, v1alpha1.PhaseBound, weakened.Status.Phase, "whoever uses it goes on")
	assert.NotEmpty(t, w.bound("later").Status.Addresses)
	require.NoError(t, w.Client.Delete(t.Context(), open))
	w.Claim(t, w.namespace, claim.Name, says(v1alpha1.ConditionIsolationWeakened, ""))
}

func TestFloor_OutlivesTheClaimsAndGoes(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	policies := w.Kube.NetworkingV1().NetworkPolicies(w.namespace)
	floor, err := policies.Get(t.Context(), sandbox.FloorName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, floor.OwnerReferences, "it goes with no claim")
	require.NoError(t, policies.Delete(t.Context(), sandbox.FloorName, metav1.DeleteOptions{}))
	framework.Eventually(t, framework.Shortly, "the floor is made anew", func(ctx context.Context) (bool, error) {
		_, err := policies.Get(ctx, sandbox.FloorName, metav1.GetOptions{})
		return err == nil, nil
	}, func(stands bool) bool { return stands })

	require.NoError(t, w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Delete(t.Context(), claim.Name, metav1.DeleteOptions{}))
	framework.Eventually(t, framework.GoneTimeout, "the floor goes with the last sandbox", func(ctx context.Context) (bool, error) {
		_, err := policies.Get(ctx, sandbox.FloorName, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}, func(gone bool) bool { return gone })
}
