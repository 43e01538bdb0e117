package isolation

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	// podGateway is the bridge's address, which is the node's by another name.
	podGateway = "10.244.0.1"
	// seconds is how soon it must be told.
	seconds = 10 * time.Second
	// nodePort is within the range of NodePorts, of which network plugins think in their own ways.
	nodePort = "30999"
)

func TestEgressAbsent_NothingIsReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s, victim := w.bound(plain, "attacker"), w.bound(plain, "victim")
	other := w.start(w.namespace, "other", app("other"))
	published := service(w.namespace, "published", app("other"), port(8080, intstr.FromInt32(8080)))
	published.Spec.Type = corev1.ServiceTypeNodePort
	w.Create(t, published)
	apiserver, err := w.Kube.CoreV1().Services(metav1.NamespaceDefault).Get(t.Context(), "kubernetes", metav1.GetOptions{})
	require.NoError(t, err)
	s.shut(t, append(beyond(),
		tcp("no egress: the cluster's resolver, another port", shared.resolver.Status.PodIP+":8080"),
		dns("no egress: DNS, the resolver's pod over UDP", "udp", shared.resolver.Status.PodIP+":53"),
		dns("no egress: DNS, the resolver's pod over TCP", "tcp", shared.resolver.Status.PodIP+":53"),
		dns("no egress: DNS, the resolver's Service over UDP", "udp", shared.resolverIP+":53"),
		dns("no egress: DNS, the resolver's Service over TCP", "tcp", shared.resolverIP+":53"),
		tcp("no egress: a program of the node, on its own address", listen(t, w.Info.NodeIP, "0")),
		tcp("no egress: a program of the node, on the pods' gateway", listen(t, podGateway, "0")),
		tcp("no egress: the kubelet", w.Info.NodeIP+":10250"),
		tcp("no egress: kube-apiserver, its Service", apiserver.Spec.ClusterIP+":443"),
		tcp("no egress: kube-apiserver, on the node", strings.TrimPrefix(w.Info.Server, "https://")),
		tcp("no egress: another sandbox' pod", victim.pod.Status.PodIP+":8080"),
		tcp("no egress: another sandbox' Service", victim.address()),
		tcp("no egress: another pod of the namespace", other.Status.PodIP+":8080"),
		tcp("no egress: a NodePort, on the node's address", fmt.Sprintf("%s:%d", w.Info.NodeIP, published.Spec.Ports[0].NodePort)),
	))
}

// Some network plugins let by whatever goes to the NodePorts' range of a node, for the sake of Services, also where no Service
// but a program of the node answers. No policy says otherwise, so that it is the plugin's alone: it is told, and not judged.
func TestEgressAbsent_WhatThePluginLetsByWithinTheNodePortsRange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s := w.bound(plain, "node-port")
	below, within := listen(t, w.Info.NodeIP, "0"), listen(t, w.Info.NodeIP, nodePort)
	s.until(false, s.source(), []target{tcp("", below)}) // its policy is enforced
	verdict := s.try([]string{"tcp", within, token()})[0]
	shared.rows.measured("network plugin: a program of the node on port %s, within the NodePorts' range: reached: %t (%s)", nodePort, verdict.Succeeded, verdict.Said)
}

// beyond is what lies beyond the cluster.
func beyond() []target {
	return []target{
		tcp("no egress: a host beyond the cluster, TCP", shared.outside.Address),
		udp("no egress: a host beyond the cluster, UDP", framework.OutsideHost+":"+outsideUDP),
		dns("no egress: a resolver beyond the cluster, UDP", "udp", framework.OutsideHost+":"+outsideDNS),
		dns("no egress: a resolver beyond the cluster, TCP", "tcp", framework.OutsideHost+":"+outsideDNS),
		tcp("no egress: the metadata address", framework.MetadataHost+":80"),
		udp("no egress: the metadata address, UDP", framework.MetadataHost+":"+outsideUDP),
	}
}

// listen is a program of the node: it answers HTTP on one of the machine's own addresses until the test ends.
func listen(t *testing.T, host, port string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp4", net.JoinHostPort(host, port))
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.NotFoundHandler()}}
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr().String()
}

// A ping needs no policy to be denied if the pod may not open the socket, so its control is a pod that may.
func TestEgressAbsent_NobodyIsPinged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s := w.bound(plain, "pinging")
	bare := w.start(w.namespace, "bare", nil)
	targets := []target{
		ping("no egress: a host beyond the cluster, ICMP echo", framework.OutsideHost),
		ping("no egress: the metadata address, ICMP echo", framework.MetadataHost),
		ping("no egress: the node, ICMP echo", w.Info.NodeIP),
		ping("no egress: another pod of the namespace, ICMP echo", bare.Status.PodIP),
	}
	proofs := s.unreached(t, targets)
	for i, v := range w.until(true, source{"bare", w.namespace, bare.Name}, targets) {
		proofs[i].allowed("in a bare pod of the same image", v)
	}
	// Who is pinged by a pod that may is heard, so that silence means something.
	_, tokens := w.all(source{"bare", w.namespace, bare.Name}, targets[:1])
	proofs[0].controlled(len(w.heard(tokens[0])) > 0, "and is heard outside")
}

// Somebody else's policy that allows a sandbox more is what its own cannot help, so that the claim must tell.
func TestIsolationWeakened_ThePolicyIsNamed_UntilItGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s := w.bound(plain, "weakened")
	p := prove(t, "a policy that allows a sandbox more is named on its claim")
	p.controlled(!weakened(s.claim), "without such a policy: %s", condition(s.claim, v1alpha1.ConditionIsolationWeakened))
	history := w.Record(t, w.namespace)
	name, shut := w.open()
	opened := time.Now()
	named := history.First(t, framework.BoundTimeout, s.claim.Name, "tells that it is weakened", weakened)
	p.attempted(strings.Contains(conditionOf(named.Claim, v1alpha1.ConditionIsolationWeakened).Message, name) && named.At.Sub(opened) < seconds,
		"%s added: within %s %s", name, named.At.Sub(opened).Round(time.Millisecond), condition(named.Claim, v1alpha1.ConditionIsolationWeakened))
	p.attempted(framework.Bound(named.Claim), "it stays Bound: %s", named.Claim.Status.Phase)
	shut()
	cleared := w.Claim(t, w.namespace, s.claim.Name, func(c *v1alpha1.SandboxClaim) bool { return !weakened(c) })
	p.controlled(true, "%s gone: %s", name, condition(cleared, v1alpha1.ConditionIsolationWeakened))
}

func weakened(c *v1alpha1.SandboxClaim) bool {
	return conditionOf(c, v1alpha1.ConditionIsolationWeakened).Status == metav1.ConditionTrue
}

// condition is a claim's condition of a type in a few words.
func condition(c *v1alpha1.SandboxClaim, kind string) string {
	got := conditionOf(c, kind)
	if got.Type == "" {
		return "no condition " + kind
	}
	return kind + "=" + string(got.Status) + " " + got.Reason + " " + strconv.Quote(got.Message)
}

func conditionOf(c *v1alpha1.SandboxClaim, kind string) metav1.Condition {
	return ptr.Deref(apimeta.FindStatusCondition(c.Status.Conditions, kind), metav1.Condition{})
}
