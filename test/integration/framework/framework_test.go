// Package framework_test sees that what the whole-system tests stand on holds: servers that end and start again, and
// callers that are who they are.
package framework_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// shared are what all tests of the package use.
var shared struct {
	cluster *framework.Cluster
	servers *framework.Servers
}

func TestMain(m *testing.M) {
	os.Exit(framework.Main(m, framework.ServerOptions{Replicas: 2}, func(c *framework.Cluster, s *framework.Servers) {
		shared.cluster, shared.servers = c, s
	}))
}

// world makes a runtime with one sandbox "shell" that runs on fake nodes, and gives its namespace and the runtime's
// own clientset.
func world(t *testing.T) (string, versioned.Interface) {
	t.Helper()
	c := shared.cluster
	namespace := c.Namespace(t)
	class := framework.MakeClass("fake-" + namespace).OnFakeNodes()
	c.CreateClasses(t, class)
	c.ServiceAccount(t, namespace, "agent-facade")
	c.Create(t,
		framework.MakeToolRegistry("tools", namespace).Sandbox("shell", class.Cluster().Name).MaxInstances(2).Obj(),
		framework.MakeRuntime("agent", namespace).ToolRegistry("tools").Obj())
	config, err := c.AsServiceAccount(t.Context(), namespace, "agent-facade")
	require.NoError(t, err)
	agent, err := versioned.NewForConfig(config)
	require.NoError(t, err)
	return namespace, agent
}

func TestServers_OneRestarted_TheOtherServesAndBothAnswer(t *testing.T) {
	namespace, agent := world(t)
	c, servers := shared.cluster, shared.servers

	answer, err := agent.SandboxV1alpha1().SandboxClaims(namespace).Acquire(t.Context(), v1alpha1.AnyClaim,
		framework.MakeAcquire("agent", "session-1", "shell/main"), metav1.CreateOptions{})
	require.NoError(t, err)
	claim := c.Claim(t, namespace, answer.Status.ClaimName, framework.Bound)
	require.Equal(t, answer.Status.ClaimUID, claim.UID)

	require.NoError(t, servers.List[0].Kill())
	require.NoError(t, servers.List[0].RemoveEndpoint(t.Context()))
	require.False(t, servers.List[0].Running())
	framework.Eventually(t, framework.Shortly, "the other server answers through the aggregator", func(ctx context.Context) (*v1alpha1.SandboxClaim, error) {
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

func TestAsServiceAccount_Stranger_IsRefused(t *testing.T) {
	namespace, _ := world(t)
	c := shared.cluster
	c.ServiceAccount(t, namespace, "stranger")
	config, err := c.AsServiceAccount(t.Context(), namespace, "stranger")
	require.NoError(t, err)
	stranger, err := versioned.NewForConfig(config)
	require.NoError(t, err)
	ask := framework.MakeAcquire("agent", "session-1", "shell/main")
	ask.Spec.WaitSeconds = ptr.To[int32](0)
	_, err = stranger.SandboxV1alpha1().SandboxClaims(namespace).Acquire(t.Context(), v1alpha1.AnyClaim, ask, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "got %v", err)
}
