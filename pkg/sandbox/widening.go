package sandbox

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// NetworkPolicies add up: what one of them allows a pod, no other forbids.

// Selects says whether a NetworkPolicy of the claim's namespace selects the sandbox's pod, which may bear more labels than it
// was built with. A policy whose selector cannot be read selects it.
func Selects(policy *networkingv1.NetworkPolicy, claim *v1alpha1.SandboxClaim, more map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	return err != nil || selector.Matches(k8slabels.Merge(more, labels(claim)))
}

// OneClaim is the UID of the one claim whose sandbox a NetworkPolicy selects, by the identity that each has; empty if it may
// select more than that.
func OneClaim(policy *networkingv1.NetworkPolicy) types.UID {
	return types.UID(policy.Spec.PodSelector.MatchLabels[v1alpha1.LabelClaimUID])
}

// Widens says in which directions another NetworkPolicy, which selects the same pod, allows more than the sandbox's own. It
// looks at how rules are written, and not at which pods they select today: a rule that is not seen to be within one of the
// sandbox's own allows more.
func Widens(other, own *networkingv1.NetworkPolicySpec) (ingress, egress bool) {
	within := func(rules, ours []rule) bool {
		return !slices.ContainsFunc(rules, func(r rule) bool { return !slices.ContainsFunc(ours, r.within) })
	}
	return bears(other, networkingv1.PolicyTypeIngress) && !within(ingressRules(other), ingressRules(own)),
		bears(other, networkingv1.PolicyTypeEgress) && !within(egressRules(other), egressRules(own))
}

// bears says whether a policy is about a direction. One that does not say is about ingress, and about egress if it has rules for it.
func bears(spec *networkingv1.NetworkPolicySpec, direction networkingv1.PolicyType) bool {
	if len(spec.PolicyTypes) > 0 {
		return slices.Contains(spec.PolicyTypes, direction)
	}
	return direction == networkingv1.PolicyTypeIngress || len(spec.Egress) > 0
}

// rule is one peer at one port: nil is any.
type rule struct {
	peer *networkingv1.NetworkPolicyPeer
	port *networkingv1.NetworkPolicyPort
}

func ingressRules(spec *networkingv1.NetworkPolicySpec) []rule {
	var out []rule
	for _, r := range spec.Ingress {
		out = append(out, eachOf(r.From, r.Ports)...)
	}
	return out
}

func egressRules(spec *networkingv1.NetworkPolicySpec) []rule {
	var out []rule
	for _, r := range spec.Egress {
		out = append(out, eachOf(r.To, r.Ports)...)
	}
	return out
}

// eachOf takes a rule apart. Without peers it is for all peers, and without ports for all ports.
func eachOf(peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) []rule {
	var out []rule
	for _, peer := range anyOrEach(peers) {
		for _, port := range anyOrEach(ports) {
			out = append(out, rule{peer, port})
		}
	}
	return out
}

func anyOrEach[T any](list []T) []*T {
	if len(list) == 0 {
		return []*T{nil}
	}
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// within says whether all that a rule allows, another allows.
func (r rule) within(other rule) bool {
	return (other.peer == nil || r.peer != nil && peerWithin(r.peer, other.peer)) && (other.port == nil || r.port != nil && portWithin(r.port, other.port))
}

// peerWithin: a peer is within one that is the same, or that asks of pods of the same namespaces only labels which it asks for too.
func peerWithin(peer, other *networkingv1.NetworkPolicyPeer) bool {
	if equality.Semantic.DeepEqual(peer, other) {
		return true
	}
	if peer.IPBlock != nil || other.IPBlock != nil || peer.PodSelector == nil || other.PodSelector == nil || len(other.PodSelector.MatchExpressions) > 0 ||
		!equality.Semantic.DeepEqual(peer.NamespaceSelector, other.NamespaceSelector) {
		return false
	}
	for key, value := range other.PodSelector.MatchLabels {
		if asked, ok := peer.PodSelector.MatchLabels[key]; !ok || asked != value {
			return false
		}
	}
	return true
}

// portWithin holds ports by number against ranges, and a name against the same name.
func portWithin(port, other *networkingv1.NetworkPolicyPort) bool {
	if ptr.Deref(port.Protocol, corev1.ProtocolTCP) != ptr.Deref(other.Protocol, corev1.ProtocolTCP) {
		return false
	}
	switch {
	case other.Port == nil:
		return true
	case port.Port == nil:
		return false
	case port.Port.Type == intstr.String || other.Port.Type == intstr.String:
		return *port.Port == *other.Port
	}
	return port.Port.IntVal >= other.Port.IntVal &&
		ptr.Deref(port.EndPort, port.Port.IntVal) <= ptr.Deref(other.EndPort, other.Port.IntVal)
}
