// Package install tests the server as people install it: by the overlays, as pods of the cluster, and uninstalled as the
// operations page says. It refuses to test what a server does once it runs, which is test/integration's and test/e2e's.
package install

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	sandboxv1alpha1 "github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned/typed/sandbox/v1alpha1"
	sandboxclient "github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	runtimeName = "agent"
	handle      = "shell/default"

	installTimeout   = 5 * time.Minute
	uninstallTimeout = 4 * time.Minute
)

// world is an installation, and a namespace with a runtime and a class on the real node.
type world struct {
	*framework.Cluster
	t            *testing.T
	installation *framework.Installation
	uninstalled  bool
	namespace    string
	sandboxes    *sandboxclient.Client
	// claims is what sandboxes calls, each call by itself and once.
	claims sandboxv1alpha1.SandboxClaimInterface
}

// install installs an overlay for the test, after what the overlay asks for, and uninstalls it at its end if the test does
// not.
func install(t *testing.T, overlay string, prepare func(context.Context) error) *world {
	t.Helper()
	w := &world{Cluster: framework.Get(t), t: t}
	ctx, cancel := context.WithTimeout(t.Context(), installTimeout)
	defer cancel()
	require.NoError(t, w.InstallOmnia(ctx))
	require.NoError(t, w.LoadSampleImages(ctx))
	installation, err := w.InstallOverlay(ctx, overlay, prepare)
	if err != nil {
		w.showServer()
	}
	require.NoError(t, err)
	w.installation = installation
	t.Cleanup(func() {
		if t.Failed() {
			w.showServer()
		}
		w.uninstall()
	})
	w.prepare()
	return w
}

// prepare makes what an acquire needs.
func (w *world) prepare() {
	w.t.Helper()
	w.namespace = w.Namespace(w.t)
	class := framework.MakeClass("installed-" + w.namespace).OnRealNodes()
	w.Create(w.t, class.Cluster())
	set := w.Agent(w.t, w.namespace, runtimeName, class.Cluster().Name)
	w.claims = set.SandboxV1alpha1().SandboxClaims(w.namespace)
	w.sandboxes = sandboxclient.New(set.SandboxV1alpha1(), w.namespace)
	w.sandboxes.DialTimeout = 0 // the test's own process is no pod of the runtime
}

func (w *world) acquire(session string) *sandboxclient.Sandbox {
	w.t.Helper()
	sandbox, err := w.sandboxes.Acquire(w.t.Context(), v1alpha1.SandboxAcquireSpec{AgentRuntime: runtimeName, SessionID: session, Handle: handle})
	require.NoError(w.t, err)
	return sandbox
}

// pod is the pod of a sandbox.
func (w *world) pod(sandbox *sandboxclient.Sandbox) *corev1.Pod {
	w.t.Helper()
	pods, err := w.PodsOf(w.t.Context(), w.namespace, sandbox.UID)
	require.NoError(w.t, err)
	require.Len(w.t, pods, 1)
	return &pods[0]
}

// servers are the server's pods.
func (w *world) servers() []corev1.Pod {
	w.t.Helper()
	pods, err := w.Kube.CoreV1().Pods(framework.SystemNamespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + framework.ServerName})
	require.NoError(w.t, err)
	return pods.Items
}

func (w *world) uninstall() {
	w.t.Helper()
	if w.uninstalled {
		return
	}
	w.uninstalled = true
	ctx, cancel := context.WithTimeout(context.Background(), uninstallTimeout)
	defer cancel()
	assert.NoError(w.t, w.installation.Uninstall(ctx))
}

func (w *world) showServer() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"get", "pods,events", "--output", "wide"},
		{"logs", "--selector", "app.kubernetes.io/name=" + framework.ServerName, "--tail", "60"},
	} {
		out, err := w.Kubectl(ctx, append([]string{"--namespace", framework.SystemNamespace}, args...)...)
		w.t.Log(out, err)
	}
}
