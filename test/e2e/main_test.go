// Package e2e tests sandboxes as their users have them: real pods on a real node, under a real NetworkPolicy, called over
// MCP. It refuses to test what needs no pod, which is test/integration's.
package e2e

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	sandboxclient "github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

var shared struct {
	cluster *framework.Cluster
	// prepared is why the node could not be made ready for sandboxes.
	prepared error
}

func TestMain(m *testing.M) {
	os.Exit(framework.Main(m, framework.ServerOptions{Storage: framework.EmbeddedEtcd}, func(c *framework.Cluster, _ *framework.Servers) {
		shared.cluster, shared.prepared = c, prepare(context.Background(), c)
	}))
}

// prepare makes the node ready for sandboxes: a test that was killed may have left it cordoned.
func prepare(ctx context.Context, c *framework.Cluster) error {
	_, err := c.Kubectl(ctx, "uncordon", "--selector="+framework.RealNodes)
	return errors.Join(err, c.LoadSampleImages(ctx))
}

const (
	runtimeName = "agent"
	facade      = runtimeName + "-facade"
	handle      = "shell/default"
)

// world is a namespace under the restricted Pod Security Standard with a runtime and a class on the real node.
type world struct {
	*framework.Cluster
	t         *testing.T
	namespace string
	agent     versioned.Interface
}

func newWorld(t *testing.T, change func(*v1alpha1.SandboxClassSpec)) *world {
	t.Helper()
	require.NoError(t, shared.prepared)
	w := &world{Cluster: shared.cluster, t: t}
	w.namespace = w.Namespace(t)
	class := framework.MakeClass("real-" + w.namespace).OnRealNodes().With(change)
	w.CreateClasses(t, class)
	w.ServiceAccount(t, w.namespace, "stranger")
	w.agent = w.Agent(t, w.namespace, runtimeName, class.Cluster().Name)
	return w
}

func asItIs(*v1alpha1.SandboxClassSpec) {}

// bound acquires a sandbox and gives its claim. It does not dial: the test's own process is no pod of the runtime.
func (w *world) bound(session string) *v1alpha1.SandboxClaim {
	w.t.Helper()
	c := sandboxclient.New(w.agent.SandboxV1alpha1(), w.namespace)
	c.DialTimeout = 0
	sandbox, err := c.Acquire(w.t.Context(), v1alpha1.SandboxAcquireSpec{AgentRuntime: runtimeName, SessionID: session, Handle: handle})
	require.NoError(w.t, err)
	claim, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Get(w.t.Context(), sandbox.Name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return claim
}
