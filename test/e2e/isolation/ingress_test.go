package isolation

import (
	"testing"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// undeclared is a port that the attacker listens on, and that its class does not declare.
const undeclared = "9999"

func TestIngress_OnlyTheRuntimesOwnPods_AndOnlyTheClassesPorts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]change{"listening": func(s *v1alpha1.SandboxClassSpec) { s.Args = []string{"serve", "-http", "8080," + undeclared} }})
	s := w.bound("listening", "entered")
	elsewhere := w.Namespace(t)
	sources := map[string]source{
		"own runtime":   w.from(w.namespace, "own-runtime", framework.AgentLabels(runtimeName)),
		"other runtime": w.from(w.namespace, "other-runtime", framework.AgentLabels("other")),
		"unlabelled":    w.from(w.namespace, "unlabelled", nil),
		"half labelled": w.from(w.namespace, "half-labelled", map[string]string{"app.kubernetes.io/instance": runtimeName}),
		"forged":        w.from(elsewhere, "forged", framework.AgentLabels(runtimeName)),
	}
	declared := []target{tcp("", s.address()), tcp("", s.pod.Status.PodIP+":8080")}
	hidden := []target{tcp("", s.pod.Status.PodIP+":"+undeclared)}
	entries := []struct {
		promise, from string
		to            []target
		proof         *proof
	}{
		{promise: "ingress: another runtime's pod is kept out", from: "other runtime", to: declared},
		{promise: "ingress: a pod without labels is kept out", from: "unlabelled", to: declared},
		{promise: "ingress: a pod with some of the runtime's labels is kept out", from: "half labelled", to: declared},
		{promise: "ingress: forged labels in another namespace are kept out", from: "forged", to: declared},
		{promise: "ingress: the runtime's own pod is kept from a port that the class does not declare", from: "own runtime", to: hidden},
	}
	w.until(true, sources["own runtime"], declared) // Now the plugin knows that pod, and what is refused is refused by the policy.
	for i := range entries {
		e := &entries[i]
		e.proof = prove(t, e.promise)
		w.until(false, sources[e.from], e.to)
		verdicts, _ := w.all(sources[e.from], e.to)
		for _, v := range verdicts {
			e.proof.denied(e.from, v)
		}
	}
	_, shut := w.open()
	for i := range entries {
		for _, v := range w.until(true, sources[entries[i].from], entries[i].to) {
			entries[i].proof.allowed("with a policy that opens it", v)
		}
	}
	shut()
	p := prove(t, "ingress: the runtime's own pod reaches the class's port")
	for _, v := range w.until(true, sources["own runtime"], declared) {
		p.attempted(v.Succeeded, "%s", describe("own runtime", v))
	}
	for _, v := range w.until(false, sources["unlabelled"], declared) {
		p.controlled(!v.Succeeded, "%s", describe("unlabelled", v))
	}
}

// from starts a pod to make attempts from.
func (w *world) from(namespace, name string, labels map[string]string) source {
	w.t.Helper()
	w.start(namespace, name, labels)
	return source{name, namespace, name}
}
