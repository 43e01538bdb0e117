package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestServers_OneRestarted_TheOtherServesAndBothAnswer(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	namespace, c, servers := w.namespace, w.Cluster, w.servers
	claim := w.bound("session-1")

	w.startsAgain()
	require.NoError(t, servers.List[0].Kill())
	require.NoError(t, servers.List[0].RemoveEndpoint(t.Context()))
	require.False(t, servers.List[0].Running())
	framework.Eventually(t, framework.NoticeTimeout, "the other server answers through the aggregator", func(ctx context.Context) (*v1alpha1.SandboxClaim, error) {
		return c.Sandbox.SandboxV1alpha1().SandboxClaims(namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	}, func(*v1alpha1.SandboxClaim) bool { return true })

	require.NoError(t, servers.List[0].Start(t.Context()))
	require.NoError(t, servers.List[0].AddEndpoint(t.Context()))
	for _, server := range servers.List {
		direct, err := versioned.NewForConfig(server.Direct(c.Config))
		require.NoError(t, err)
		got, err := direct.SandboxV1alpha1().SandboxClaims(namespace).Get(t.Context(), claim.Name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, claim.UID, got.UID)
	}
}

// startsAgain has every server run and reached when the test ends, for the tests that follow it, however it ends. It comes
// before the first of them is stopped.
func (w *world) startsAgain() {
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		for _, server := range w.servers.List {
			if !server.Running() {
				assert.NoError(w.t, server.Start(ctx))
			}
			assert.NoError(w.t, server.AddEndpoint(ctx))
		}
		assert.NoError(w.t, w.WaitServed(ctx))
	})
}
