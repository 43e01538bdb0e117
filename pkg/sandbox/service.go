package sandbox

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Service gives the sandbox its address: one that outlives the pod.
func Service(claim *v1alpha1.SandboxClaim) *corev1.Service {
	var ports []corev1.ServicePort
	for _, p := range class(claim).Ports {
		ports = append(ports, corev1.ServicePort{Name: p.Name, Port: p.Port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString(p.Name)})
	}
	return &corev1.Service{
		ObjectMeta: meta(claim),
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: selector(claim), Ports: ports},
	}
}

// Answering says whether a Service's EndpointSlice has a ready endpoint.
func Answering(slice *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return ptr.Deref(e.Conditions.Ready, false) })
}

// SameService says whether a Service that stands is as it was built.
func SameService(built, stands *corev1.Service) bool {
	b, s := &built.Spec, &stands.Spec
	return Labelled(built, stands) && b.Type == s.Type && equality.Semantic.DeepEqual(b.Selector, s.Selector) &&
		equality.Semantic.DeepEqual(b.Ports, s.Ports) && len(s.ExternalIPs) == 0 && !s.PublishNotReadyAddresses
}
