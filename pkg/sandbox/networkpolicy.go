package sandbox

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// NetworkPolicy lets the claim's own runtime in, on the class's ports, and out what egress allows: without rules nothing, DNS
// included.
func NetworkPolicy(claim *v1alpha1.SandboxClaim, egress []networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(claim),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector(claim)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: agentLabels(claim)}}},
				Ports: policyPorts(class(claim).Ports),
			}},
			Egress: egress,
		},
	}
}

// agentLabels are those of the runtime's pods that never change.
func agentLabels(claim *v1alpha1.SandboxClaim) map[string]string {
	return map[string]string{
		labelName:      "omnia-agent",
		labelInstance:  claim.RuntimeName(),
		labelManagedBy: "omnia-operator",
		labelComponent: "agent",
	}
}

func policyPorts(ports []v1alpha1.ClassPort) []networkingv1.NetworkPolicyPort {
	var out []networkingv1.NetworkPolicyPort
	for _, p := range ports {
		out = append(out, networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(p.Port))})
	}
	return out
}

// SameNetworkPolicy says whether a NetworkPolicy that stands is exactly as it was built: a rule more is a hole.
func SameNetworkPolicy(built, stands *networkingv1.NetworkPolicy) bool {
	return Labelled(built, stands) && equality.Semantic.DeepEqual(built.Spec, stands.Spec)
}
