package isolation

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// mirror is a namespace of somebody else's with a Service that a class allows, and what stands beside it.
type mirror struct {
	namespace          string
	service, namesake  *corev1.Service
	pod, other, unseen *corev1.Pod
}

// newMirror makes the pods and the Services. Every pod serves on 8080, by the name web, and on 8081 and 8082.
func newMirror(w *world, elsewhere string) *mirror {
	w.t.Helper()
	m := &mirror{namespace: elsewhere}
	m.pod, m.other = w.serving(elsewhere, "mirror"), w.serving(elsewhere, "neighbour")
	m.unseen = w.serving(w.namespace, "mirror")
	m.service = service(elsewhere, "mirror", app("mirror"), port(80, intstr.FromString("web")), port(81, intstr.FromInt32(8081)), port(82, intstr.FromInt32(8082)))
	m.namesake = service(w.namespace, "mirror", app("mirror"), port(80, intstr.FromString("web")))
	w.Create(w.t, m.service, m.namesake)
	return m
}

func app(name string) map[string]string { return map[string]string{"app": name} }

func port(number int32, to intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Name: fmt.Sprintf("p%d", number), Port: number, TargetPort: to, Protocol: corev1.ProtocolTCP}
}

// named gives a pod's port a name, which a Service may point to.
func named(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	return pod
}

func (w *world) serving(namespace, name string) *corev1.Pod {
	w.t.Helper()
	w.ServiceAccount(w.t, namespace, account)
	pod := named(attackerPod(namespace, name, app(name), "serve", "-http", "8080,8081,8082"))
	pod.Spec.ServiceAccountName = account
	return w.StartPod(w.t, pod)
}

func TestEgressAllowedServices_TheirPodsAndPortsAlone(t *testing.T) {
	t.Parallel()
	elsewhere := shared.cluster.Namespace(t)
	w := newWorld(t, map[string]change{"mirrored": func(s *v1alpha1.SandboxClassSpec) {
		s.Egress = &v1alpha1.Egress{AllowedServices: []v1alpha1.AllowedService{{Name: "mirror", Namespace: elsewhere, Ports: []int32{80, 81}}}}
	}})
	m := newMirror(w, elsewhere)
	s, without := w.bound("mirrored", "allowed"), w.bound(plain, "without")
	resolved := prove(t, "allowedServices: a claim whose Services were found says so")
	resolved.attempted(egressIs(metav1.ConditionTrue, v1alpha1.ReasonEgressAllowed)(s.claim), "%s", condition(s.claim, v1alpha1.ConditionEgressResolved))

	s.reaches(t, without, []target{
		tcp("allowedServices: a port by the container's name for it", m.service.Spec.ClusterIP+":80"),
		tcp("allowedServices: a port by its number", m.service.Spec.ClusterIP+":81"),
		tcp("allowedServices: the Service's pod itself, the named port", m.pod.Status.PodIP+":8080"),
		tcp("allowedServices: the Service's pod itself, the numbered port", m.pod.Status.PodIP+":8081"),
	})
	s.shut(t, append(slices.Clone(beyond()),
		tcp("allowedServices: a port of the Service that is not allowed", m.service.Spec.ClusterIP+":82"),
		tcp("allowedServices: another port of the same pod", m.pod.Status.PodIP+":8082"),
		tcp("allowedServices: another pod of that namespace, on an allowed port", m.other.Status.PodIP+":8080"),
		tcp("allowedServices: the Service's namesake in the own namespace", m.namesake.Spec.ClusterIP+":80"),
		tcp("allowedServices: the namesake's pod", m.unseen.Status.PodIP+":8080"),
		dns("allowedServices: no DNS", "udp", shared.resolver.Status.PodIP+":53"),
	))
	lost := s.follows(t, m)
	resolved.controlled(conditionOf(lost, v1alpha1.ConditionEgressResolved).Status == metav1.ConditionFalse, "when it is gone: %s", condition(lost, v1alpha1.ConditionEgressResolved))
}

// reaches proves that a sandbox reaches what its class allows, and that the class is why: one without it does not.
func (s *sandbox) reaches(t testing.TB, without *sandbox, targets []target) {
	t.Helper()
	proofs := proveEach(t, targets)
	for i, v := range s.until(true, s.source(), targets) {
		proofs[i].attempted(v.Succeeded, "%s", describe("in the sandbox", v))
	}
	for i, v := range s.until(false, without.source(), targets) {
		proofs[i].controlled(!v.Succeeded, "%s", describe("in a sandbox of a plain class", v))
	}
}

