package sandbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

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

// SameService says whether a Service that stands is as it was built.
func SameService(built, stands *corev1.Service) bool {
	b, s := &built.Spec, &stands.Spec
	return Labelled(built, stands) && b.Type == s.Type && equality.Semantic.DeepEqual(b.Selector, s.Selector) &&
		equality.Semantic.DeepEqual(b.Ports, s.Ports) && len(s.ExternalIPs) == 0 && !s.PublishNotReadyAddresses
}
