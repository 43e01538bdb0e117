package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// dnsPort is where a resolver answers unless its peer says otherwise.
const dnsPort int32 = 53

// DNSPeer is who answers as the cluster's resolver: pods of a namespace, or addresses, at one port by UDP and TCP.
type DNSPeer struct {
	peer networkingv1.NetworkPolicyPeer
	port int32
}

// ParseDNSPeer reads NAMESPACE/LABEL-SELECTOR[@PORT] or CIDR[@PORT], for example kube-system/k8s-app=kube-dns,
// openshift-dns/dns.operator.openshift.io/daemonset-dns=default@5353, or 169.254.20.10/32 for a resolver on the node itself. A
// cluster IP is no peer: a packet to it has a pod's address by the time that a policy looks at it.
func ParseDNSPeer(text string) (DNSPeer, error) {
	who, port, err := cutPort(text)
	if err != nil {
		return DNSPeer{}, fmt.Errorf("DNS peer %q: %w", text, err)
	}
	if prefix, err := netip.ParsePrefix(who); err == nil {
		if prefix != prefix.Masked() {
			return DNSPeer{}, fmt.Errorf("DNS peer %q: has bits beyond its length: write %s", text, prefix.Masked())
		}
		return DNSPeer{peer: networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: prefix.String()}}, port: port}, nil
	}
	namespace, selector, found := strings.Cut(who, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 {
		return DNSPeer{}, fmt.Errorf("DNS peer %q: write NAMESPACE/LABEL-SELECTOR, such as kube-system/k8s-app=kube-dns, or a CIDR, with @PORT where it is not %d", text, dnsPort)
	}
	pods, err := metav1.ParseToLabelSelector(selector)
	if err == nil && len(pods.MatchLabels) == 0 && len(pods.MatchExpressions) == 0 {
		err = errors.New("no label is named, which would be every pod of the namespace")
	}
	if err != nil {
		return DNSPeer{}, fmt.Errorf("DNS peer %q: reading its label selector: %w", text, err)
	}
	return DNSPeer{peer: networkingv1.NetworkPolicyPeer{PodSelector: pods, NamespaceSelector: inNamespace(namespace)}, port: port}, nil
}

func cutPort(text string) (string, int32, error) {
	who, given, found := strings.Cut(text, "@")
	if !found {
		return who, dnsPort, nil
	}
	port, err := strconv.Atoi(given)
	if err != nil || len(validation.IsValidPortNum(port)) > 0 {
		return "", 0, fmt.Errorf("%q is no port: write 1 to 65535 after @", given)
	}
	return who, int32(port), nil
}

func (p DNSPeer) rule() networkingv1.NetworkPolicyEgressRule {
	rule := networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{*p.peer.DeepCopy()}}
	for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(p.port))})
	}
	return rule
}
