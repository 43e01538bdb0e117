package isolation

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	sandboxclient "github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

const (
	runtimeName = "agent"
	account     = "bare"
	// plain is the sandbox of a class that allows nothing, which every world has.
	plain = "plain"

	// enforced is how long the network plugin may take to learn of a pod or a policy: about 2 seconds, on a busy machine.
	enforced = 30 * time.Second
)

// change is what a class has that the attacker's plain one has not.
type change = func(*v1alpha1.SandboxClassSpec)

// world is a namespace under the restricted Pod Security Standard with a runtime, which has a sandbox for each class.
type world struct {
	*framework.Cluster
	t         testing.TB
	namespace string
	agent     versioned.Interface
}

// newWorld makes a world with a plain sandbox and those that are named.
func newWorld(t testing.TB, sandboxes map[string]change) *world {
	t.Helper()
	require.NoError(t, shared.prepared)
	c := shared.cluster
	w := &world{Cluster: c, t: t, namespace: c.Namespace(t)}
	registry := framework.MakeToolRegistry("tools", w.namespace)
	w.add(registry, plain, func(*v1alpha1.SandboxClassSpec) {})
	for name, change := range sandboxes {
		w.add(registry, name, change)
	}
	w.populate(runtimeName, registry)
	return w
}

// add declares a sandbox of a class of its own.
func (w *world) add(registry *framework.ToolRegistryWrapper, name string, change change) {
	w.t.Helper()
	class := attackerClass(name + "-" + w.namespace).With(change)
	w.CreateClasses(w.t, class)
	registry.Sandbox(name, class.Cluster().Name).MaxInstances(3)
}

// populate makes the runtime and its identity.
func (w *world) populate(name string, registry *framework.ToolRegistryWrapper) {
	w.t.Helper()
	w.ServiceAccount(w.t, w.namespace, name+"-facade")
	w.Create(w.t, registry.Obj(), framework.MakeRuntime(name, w.namespace).ToolRegistry(registry.Name).MaxConcurrent(50).Obj())
	config, err := w.AsServiceAccount(w.t.Context(), w.namespace, name+"-facade")
	require.NoError(w.t, err)
	w.agent, err = versioned.NewForConfig(config)
	require.NoError(w.t, err)
}

// attackerClass is a class of the attacker, for the real node: it serves HTTP on its one port.
func attackerClass(name string) *framework.ClassWrapper {
	return framework.MakeClass(name).OnRealNodes().Image(framework.AttackerImage).With(func(s *v1alpha1.SandboxClassSpec) {
		s.Args = []string{"serve", "-http", "8080"}
	})
}

// sandbox is one that runs, and its pod.
type sandbox struct {
	*world
	claim *v1alpha1.SandboxClaim
	pod   *corev1.Pod
}

// bound acquires a sandbox by the name it has in the registry.
func (w *world) bound(name, session string) *sandbox {
	w.t.Helper()
	claim := w.acquired(runtimeName, session, name+"/default")
	return &sandbox{world: w, claim: claim, pod: w.podOf(claim)}
}

