package integration

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	sandboxclient "github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestAcquire_HundredRacedOverTwoServers_OneClaim(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	direct := w.direct()
	const callers = 100
	var wg sync.WaitGroup
	answers := make([]*v1alpha1.SandboxAcquireStatus, callers)
	for i := range callers {
		wg.Go(func() {
			got, err := w.acquire(direct[i%len(direct)], "raced")
			assert.NoError(t, err)
			answers[i] = got
		})
	}
	wg.Wait()
	created := 0
	for _, a := range answers {
		require.NotNil(t, a)
		assert.Equal(t, answers[0].ClaimUID, a.ClaimUID)
		if a.Created {
			created++
		}
	}
	assert.Equal(t, 1, created, "one caller created the claim")
	claims, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, claims.Items, 1)
}

func TestAcquire_ServersKilledInAWait_TheClaimStaysAndTheHelperSucceeds(t *testing.T) {
	var label string
	w := newWorld(t, func(c *framework.ClassWrapper) {
		c.With(func(s *v1alpha1.SandboxClassSpec) {
			label = "sandbox.omnia/opens"
			s.NodeSelector = map[string]string{label: c.Cluster().Name}
		})
	})
	var sandbox *sandboxclient.Sandbox
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		sandbox, failed = w.helper().Acquire(t.Context(), spec("killed"))
	}()
	name := onlyClaim(t, w)
	before := w.Claim(t, w.namespace, name, unschedulable)
	require.NotNil(t, before.Status.Wait, "the helper waits")

	w.startsAgain()
	for _, server := range w.servers.List {
		require.NoError(t, server.Kill())
	}
	for _, server := range w.servers.List {
		require.NoError(t, server.Start(t.Context()))
	}
	framework.Eventually(t, framework.FailoverTimeout, "the claim is served again", func(ctx context.Context) (types.UID, error) {
		claim, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return claim.UID, nil
	}, func(uid types.UID) bool { return uid == before.UID })

	openNode(t, w, label, w.class)
	select {
	case <-done:
	case <-t.Context().Done():
	}
	require.NoError(t, failed)
	assert.Equal(t, before.UID, sandbox.UID, "the call outlived the servers, and so did its claim")
	assert.NotEmpty(t, sandbox.Addresses["mcp"])
}

// onlyClaim waits for the namespace's one claim and gives its name.
func onlyClaim(t *testing.T, w *world) string {
	t.Helper()
	claims := framework.Eventually(t, framework.Shortly, "there is a claim", func(ctx context.Context) (*v1alpha1.SandboxClaimList, error) {
		return w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).List(ctx, metav1.ListOptions{})
	}, func(list *v1alpha1.SandboxClaimList) bool { return len(list.Items) == 1 })
	return claims.Items[0].Name
}

func unschedulable(claim *v1alpha1.SandboxClaim) bool {
	return framework.Reason(claim) == v1alpha1.ReasonUnschedulable
}

// openNode labels a fake node so that a class's pods may run on it, until the test ends.
func openNode(t *testing.T, w *world, label, value string) {
	t.Helper()
	node := w.anyFakeNode().Name
	set := func(ctx context.Context, quoted string) (*corev1.Node, error) {
		return w.Kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+label+`":`+quoted+`}}}`), metav1.PatchOptions{})
	}
	_, err := set(t.Context(), `"`+value+`"`)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := set(context.Background(), "null")
		assert.NoError(t, err)
	})
}

