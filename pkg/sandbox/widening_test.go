package sandbox

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestWidens(t *testing.T) {
	claim := allows(v1alpha1.AllowedService{Name: "mirror", Namespace: "artifacts"})
	rules, _ := Egress(claim, servicesOf(mirror()), nil)
	own := NetworkPolicy(claim, rules).Spec
	ingress, egress := networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress
	agents := own.Ingress[0].From[0]
	narrower := *agents.DeepCopy()
	narrower.PodSelector.MatchLabels["track"] = "stable"
	inMirror := *own.Egress[0].To[0].DeepCopy()
	in := func(peers []networkingv1.NetworkPolicyPeer, ports ...networkingv1.NetworkPolicyPort) networkingv1.NetworkPolicySpec {
		return networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{From: peers, Ports: ports}}}
	}
	out := func(peers []networkingv1.NetworkPolicyPeer, ports ...networkingv1.NetworkPolicyPort) networkingv1.NetworkPolicySpec {
		return networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{egress}, Egress: []networkingv1.NetworkPolicyEgressRule{{To: peers, Ports: ports}}}
	}
	peers := func(p ...networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer { return p }
	tcp := func(port int32) networkingv1.NetworkPolicyPort {
		return portOf(corev1.ProtocolTCP, intstr.FromInt32(port))
	}
	unset := tcp(8080)
	unset.Protocol = nil
	ranged := tcp(8080)
	ranged.EndPort = ptr.To[int32](8081)
	everyPort := networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP)}
	for name, tt := range map[string]struct {
		other           networkingv1.NetworkPolicySpec
		ingress, egress bool
	}{
		"denies both: nothing":                         {other: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{ingress, egress}}},
		"the same: nothing":                            {other: own},
		"allows all in":                                {other: in(nil), ingress: true},
		"allows all out":                               {other: out(nil), egress: true},
		"rules of a direction that it is not about":    {other: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{ingress}, Egress: []networkingv1.NetworkPolicyEgressRule{{}}}},
		"no types, with egress rules: about both":      {other: networkingv1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{}}}, egress: true},
		"our peer at our port":                         {other: in(peers(agents), tcp(8080))},
		"our peer at our port, protocol left out":      {other: in(peers(agents), unset)},
		"fewer of our peers":                           {other: in(peers(narrower), tcp(8080))},
		"our peer at another port":                     {other: in(peers(agents), tcp(22)), ingress: true},
		"our peer at our port by UDP":                  {other: in(peers(agents), portOf(corev1.ProtocolUDP, intstr.FromInt32(8080))), ingress: true},
		"our peer at a port more":                      {other: in(peers(agents), tcp(8080), tcp(22)), ingress: true},
		"our peer at a range that begins with ours":    {other: in(peers(agents), ranged), ingress: true},
		"our peer at every port of TCP":                {other: in(peers(agents), everyPort), ingress: true},
		"our peer at every port":                       {other: in(peers(agents)), ingress: true},
		"another peer beside ours":                     {other: in(peers(agents, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}), tcp(8080)), ingress: true},
		"our peer's labels in every namespace":         {other: in(peers(networkingv1.NetworkPolicyPeer{PodSelector: agents.PodSelector, NamespaceSelector: &metav1.LabelSelector{}}), tcp(8080)), ingress: true},
		"addresses":                                    {other: out(peers(networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}), tcp(8080)), egress: true},
		"a Service's pods at its port by number":       {other: out(peers(inMirror), tcp(8080))},
		"a Service's pods at its port by name":         {other: out(peers(inMirror), portOf(corev1.ProtocolTCP, intstr.FromString("tls")))},
		"a Service's pods at another name":             {other: out(peers(inMirror), portOf(corev1.ProtocolTCP, intstr.FromString("ssh"))), egress: true},
		"what is not known to be behind a name":        {other: out(peers(inMirror), tcp(8443)), egress: true},
		"the whole namespace of a Service":             {other: out(peers(networkingv1.NetworkPolicyPeer{NamespaceSelector: inMirror.NamespaceSelector}), tcp(8080)), egress: true},
		"both directions":                              {other: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}, Egress: []networkingv1.NetworkPolicyEgressRule{{}}}, ingress: true, egress: true},
		"a workspace's isolation: the internet is out": {other: out(peers(networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8"}}})), egress: true},
	} {
		t.Run(name, func(t *testing.T) {
			gotIngress, gotEgress := Widens(&tt.other, &own)
			assert.Equal(t, tt.ingress, gotIngress, "ingress")
			assert.Equal(t, tt.egress, gotEgress, "egress")
		})
	}
}

func TestSelects(t *testing.T) {
	claim := claimOf(plain())
	selects := func(selector metav1.LabelSelector, more map[string]string) bool {
		return Selects(&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PodSelector: selector}}, claim, more)
	}
	assert.True(t, selects(metav1.LabelSelector{}, nil), "one for every pod")
	assert.True(t, selects(metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelSession: "session-7"}}, nil))
	assert.False(t, selects(metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}, nil))
	mesh := metav1.LabelSelector{MatchLabels: map[string]string{"mesh": "on"}}
	assert.False(t, selects(mesh, nil))
	assert.True(t, selects(mesh, map[string]string{"mesh": "on"}), "a label that a webhook gave the pod")
	assert.True(t, selects(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}, nil), "what cannot be read")

	own := NetworkPolicy(claim, nil)
	assert.Equal(t, claim.UID, OneClaim(own))
	assert.Empty(t, OneClaim(Floor("my-agents")))
	assert.True(t, Selects(own, claim, nil))
	assert.True(t, Selects(Floor("my-agents"), claim, nil))
}