func (w *world) acquired(runtime, session, handle string) *v1alpha1.SandboxClaim {
	w.t.Helper()
	c := sandboxclient.New(w.agent.SandboxV1alpha1(), w.namespace)
	c.DialTimeout = 0 // The test's own process is no pod of the runtime.
	got, err := c.Acquire(w.t.Context(), v1alpha1.SandboxAcquireSpec{AgentRuntime: runtime, SessionID: session, Handle: handle})
	require.NoError(w.t, err)
	claim, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Get(w.t.Context(), got.Name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return claim
}

// waits asks for a sandbox without waiting for it, and gives its claim's name.
func (w *world) waits(name, session string) string {
	w.t.Helper()
	body := framework.MakeAcquire(runtimeName, session, name+"/default")
	body.Spec.WaitSeconds = ptr.To[int32](0)
	answer, err := w.agent.SandboxV1alpha1().SandboxClaims(w.namespace).Acquire(w.t.Context(), v1alpha1.AnyClaim, body, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return answer.Status.ClaimName
}

// podOf is the claim's one pod that is not ending.
func (w *world) podOf(claim *v1alpha1.SandboxClaim) *corev1.Pod {
	w.t.Helper()
	pods, err := w.PodsOf(w.t.Context(), w.namespace, claim.UID)
	require.NoError(w.t, err)
	var living []*corev1.Pod
	for i := range pods {
		if pods[i].DeletionTimestamp == nil && pods[i].Status.Phase == corev1.PodRunning {
			living = append(living, &pods[i])
		}
	}
	require.Len(w.t, living, 1)
	return living[0]
}

// address is the sandbox' own address for a port of its class.
func (s *sandbox) address() string { return s.claim.Status.Addresses["mcp"] }

// try makes attempts within the sandbox. It needs no network: the kubelet runs them.
func (s *sandbox) try(attempts ...[]string) []report.Verdict {
	s.t.Helper()
	return s.tryIn(s.namespace, s.pod.Name, attempts...)
}

// tryIn makes attempts within a pod, beside each other.
func (w *world) tryIn(namespace, pod string, attempts ...[]string) []report.Verdict {
	w.t.Helper()
	verdicts, err := w.tried(w.t.Context(), namespace, pod, attempts...)
	require.NoError(w.t, err)
	return verdicts
}

func (w *world) tried(ctx context.Context, namespace, pod string, attempts ...[]string) ([]report.Verdict, error) {
	args := []string{"--namespace", namespace, "exec", pod, "--", "/attacker", "try"}
	for i, attempt := range attempts {
		if i > 0 {
			args = append(args, "+")
		}
		args = append(args, attempt...)
	}
	out, err := w.Kubectl(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	var verdicts []report.Verdict
	for line := range strings.Lines(out) {
		var v report.Verdict
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			return nil, fmt.Errorf("reading %q: %w", line, err)
		}
		verdicts = append(verdicts, v)
	}
	if len(verdicts) != len(attempts) {
		return nil, fmt.Errorf("%d verdicts on %d attempts: %s", len(verdicts), len(attempts), out)
	}
	return verdicts, nil
}

// attackerPod is a pod of the attacker's image within the restricted standard that no claim is behind.
func attackerPod(namespace, name string, labels map[string]string, args ...string) *corev1.Pod {
	pod := framework.AgentPod(namespace, name, "", labels, args...)
	pod.Spec.Containers[0].Name, pod.Spec.Containers[0].Image = "attacker", framework.AttackerImage
	return pod
}

// start starts a pod of the attacker's in a namespace, serving on 8080 unless args say otherwise.
func (w *world) start(namespace, name string, labels map[string]string, args ...string) *corev1.Pod {
	w.t.Helper()
	if len(args) == 0 {
		args = []string{"serve", "-http", "8080"}
	}
	w.ServiceAccount(w.t, namespace, account) // The namespace's own may not be there yet.
	pod := attackerPod(namespace, name, labels, args...)
	pod.Spec.ServiceAccountName = account
	return w.StartPod(w.t, pod)
}

// service is a Service of pods with these labels.
func service(namespace, name string, selector map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Selector: selector, Ports: ports},
	}
}

// token is new each time, so that what is heard outside is known to be of one attempt.
func token() string { return "t" + rand.String(10) }

// heard is what arrived outside with a token.
func (w *world) heard(token string) []report.Heard {
	w.t.Helper()
	return w.heardOf(url.Values{"token": {token}})
}

// heardOf is what arrived outside and is as asked for. No network is asked.
func (w *world) heardOf(asked url.Values) []report.Heard {
	w.t.Helper()
	client := &http.Client{Timeout: framework.Shortly, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", controlSocket(w.Cluster))
	}}}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://outside/heard?"+asked.Encode(), nil)
	require.NoError(w.t, err)
	answer, err := client.Do(request)
	require.NoError(w.t, err)
	defer func() { _ = answer.Body.Close() }()
	var all []report.Heard
	for lines := json.NewDecoder(answer.Body); lines.More(); {
		var one report.Heard
		require.NoError(w.t, lines.Decode(&one))
		all = append(all, one)
	}
	return all
}