// follows changes the Service under the sandbox: its pods, a port's target, and whether it is there at all. It gives the
// claim as it stands at the end.
func (s *sandbox) follows(t testing.TB, m *mirror) *v1alpha1.SandboxClaim {
	t.Helper()
	one, other := m.pod.Status.PodIP, m.other.Status.PodIP
	s.moves(t, "allowedServices: the Service's selector changes, and the policy with it",
		func() { s.change(t, m.service, func() { m.service.Spec.Selector = app("neighbour") }) },
		tcp("", one+":8080"), tcp("", other+":8080"))
	s.moves(t, "allowedServices: a port's target changes, and the policy with it",
		func() {
			s.change(t, m.service, func() { m.service.Spec.Ports[1].TargetPort = intstr.FromInt32(8082) })
		},
		tcp("", other+":8081"), tcp("", other+":8082"))

	p := prove(t, "allowedServices: the Service goes, and with it what it allowed")
	p.controlled(s.until(true, s.source(), []target{tcp("", other+":8080")})[0].Succeeded, "while it stands its pod is reached")
	require.NoError(t, s.Client.Delete(t.Context(), m.service))
	v := s.until(false, s.source(), []target{tcp("", other+":8080")})[0]
	p.denied("in the sandbox", v)
	lost := s.Claim(t, s.namespace, s.claim.Name, egressIs(metav1.ConditionFalse, v1alpha1.ReasonServiceNotFound))
	p.attempted(framework.Bound(lost), "%s, %s", lost.Status.Phase, condition(lost, v1alpha1.ConditionEgressResolved))
	return lost
}

// moves proves that a change takes away one target and gives another, of which the first was reached before.
func (s *sandbox) moves(t testing.TB, promise string, change func(), from, to target) {
	t.Helper()
	p := prove(t, promise)
	reached, denied := s.until(true, s.source(), []target{from})[0], s.until(false, s.source(), []target{to})[0]
	p.controlled(reached.Succeeded && !denied.Succeeded, "before: %s; %s", describe("it", reached), describe("it", denied))
	change()
	reached, denied = s.until(true, s.source(), []target{to})[0], s.until(false, s.source(), []target{from})[0]
	p.attempted(reached.Succeeded && !denied.Succeeded, "after: %s; %s", describe("it", reached), describe("it", denied))
}

// change updates an object.
func (w *world) change(t testing.TB, object framework.Object, change func()) {
	t.Helper()
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	change()
	require.NoError(t, w.Client.Update(t.Context(), object))
}