func TestCallers(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	c := w.Cluster
	c.ServiceAccount(t, w.namespace, "stranger")
	c.ServiceAccount(t, w.namespace, "gateway")
	_, err := w.Kubectl(t.Context(), "--namespace", w.namespace, "create", "role", "gateway", "--verb=acquire", "--resource=agentruntimes.omnia.altairalabs.ai", "--resource-name="+runtimeName)
	require.NoError(t, err)
	_, err = w.Kubectl(t.Context(), "--namespace", w.namespace, "create", "rolebinding", "gateway", "--role=gateway", "--serviceaccount="+w.namespace+":gateway")
	require.NoError(t, err)
	w.mayOnce(t, "gateway", authorizationv1.ResourceAttributes{Verb: "acquire", Group: omniav1alpha1.GroupName, Resource: "agentruntimes", Name: runtimeName})
	claim := w.bound("callers")

	account := func(name string) *rest.Config {
		config, err := c.AsServiceAccount(t.Context(), w.namespace, name)
		require.NoError(t, err)
		return config
	}
	nobody := rest.AnonymousClientConfig(c.Config)
	tests := map[string]struct {
		caller *rest.Config
		want   func(error) bool
	}{
		"the runtime's own ServiceAccount: served": {account(runtimeName + "-facade"), nil},
		"one with the verb acquire on it: served":  {account("gateway"), nil},
		"an administrator: served":                 {c.Config, nil},
		"a stranger: forbidden":                    {account("stranger"), apierrors.IsForbidden},
		"nobody: refused":                          {nobody, func(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }},
	}
	routes := map[string]func(*rest.Config) *rest.Config{
		"through the aggregator": func(config *rest.Config) *rest.Config { return config },
		"directly":               w.servers.List[0].Direct,
	}
	for name, tt := range tests {
		for route, through := range routes {
			if name == "an administrator: served" && route == "directly" {
				continue // its client certificate is kube-apiserver's to know: group system:masters is told by the front proxy
			}
			t.Run(name+", "+route, func(t *testing.T) {
				set, err := versioned.NewForConfig(through(tt.caller))
				require.NoError(t, err)
				claims := set.SandboxV1alpha1().SandboxClaims(w.namespace)
				_, acquired := claims.Acquire(t.Context(), v1alpha1.AnyClaim, framework.MakeAcquire(runtimeName, "callers", handle), metav1.CreateOptions{})
				_, touched := claims.Touch(t.Context(), claim.Name, &v1alpha1.SandboxTouch{}, metav1.CreateOptions{})
				_, unknown := claims.Touch(t.Context(), "agent-sbx-none", &v1alpha1.SandboxTouch{}, metav1.CreateOptions{})
				_, released := claims.Release(t.Context(), "agent-sbx-none", &v1alpha1.SandboxRelease{}, metav1.CreateOptions{})
				if tt.want == nil {
					require.NoError(t, acquired)
					require.NoError(t, touched)
					return
				}
				for _, err := range []error{acquired, touched, unknown, released} {
					require.True(t, tt.want(err), "got %v", err)
				}
			})
		}
	}
}

func TestAcquire_SandboxesDisabled_Refused(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	_, err := w.Kubectl(t.Context(), "--namespace", w.namespace, "patch", "agentruntime", runtimeName, "--type=merge", "--patch", `{"spec":{"sandbox":{"enabled":false}}}`)
	require.NoError(t, err)
	framework.Eventually(t, framework.NoticeTimeout, "acquire is refused", func(context.Context) (bool, error) {
		_, err := w.acquireNow(w.agent, "s")
		return v1alpha1.IsSandboxesDisabled(err), nil
	}, func(refused bool) bool { return refused })
}

func TestAcquire_ClassMissing_ReplacedOnceThenFailed(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	_, err := w.Kubectl(t.Context(), "delete", "csbc", w.class)
	require.NoError(t, err)
	w.valid("tools", omniav1alpha1.ReasonClassNotFound) // the controllers know that it is gone
	_, err = w.helper().Acquire(t.Context(), spec("s"))
	require.True(t, v1alpha1.IsSandboxFailed(err), "got %v", err)
	assert.Contains(t, err.Error(), w.class, "it quotes the claim's message")
	claim := w.Claim(t, w.namespace, onlyClaim(t, w), framework.Failed)
	assert.Equal(t, v1alpha1.ReasonClassNotFound, framework.Reason(claim))
	assert.NotEmpty(t, claim.Status.Replaces)
}