// TestWidens_MissesNothing holds what Widens says against what policies allow, one peer and one port after the other.
func TestWidens_MissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own, other := drawRules(t, "own"), drawRules(t, "other")
		if _, egress := Widens(&other, &own); egress {
			return
		}
		for _, namespace := range []string{"a", "b"} {
			for _, pod := range []map[string]string{{}, {"x": "1"}, {"x": "2"}, {"y": "1"}, {"x": "1", "y": "1"}, {"x": "2", "y": "1"}} {
				for port := int32(1); port <= 4; port++ {
					for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
						if reaches(other, namespace, pod, protocol, port) && !reaches(own, namespace, pod, protocol, port) {
							t.Fatalf("%v of namespace %s at %s %d is reached by the other alone", pod, namespace, protocol, port)
						}
					}
				}
			}
		}
	})
}

func drawRules(t *rapid.T, name string) networkingv1.NetworkPolicySpec {
	spec := networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}}
	for range rapid.IntRange(0, 2).Draw(t, name+"'s rules") {
		rule := networkingv1.NetworkPolicyEgressRule{}
		for range rapid.IntRange(0, 2).Draw(t, "peers") {
			peer := networkingv1.NetworkPolicyPeer{}
			if rapid.Bool().Draw(t, "pods") {
				peer.PodSelector = &metav1.LabelSelector{MatchLabels: rapid.MapOfN(rapid.SampledFrom([]string{"x", "y"}), rapid.SampledFrom([]string{"1", "2"}), 0, 2).Draw(t, "labels")}
			}
			if peer.PodSelector == nil || rapid.Bool().Draw(t, "namespaces") {
				peer.NamespaceSelector = &metav1.LabelSelector{MatchLabels: rapid.SampledFrom([]map[string]string{nil, {"name": "a"}, {"name": "b"}}).Draw(t, "namespace")}
			}
			rule.To = append(rule.To, peer)
		}
		for range rapid.IntRange(0, 2).Draw(t, "ports") {
			port := networkingv1.NetworkPolicyPort{Protocol: rapid.SampledFrom([]*corev1.Protocol{nil, ptr.To(corev1.ProtocolTCP), ptr.To(corev1.ProtocolUDP)}).Draw(t, "protocol")}
			if rapid.Bool().Draw(t, "numbered") {
				port.Port = ptr.To(intstr.FromInt32(rapid.Int32Range(1, 4).Draw(t, "port")))
				if rapid.Bool().Draw(t, "a range") {
					port.EndPort = ptr.To(rapid.Int32Range(port.Port.IntVal, 4).Draw(t, "its end"))
				}
			}
			rule.Ports = append(rule.Ports, port)
		}
		spec.Egress = append(spec.Egress, rule)
	}
	return spec
}

// reaches says whether egress rules of a pod in namespace a allow a pod at a port.
func reaches(spec networkingv1.NetworkPolicySpec, namespace string, pod map[string]string, protocol corev1.Protocol, port int32) bool {
	selects := func(s *metav1.LabelSelector, labels map[string]string) bool {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			panic(fmt.Sprintf("a selector that was drawn: %v", err))
		}
		return selector.Matches(k8slabels.Set(labels))
	}
	for _, rule := range spec.Egress {
		toPeer, toPort := len(rule.To) == 0, len(rule.Ports) == 0
		for _, p := range rule.To {
			inNamespace := p.NamespaceSelector == nil && namespace == "a" || p.NamespaceSelector != nil && selects(p.NamespaceSelector, map[string]string{"name": namespace})
			toPeer = toPeer || inNamespace && (p.PodSelector == nil || selects(p.PodSelector, pod))
		}
		for _, p := range rule.Ports {
			inRange := p.Port == nil || port >= p.Port.IntVal && port <= ptr.Deref(p.EndPort, p.Port.IntVal)
			toPort = toPort || inRange && ptr.Deref(p.Protocol, corev1.ProtocolTCP) == protocol
		}
		if toPeer && toPort {
			return true
		}
	}
	return false
}
