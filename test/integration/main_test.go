// Package integration tests the server as a whole: two processes on one etcd behind a real aggregator, with a real
// kube-controller-manager and fake nodes. It refuses to look at real pods, which are test/e2e's.
package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	sandboxclient "github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/otlp"
)

var shared struct {
	cluster *framework.Cluster
	servers *framework.Servers
	// auditLog is the file to which both servers write their audit events.
	auditLog string
	// traces is where both servers hand on the spans of what an administrator has traced.
	traces *otlp.Collector
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "audit-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a folder for the audit log:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args, err := auditing(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "setting up the audit log:", err)
		return 1
	}
	if shared.traces, err = otlp.Listen(); err != nil {
		fmt.Fprintln(os.Stderr, "starting a collector of traces:", err)
		return 1
	}
	defer shared.traces.Close()
	tracing, err := otlp.WriteConfig(dir, shared.traces.Address(), 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, "setting up traces:", err)
		return 1
	}
	args = append(args, "--tracing-config-file="+tracing)
	args = append(args, fmt.Sprintf("--shutdown-delay-duration=%s", shutdownDelay))
	return framework.Main(m, framework.ServerOptions{Replicas: 2, OwnCertificate: true, ExtraArgs: args}, func(c *framework.Cluster, s *framework.Servers) {
		shared.cluster, shared.servers = c, s
	})
}

const (
	runtimeName = "agent"
	handle      = "shell/default"
	// shutdownDelay is how long a server serves on after it was told to end, as in the manifests.
	shutdownDelay = 5 * time.Second
)

// world is a namespace with a runtime, a ToolRegistry, and a class of its own.
type world struct {
	*framework.Cluster
	t         *testing.T
	servers   *framework.Servers
	namespace string
	class     string
	// agent calls as the runtime's own ServiceAccount, through the aggregator.
	agent versioned.Interface
}

func onFakeNodes(*framework.ClassWrapper) {}

// newWorld makes a world whose class is changed as given; it builds sandboxes on fake nodes.
func newWorld(t *testing.T, change func(*framework.ClassWrapper)) *world {
	t.Helper()
	w := &world{Cluster: shared.cluster, servers: shared.servers, t: t}
	w.namespace = w.Namespace(t)
	class := framework.MakeClass("fake-" + w.namespace).OnFakeNodes()
	change(class)
	w.class = class.Cluster().Name
	w.CreateClasses(t, class)
	w.agent = w.Agent(t, w.namespace, runtimeName, w.class)
	return w
}

// acquire asks once, waiting as long as one call may.
func (w *world) acquire(set versioned.Interface, session string) (*v1alpha1.SandboxAcquireStatus, error) {
	got, err := set.SandboxV1alpha1().SandboxClaims(w.namespace).Acquire(w.t.Context(), v1alpha1.AnyClaim,
		framework.MakeAcquire(runtimeName, session, handle), metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &got.Status, nil
}

// acquireNow asks once and does not wait.
func (w *world) acquireNow(set versioned.Interface, session string) (*v1alpha1.SandboxAcquireStatus, error) {
	body := framework.MakeAcquire(runtimeName, session, handle)
	body.Spec.WaitSeconds = ptr.To[int32](0)
	got, err := set.SandboxV1alpha1().SandboxClaims(w.namespace).Acquire(w.t.Context(), v1alpha1.AnyClaim, body, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &got.Status, nil
}

// bound acquires until the claim is Bound.
func (w *world) bound(session string) *v1alpha1.SandboxClaim {
	w.t.Helper()
	got, err := w.acquire(w.agent, session)
	require.NoError(w.t, err)
	return w.Claim(w.t, w.namespace, got.ClaimName, framework.Bound)
}

// helper is the client helper of the runtime. Nothing answers on a fake node, so it does not dial.
func (w *world) helper() *sandboxclient.Client {
	c := sandboxclient.New(w.agent.SandboxV1alpha1(), w.namespace)
	c.DialTimeout = 0
	return c
}

func spec(session string) v1alpha1.SandboxAcquireSpec {
	return v1alpha1.SandboxAcquireSpec{AgentRuntime: runtimeName, SessionID: session, Handle: handle}
}

// noObjects waits until no sandbox object is left in the namespace.
func (w *world) noObjects() {
	w.t.Helper()
	framework.Eventually(w.t, framework.GoneTimeout, "no object of a sandbox is left", func(ctx context.Context) (string, error) {
		return w.Kubectl(ctx, "--namespace", w.namespace, "get", "deployments,replicasets,pods,services,networkpolicies,endpointslices",
			"--selector", v1alpha1.LabelClaim, "--output", "name")
	}, func(names string) bool { return names == "" })
}
