package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestKubectl_Columns(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("session-7")
	out, err := w.Kubectl(t.Context(), "--namespace", w.namespace, "get", "sbclaim", "--output", "wide")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2)
	assert.Equal(t, []string{"NAME", "RUNTIME", "SESSION", "HANDLE", "PHASE", "REASON", "AGE", "CLASS", "ADDRESSES", "IDLE", "RELEASE"}, strings.Fields(lines[0]))
	for _, want := range []string{claim.Name, runtimeName, "session-7", handle, "Bound", v1alpha1.ReasonSandboxReady, "csbc/" + w.class, "mcp=" + claim.Status.Addresses["mcp"]} {
		assert.Contains(t, lines[1], want)
	}
	out, err = w.Kubectl(t.Context(), "get", "csbc", w.class)
	require.NoError(t, err)
	assert.Equal(t, []string{"NAME", "IMAGE", "PORTS", "LIMITS", "RUNTIMECLASS", "TRUSTED", "AGE"}, strings.Fields(strings.Split(out, "\n")[0]))
	assert.Contains(t, out, "mcp:8080")
	assert.Contains(t, out, "cpu=500m,memory=128Mi")
}

func TestKubectl_CreateRaw_AcquiresOnceAndFindsItAgain(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	request := filepath.Join(t.TempDir(), "request.json")
	require.NoError(t, os.WriteFile(request, []byte(`{"apiVersion":"sandbox.omnia/v1alpha1","kind":"SandboxAcquire","spec":{"agentRuntime":"agent","sessionID":"s","handle":"shell/default"}}`), 0o600))
	path := "/apis/sandbox.omnia/v1alpha1/namespaces/" + w.namespace + "/sandboxclaims/-/acquire"
	var answers [2]v1alpha1.SandboxAcquire
	for i := range answers {
		out, err := w.Kubectl(t.Context(), "create", "--raw", path, "--filename", request)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(out), &answers[i]))
	}
	assert.True(t, answers[0].Status.Created)
	assert.False(t, answers[1].Status.Created)
	assert.Equal(t, answers[0].Status.ClaimUID, answers[1].Status.ClaimUID)
	assert.NotEmpty(t, answers[1].Status.Addresses["mcp"])
}

func TestKubectl_AuthCanI(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	agent := "system:serviceaccount:" + w.namespace + ":" + runtimeName + "-facade"
	groups := []string{"--as-group=system:serviceaccounts", "--as-group=system:authenticated"}
	can := func(args ...string) string {
		out, _ := w.Kubectl(t.Context(), append(append([]string{"--namespace", w.namespace, "auth", "can-i", "--as=" + agent}, groups...), args...)...) // "no" is an exit code of 1
		return strings.TrimSpace(out)
	}
	assert.Equal(t, "yes", can("create", "sandboxclaims.sandbox.omnia", "--subresource=acquire"))
	assert.Equal(t, "yes", can("create", "sandboxclaims.sandbox.omnia", "--subresource=release"))
	assert.Equal(t, "no", can("create", "sandboxclaims.sandbox.omnia"), "an agent has no permission on claims themselves")
	assert.Equal(t, "no", can("get", "sandboxclaims.sandbox.omnia"))
}

func TestKubectl_ExplainAndServerSideApply(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	out, err := w.Kubectl(t.Context(), "explain", "sandboxclaims.spec.sessionID", "--api-version=sandbox.omnia/v1alpha1")
	require.NoError(t, err)
	assert.Contains(t, out, "session that the sandbox is for")

	file := filepath.Join(t.TempDir(), "claim.yaml")
	manifest := framework.Show(framework.MakeClaim("applied", w.namespace, runtimeName, w.class).Obj())
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: sandbox.omnia/v1alpha1\nkind: SandboxClaim\n"+manifest), 0o600))
	for range 2 {
		_, err = w.Kubectl(t.Context(), "apply", "--server-side", "--filename", file)
		require.NoError(t, err)
	}
	_, err = w.Kubectl(t.Context(), "--namespace", w.namespace, "wait", "--for=condition=Ready", "--timeout=60s", "sbclaim/applied")
	require.NoError(t, err)
}