func TestEgressAllowedServices_OneThatCannotBeResolved_IsToldAndAllowsNothing(t *testing.T) {
	t.Parallel()
	allow := func(name string, ports ...int32) change {
		return func(s *v1alpha1.SandboxClassSpec) {
			s.Egress = &v1alpha1.Egress{AllowedServices: []v1alpha1.AllowedService{{Name: name, Ports: ports}}}
		}
	}
	w := newWorld(t, map[string]change{
		"missing": allow("missing"), "selectorless": allow("selectorless"), "external": allow("external"), "portless": allow("portless", 81),
		"by-hand": allow("by-hand"),
	})
	pod := w.serving(w.namespace, "behind")
	selectorless := service(w.namespace, "selectorless", nil, port(80, intstr.FromInt32(8080)))
	external := service(w.namespace, "external", nil, port(80, intstr.FromInt32(8080)))
	external.Spec.Type, external.Spec.ExternalName = corev1.ServiceTypeExternalName, "outside.isolation.test"
	portless := service(w.namespace, "portless", app("behind"), port(80, intstr.FromInt32(8080)))
	byHand := service(w.namespace, "by-hand", nil, port(80, intstr.FromInt32(80)))
	w.Create(t, selectorless, external, portless, byHand, leadsOutside(byHand))

	for _, c := range []struct {
		name, reason string
		mend         func()
	}{
		{"missing", v1alpha1.ReasonServiceNotFound, func() {
			w.Create(t, service(w.namespace, "missing", app("behind"), port(80, intstr.FromInt32(8080))))
		}},
		{"selectorless", v1alpha1.ReasonServiceHasNoSelector, func() {
			w.change(t, selectorless, func() { selectorless.Spec.Selector = app("behind") })
		}},
		{"external", v1alpha1.ReasonServiceIsExternalName, func() {
			w.change(t, external, func() {
				external.Spec.Type, external.Spec.ExternalName, external.Spec.Selector = corev1.ServiceTypeClusterIP, "", app("behind")
			})
		}},
		{"portless", v1alpha1.ReasonServicePortNotFound, func() {
			w.change(t, portless, func() { portless.Spec.Ports[0].Port = 81 })
		}},
	} {
		p := prove(t, "allowedServices: "+c.reason+" is told, and nothing is allowed")
		s := w.bound(c.name, c.name)
		told := w.Claim(t, w.namespace, s.claim.Name, egressIs(metav1.ConditionFalse, c.reason))
		p.attempted(framework.Bound(told), "%s, %s", told.Status.Phase, condition(told, v1alpha1.ConditionEgressResolved))
		targets := []target{tcp("", pod.Status.PodIP+":8080"), tcp("", shared.outside.Address)}
		for _, v := range s.until(false, s.source(), targets) {
			p.denied("in the sandbox", v)
		}
		c.mend()
		mended := w.Claim(t, w.namespace, s.claim.Name, egressIs(metav1.ConditionTrue, v1alpha1.ReasonEgressAllowed))
		p.controlled(true, "mended: %s", condition(mended, v1alpha1.ConditionEgressResolved))
		p.allowed("mended", s.until(true, s.source(), targets[:1])[0])
	}
	s := w.bound("by-hand", "by-hand")
	p := prove(t, "allowedServices: a Service without a selector leads nowhere, wherever its endpoints are")
	through := []target{tcp("", byHand.Spec.ClusterIP+":80")}
	p.denied("in a sandbox", s.until(false, s.source(), through)[0])
	w.open()
	p.allowed("with a policy that opens it", s.until(true, s.source(), through)[0])
}

// leadsOutside are endpoints that somebody wrote by hand for a Service, beyond the cluster.
func leadsOutside(of *corev1.Service) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name, Labels: map[string]string{discoveryv1.LabelServiceName: of.Name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("p80"), Port: ptr.To[int32](80), Protocol: ptr.To(corev1.ProtocolTCP)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{framework.OutsideHost}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
	}
}

func TestEgressDNS_TheClustersResolverAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]change{"asking": func(s *v1alpha1.SandboxClassSpec) { s.Egress = &v1alpha1.Egress{DNS: true} }})
	other := w.start(w.namespace, "other", nil)
	forged := w.start(w.namespace, "forged", map[string]string{"k8s-app": "kube-dns"}, "serve", "-http", "8080", "-dns", "53")
	s, without := w.bound("asking", "asking"), w.bound(plain, "without")
	s.reaches(t, without, []target{
		dns("dns: the resolver's pod over UDP", "udp", shared.resolver.Status.PodIP+":53"),
		dns("dns: the resolver's pod over TCP", "tcp", shared.resolver.Status.PodIP+":53"),
		dns("dns: the resolver's Service over UDP", "udp", shared.resolverIP+":53"),
		dns("dns: the resolver's Service over TCP", "tcp", shared.resolverIP+":53"),
	})
	s.shut(t, append(slices.Clone(beyond()),
		tcp("dns: another port of the resolver", shared.resolver.Status.PodIP+":8080"),
		dns("dns: a resolver's forged labels in another namespace, UDP", "udp", forged.Status.PodIP+":53"),
		dns("dns: a resolver's forged labels in another namespace, TCP", "tcp", forged.Status.PodIP+":53"),
		tcp("dns: another pod of the namespace", other.Status.PodIP+":8080"),
		tcp("dns: kube-apiserver, on the node", w.Info.NodeIP+":6443"),
	))
}

// egressIs says whether a claim tells so of its Services; any reason will do if none is given.
func egressIs(status metav1.ConditionStatus, reason string) func(*v1alpha1.SandboxClaim) bool {
	return func(c *v1alpha1.SandboxClaim) bool {
		got := conditionOf(c, v1alpha1.ConditionEgressResolved)
		return got.Status == status && (reason == "" || got.Reason == reason)
	}
}
