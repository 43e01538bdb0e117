package sandbox

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// FloorName is the name of a namespace's floor.
const FloorName = "sandbox-floor"

// Floor allows no sandbox of a namespace anything. A sandbox's own policy goes with its claim, and its pod may take a while
// longer to end, if only because it does not listen to the signal: what it could do then, this one forbids.
func Floor(namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: FloorName, Labels: map[string]string{labelManagedBy: sandboxManagedBy}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: v1alpha1.LabelClaimUID, Operator: metav1.LabelSelectorOpExists},
			}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
}

// IsFloor says whether a NetworkPolicy is a namespace's floor, and not somebody else's of that name.
func IsFloor(policy metav1.Object) bool {
	return policy.GetName() == FloorName && policy.GetLabels()[labelManagedBy] == sandboxManagedBy
}
