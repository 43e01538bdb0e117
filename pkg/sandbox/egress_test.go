package sandbox

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func serviceOf(namespace, name string, selector map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Selector: selector, Ports: ports}}
}

// mirror is a Service of another namespace, whose ports are not its pods'.
func mirror() *corev1.Service {
	return serviceOf("artifacts", "mirror", map[string]string{"app": "mirror"},
		corev1.ServicePort{Name: "https", Port: 443, TargetPort: intstr.FromString("tls")},
		corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)})
}

// queue is a Service of the claim's own namespace.
func queue() *corev1.Service {
	return serviceOf("my-agents", "queue", map[string]string{"app": "queue"},
		corev1.ServicePort{Port: 5672, Protocol: corev1.ProtocolTCP}, corev1.ServicePort{Port: 5672, Protocol: corev1.ProtocolUDP})
}

func servicesOf(services ...*corev1.Service) map[types.NamespacedName]*corev1.Service {
	out := map[types.NamespacedName]*corev1.Service{}
	for _, s := range services {
		out[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = s
	}
	return out
}

func dnsPeer(t *testing.T, text string) DNSPeer {
	t.Helper()
	peer, err := ParseDNSPeer(text)
	require.NoError(t, err)
	return peer
}

func allows(services ...v1alpha1.AllowedService) *v1alpha1.SandboxClaim {
	class := plain()
	class.Egress = &v1alpha1.Egress{AllowedServices: services}
	return claimOf(class)
}

func portOf(protocol corev1.Protocol, port intstr.IntOrString) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(port)}
}

func TestEgress(t *testing.T) {
	inArtifacts := func(labels map[string]string) networkingv1.NetworkPolicyPeer {
		return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: labels},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "artifacts"}}}
	}
	toMirror := func(ports ...networkingv1.NetworkPolicyPort) []networkingv1.NetworkPolicyEgressRule {
		return []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{inArtifacts(map[string]string{"app": "mirror"})}, Ports: ports}}
	}
	tls, web := portOf(corev1.ProtocolTCP, intstr.FromString("tls")), portOf(corev1.ProtocolTCP, intstr.FromInt32(8080))
	changed := func(change func(*corev1.Service)) *corev1.Service {
		s := mirror()
		change(s)
		return s
	}
	external := changed(func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.test"
	})
	entry := v1alpha1.AllowedService{Name: "mirror", Namespace: "artifacts"}
	for name, tt := range map[string]struct {
		claim    *v1alpha1.SandboxClaim
		services []*corev1.Service
		rules    []networkingv1.NetworkPolicyEgressRule
		faults   []string
	}{
		"no egress block: nothing": {claim: claimOf(plain()), services: []*corev1.Service{mirror()}},
		"all ports: each, by the containers' own name or number": {
			claim: allows(entry), services: []*corev1.Service{mirror()}, rules: toMirror(tls, web)},
		"one port: that alone": {
			claim:    allows(v1alpha1.AllowedService{Name: "mirror", Namespace: "artifacts", Ports: []int32{80}}),
			services: []*corev1.Service{mirror()}, rules: toMirror(web)},
		"two entries for one Service: one rule for both": {
			claim: allows(v1alpha1.AllowedService{Name: "mirror", Namespace: "artifacts", Ports: []int32{80}},
				v1alpha1.AllowedService{Name: "mirror", Namespace: "artifacts", Ports: []int32{443, 80}}),
			services: []*corev1.Service{mirror()}, rules: toMirror(tls, web)},
		"the claim's own namespace is meant where none is named, and both protocols of a number": {
			claim: allows(v1alpha1.AllowedService{Name: "queue", Ports: []int32{5672}}), services: []*corev1.Service{queue(), changed(func(s *corev1.Service) { s.Name = "queue" })},
			rules: []networkingv1.NetworkPolicyEgressRule{{
				To:    []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "queue"}}}},
				Ports: []networkingv1.NetworkPolicyPort{portOf(corev1.ProtocolTCP, intstr.FromInt32(5672)), portOf(corev1.ProtocolUDP, intstr.FromInt32(5672))}}}},
		"headless: as any other": {
			claim: allows(entry), services: []*corev1.Service{changed(func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })}, rules: toMirror(tls, web)},
		"missing: nothing":            {claim: allows(entry), faults: []string{v1alpha1.ReasonServiceNotFound}},
		"ExternalName: nothing":       {claim: allows(entry), services: []*corev1.Service{external}, faults: []string{v1alpha1.ReasonServiceIsExternalName}},
		"without a selector: nothing": {claim: allows(entry), services: []*corev1.Service{changed(func(s *corev1.Service) { s.Spec.Selector = nil })}, faults: []string{v1alpha1.ReasonServiceHasNoSelector}},
		"without ports: no rule, which would be for all ports": {
			claim: allows(entry), services: []*corev1.Service{changed(func(s *corev1.Service) { s.Spec.Ports = nil })}, faults: []string{v1alpha1.ReasonServicePortNotFound}},
		"a port that it lacks: the others": {
			claim:    allows(v1alpha1.AllowedService{Name: "mirror", Namespace: "artifacts", Ports: []int32{80, 81}}),
			services: []*corev1.Service{mirror()}, rules: toMirror(web), faults: []string{v1alpha1.ReasonServicePortNotFound}},
		"only a port that it lacks: no rule": {
			claim:    allows(v1alpha1.AllowedService{Name: "mirror", Namespace: "artifacts", Ports: []int32{81}}),
			services: []*corev1.Service{mirror()}, faults: []string{v1alpha1.ReasonServicePortNotFound}},
		"one of two missing: the other": {
			claim: allows(v1alpha1.AllowedService{Name: "gone"}, entry), services: []*corev1.Service{mirror()}, rules: toMirror(tls, web), faults: []string{v1alpha1.ReasonServiceNotFound}},
	} {
		t.Run(name, func(t *testing.T) {
			rules, faults := Egress(tt.claim, servicesOf(tt.services...), nil)
			assert.Equal(t, tt.rules, rules)
			var reasons []string
			for _, fault := range faults {
				reasons = append(reasons, fault.Reason)
				assert.Contains(t, fault.Message, "Service ")
			}
			assert.Equal(t, tt.faults, reasons)
		})
	}
}

