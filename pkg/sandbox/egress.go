package sandbox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Fault is something that a class's egress asks for and that is not allowed, since nothing says what it would be.
type Fault struct {
	// Reason is one of the EgressResolved condition's.
	Reason string
	// Message says what is wrong and what to do.
	Message string
}

// AllowedServices gives the Services that the egress of an admitted claim's class names, each once, in order. They are read by
// these names, and found by no label (spec/sandboxclaim.md, "resources": egress.allowedServices).
func AllowedServices(claim *v1alpha1.SandboxClaim) []types.NamespacedName {
	egress := class(claim).Egress
	if egress == nil {
		return nil
	}
	var out []types.NamespacedName
	for _, allowed := range egress.AllowedServices {
		if key := serviceKey(claim, allowed); !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

func serviceKey(claim *v1alpha1.SandboxClaim, allowed v1alpha1.AllowedService) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(allowed.Namespace, claim.Namespace), Name: allowed.Name}
}

// Egress gives the rules for what a sandbox may reach: the pods of each Service that its class allows, on that Service's own
// ports, and the cluster's resolver where the class says so. What is not among the Services does not exist. What cannot be told
// is allowed by no rule, and comes back as a fault.
func Egress(claim *v1alpha1.SandboxClaim, services map[types.NamespacedName]*corev1.Service, resolver []DNSPeer) ([]networkingv1.NetworkPolicyEgressRule, []Fault) {
	egress := class(claim).Egress
	if egress == nil {
		return nil, nil
	}
	var rules []networkingv1.NetworkPolicyEgressRule
	var faults []Fault
	for _, key := range AllowedServices(claim) {
		service := services[key]
		if fault := notAllowed(key, service); fault != nil {
			faults = append(faults, *fault)
			continue
		}
		wanted, all := portsWanted(claim, key)
		ports, missing := targetPorts(service, wanted, all)
		for _, port := range missing {
			faults = append(faults, Fault{v1alpha1.ReasonServicePortNotFound, fmt.Sprintf("Service %s has no port %d: add it there, or drop it from the class's egress.allowedServices", key, port)})
		}
		if all && len(ports) == 0 {
			faults = append(faults, Fault{v1alpha1.ReasonServicePortNotFound, fmt.Sprintf("Service %s has no ports, so none is allowed: give it the ports that sandboxes may reach", key)})
		}
		if len(ports) > 0 { // a rule without ports would allow all
			rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{podsOf(claim, service)}, Ports: ports})
		}
	}
	if egress.DNS {
		for _, peer := range resolver {
			rules = append(rules, peer.rule())
		}
		if len(resolver) == 0 {
			faults = append(faults, Fault{v1alpha1.ReasonNoDNSPeers, "the class allows DNS, and the server was told of no resolver: start it with --dns-peer"})
		}
	}
	return rules, faults
}

// notAllowed says why a Service leads to no pods of its own that a rule could name.
func notAllowed(key types.NamespacedName, service *corev1.Service) *Fault {
	switch {
	case service == nil:
		return &Fault{v1alpha1.ReasonServiceNotFound, fmt.Sprintf("Service %s does not exist, so it is not allowed: create it, or drop it from the class's egress.allowedServices", key)}
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return &Fault{v1alpha1.ReasonServiceIsExternalName, fmt.Sprintf("Service %s is an ExternalName, which leads to no pods, so it is not allowed: name a Service with a selector", key)}
	case len(service.Spec.Selector) == 0: // a rule without one would allow all pods of the namespace
		return &Fault{v1alpha1.ReasonServiceHasNoSelector, fmt.Sprintf("Service %s has no selector, so nothing says which pods it leads to, and it is not allowed: name a Service with a selector", key)}
	}
	return nil
}

// portsWanted gives the ports of a Service that the class allows, over all its entries for it. True means each that it has.
func portsWanted(claim *v1alpha1.SandboxClaim, key types.NamespacedName) ([]int32, bool) {
	var wanted []int32
	for _, allowed := range class(claim).Egress.AllowedServices {
		switch {
		case serviceKey(claim, allowed) != key:
		case len(allowed.Ports) == 0:
			return nil, true
		default:
			wanted = append(wanted, allowed.Ports...)
		}
	}
	slices.Sort(wanted)
	return slices.Compact(wanted), false
}

// targetPorts gives the containers' ports behind those of a Service that are wanted, in a fixed order, and the ones that it
// lacks. A port that the Service gives by name stays a name: whoever enforces the policy looks it up in each pod, as kube-proxy does.
func targetPorts(service *corev1.Service, wanted []int32, all bool) (ports []networkingv1.NetworkPolicyPort, missing []int32) {
	type target struct {
		protocol corev1.Protocol
		port     intstr.IntOrString
	}
	targets := map[target]bool{}
	has := map[int32]bool{}
	for _, p := range service.Spec.Ports {
		has[p.Port] = true
		if !all && !slices.Contains(wanted, p.Port) {
			continue
		}
		port := p.TargetPort
		if port == (intstr.IntOrString{}) {
			port = intstr.FromInt32(p.Port)
		}
		targets[target{cmp.Or(p.Protocol, corev1.ProtocolTCP), port}] = true
	}
	inOrder := slices.SortedFunc(maps.Keys(targets), func(a, b target) int {
		return cmp.Or(cmp.Compare(a.port.IntVal, b.port.IntVal), cmp.Compare(a.port.StrVal, b.port.StrVal), cmp.Compare(a.protocol, b.protocol))
	})
	for _, t := range inOrder {
		ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(t.protocol), Port: ptr.To(t.port)})
	}
	return ports, slices.DeleteFunc(slices.Clone(wanted), func(port int32) bool { return has[port] })
}

// podsOf is the peer that is a Service's own selector.
func podsOf(claim *v1alpha1.SandboxClaim, service *corev1.Service) networkingv1.NetworkPolicyPeer {
	peer := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: maps.Clone(service.Spec.Selector)}}
	if service.Namespace != claim.Namespace {
		peer.NamespaceSelector = inNamespace(service.Namespace)
	}
	return peer
}

// inNamespace selects a namespace by the label that the API server keeps on each.
func inNamespace(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}
