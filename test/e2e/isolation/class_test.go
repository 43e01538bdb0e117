package isolation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

// literal is what a value that is not expanded looks like.
const literal = "$(HOME) $$5 ${HOME} $"

func TestClass_ArgsEnvAndPorts_AsTheyAreWritten(t *testing.T) {
	t.Parallel()
	args := []string{"serve", "-http", "8080,9090,7070", "-token", "two words"}
	env := []v1alpha1.EnvVar{{Name: "HOME", Value: "/tmp"}, {Name: "LITERAL", Value: literal}}
	w := newWorld(t, map[string]change{"shaped": func(s *v1alpha1.SandboxClassSpec) {
		s.Args, s.Env, s.View = args, env, &v1alpha1.View{Port: "view"}
		s.Ports = append(s.Ports, v1alpha1.ClassPort{Name: "view", Port: 9090}, v1alpha1.ClassPort{Name: "metrics", Port: 7070})
		s.Readiness = &v1alpha1.Readiness{Port: "metrics"}
	}})
	s := w.bound("shaped", "shaped")
	from := w.from(w.namespace, "runtime", framework.AgentLabels(runtimeName))
	expanding := attackerPod(w.namespace, "expanding", nil, "serve")
	expanding.Spec.ServiceAccountName = account
	expanding.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}, {Name: "LITERAL", Value: literal}}
	bare := w.about(from, w.StartPod(t, expanding).Status.PodIP+":8080")

	ports := prove(t, "ports: each answers at its address")
	require.Len(t, s.claim.Status.Addresses, 3)
	var first report.About
	for name, port := range map[string]string{"mcp": "8080", "view": "9090", "metrics": "7070"} {
		address := s.claim.Status.Addresses[name]
		first = w.about(from, address)
		ports.attempted(first.Address == s.pod.Status.PodIP+":"+port, "%s at %s answers from %s", name, address, first.Address)
	}
	ports.denied("the runtime's pod, on a port that no class declares", w.until(false, from, []target{tcp("", s.pod.Status.PodIP+":"+undeclared)})[0])
	ports.controlled(true, "the answers name the pod's own port, one each")

	view := prove(t, "view.port: it is one of the addresses")
	view.attempted(strings.HasSuffix(s.claim.Status.Addresses["view"], ":9090"), "%s", s.claim.Status.Addresses["view"])
	view.controlled(w.bound(plain, "viewless").claim.Status.Addresses["view"] == "", "a class without it has no such address")

	given := prove(t, "args: the process has them")
	given.attempted(slices.Equal(first.Args, args), "%q", first.Args)
	given.controlled(!slices.Equal(bare.Args, args), "a process that was started otherwise: %q", bare.Args)
	variables := prove(t, "env: the process has it, with its $ as they are written")
	variables.attempted(first.Env["LITERAL"] == literal && first.Env["HOME"] == "/tmp", "LITERAL=%s HOME=%s", first.Env["LITERAL"], first.Env["HOME"])
	variables.controlled(bare.Env["LITERAL"] != literal, "a bare pod's is expanded: %s", bare.Env["LITERAL"])
}

// about asks a process what it was started with.
func (w *world) about(from source, address string) report.About {
	w.t.Helper()
	asked := target{"", func(string) []string { return []string{"http", "http://" + address + "/about"} }}
	v := w.until(true, from, []target{asked})[0]
	require.True(w.t, v.Succeeded, "%s: %s", address, v.Said)
	var about report.About
	require.NoError(w.t, json.Unmarshal([]byte(v.Said), &about))
	return about
}

// A sandbox is Bound when it answers as its class says, and no sooner.
func TestClass_Readiness_DecidesWhenItIsBound(t *testing.T) {
	t.Parallel()
	silent := []v1alpha1.ClassPort{{Name: "mcp", Port: 8080}, {Name: "silent", Port: 7070}}
	probed := func(r *v1alpha1.Readiness) change {
		return func(s *v1alpha1.SandboxClassSpec) { s.Ports, s.Readiness = silent, r }
	}
	w := newWorld(t, map[string]change{
		"default":    probed(nil),
		"dialled":    probed(&v1alpha1.Readiness{Port: "mcp"}),
		"asked":      probed(&v1alpha1.Readiness{Port: "mcp", HTTPGet: &v1alpha1.HTTPGet{Path: "/healthz"}}),
		"wrong-port": probed(&v1alpha1.Readiness{Port: "silent"}),
		"wrong-path": probed(&v1alpha1.Readiness{Port: "mcp", HTTPGet: &v1alpha1.HTTPGet{Path: "/none"}}),
	})
	never := map[string]string{"wrong-port": w.waits("wrong-port", "wrong-port"), "wrong-path": w.waits("wrong-path", "wrong-path")}
	for _, r := range []struct{ promise, good, bad, says string }{
		{"readiness: a TCP dial of its port", "dialled", "wrong-port", "connection refused"},
		{"readiness: httpGet of its path", "asked", "wrong-path", "statuscode: 404"},
	} {
		p := prove(t, r.promise)
		w.fails(never[r.bad], r.says)
		waiting := w.Claim(t, w.namespace, never[r.bad], framework.InPhase(v1alpha1.PhasePending))
		p.attempted(len(waiting.Status.Addresses) == 0, "while the probe is told %q: %s, no address", r.says, waiting.Status.Phase)
		p.controlled(framework.Bound(w.bound(r.good, r.good).claim), "when it is answered: Bound")
	}
	p := prove(t, "readiness: unset is a dial of the first port")
	s := w.bound("default", "default")
	p.attempted(framework.Bound(s.claim), "the first answers, the second does not: Bound")
	p.controlled(w.Claim(t, w.namespace, never["wrong-port"], framework.InPhase(v1alpha1.PhasePending)) != nil, "a class that names the second: Pending")
}

// fails waits until the kubelet has told of a claim's pod that its probe failed, in these words.
func (w *world) fails(claim, words string) {
	w.t.Helper()
	type told = []string
	framework.Eventually(w.t, framework.BoundTimeout, "the probe of "+claim+"'s pod fails: "+words, func(ctx context.Context) (told, error) {
		events, err := w.Kube.CoreV1().Events(w.namespace).List(ctx, listOptions("reason=Unhealthy"))
		if err != nil {
			return nil, err
		}
		var said told
		for _, event := range events.Items {
			if strings.HasPrefix(event.InvolvedObject.Name, claim+"-") {
				said = append(said, event.Message)
			}
		}
		return said, nil
	}, func(said told) bool { return strings.Contains(strings.Join(said, "\n"), words) })
}