func TestEgress_DNS(t *testing.T) {
	class := plain()
	class.Egress = &v1alpha1.Egress{DNS: true}
	rules, faults := Egress(claimOf(class), nil, []DNSPeer{dnsPeer(t, "dns/app=resolver@5353"), dnsPeer(t, "169.254.20.10/32")})
	assert.Empty(t, faults)
	require.Len(t, rules, 2)
	both := func(port int32) []networkingv1.NetworkPolicyPort {
		return []networkingv1.NetworkPolicyPort{portOf(corev1.ProtocolTCP, intstr.FromInt32(port)), portOf(corev1.ProtocolUDP, intstr.FromInt32(port))}
	}
	assert.Equal(t, both(5353), rules[0].Ports)
	assert.Equal(t, map[string]string{"app": "resolver"}, rules[0].To[0].PodSelector.MatchLabels)
	assert.Equal(t, map[string]string{"kubernetes.io/metadata.name": "dns"}, rules[0].To[0].NamespaceSelector.MatchLabels)
	assert.Equal(t, networkingv1.NetworkPolicyEgressRule{Ports: both(53),
		To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "169.254.20.10/32"}}}}, rules[1])

	rules, faults = Egress(claimOf(class), nil, nil)
	assert.Empty(t, rules)
	require.Len(t, faults, 1)
	assert.Equal(t, v1alpha1.ReasonNoDNSPeers, faults[0].Reason)
}

func TestParseDNSPeer_Bad(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "NAMESPACE/LABEL-SELECTOR",
		"kube-dns":                  "NAMESPACE/LABEL-SELECTOR",
		"Kube/k8s-app=kube-dns":     "NAMESPACE/LABEL-SELECTOR",
		"10.96.0.10":                "NAMESPACE/LABEL-SELECTOR",
		"kube-system/":              "every pod of the namespace",
		"kube-system/a=b=c":         "reading its label selector",
		"kube-system/a=b@0":         "is no port",
		"kube-system/a=b@dns":       "is no port",
		"169.254.20.10/24":          "write 169.254.20.0/24",
		"kube-system/a in (b@53":    "reading its label selector",
		"kube-system/k8s-app=dns@.": "is no port",
	} {
		_, err := ParseDNSPeer(text)
		require.ErrorContains(t, err, want, text)
	}
}

// A policy is one object that is built of one state of each Service, so no change of a Service leaves what neither state allows.
func TestEgress_IsOfOneService(t *testing.T) {
	claim := allows(v1alpha1.AllowedService{Name: "mirror", Namespace: "artifacts"})
	moved := mirror()
	moved.Spec.Selector, moved.Spec.Ports = map[string]string{"app": "other"}, []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(9443)}}
	rules, _ := Egress(claim, servicesOf(moved), nil)
	require.Len(t, rules, 1)
	assert.Equal(t, map[string]string{"app": "other"}, rules[0].To[0].PodSelector.MatchLabels)
	assert.Equal(t, []networkingv1.NetworkPolicyPort{portOf(corev1.ProtocolTCP, intstr.FromInt32(9443))}, rules[0].Ports)
}
