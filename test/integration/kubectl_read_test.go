package integration

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/yaml"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// kubectl runs kubectl in the world's namespace; it must succeed.
func (w *world) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.Kubectl(t.Context(), append([]string{"--namespace", w.namespace}, args...)...)
	require.NoError(t, err, "it printed: %s", out)
	return out
}

// kubectlFails runs kubectl in the world's namespace and gives what it says; it must fail.
func (w *world) kubectlFails(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.Kubectl(t.Context(), append([]string{"--namespace", w.namespace}, args...)...)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "it printed: %s", out)
	return out + err.Error()
}

// output is what a running process has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// follow runs kubectl beside the test until the test ends.
func (w *world) follow(t *testing.T, args ...string) *output {
	t.Helper()
	printed := &output{}
	cmd := w.KubectlCommand(t.Context(), append([]string{"--namespace", w.namespace}, args...)...)
	cmd.Stdout, cmd.Stderr = printed, printed
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has killed it by then
	return printed
}

func (o *output) await(t *testing.T, want string) {
	t.Helper()
	framework.Eventually(t, framework.BoundTimeout, "kubectl prints "+want, func(context.Context) (string, error) {
		return o.String(), nil
	}, func(text string) bool { return strings.Contains(text, want) })
}

func TestKubectl_Get(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.Create(t, framework.MakeClass("tenant").In(w.namespace),
		framework.MakeClaim("alpha", w.namespace, runtimeName, "none").Session("s2").Obj())
	w.Claim(t, w.namespace, "alpha", framework.Failed)
	following := w.follow(t, "get", "sbclaim", "--watch", "--output-watch-events")
	following.await(t, "alpha") // it has listed, and watches from there
	w.Create(t, framework.MakeClaim("beta", w.namespace, runtimeName, w.class).Session("s1").Obj())
	claim := w.Claim(t, w.namespace, "beta", framework.Bound)

	t.Run("--watch: the phases as they come", func(t *testing.T) {
		following.await(t, "Bound")
		lines := strings.Split(following.String(), "\n")
		assert.Equal(t, []string{"EVENT", "NAME", "RUNTIME", "SESSION", "HANDLE", "PHASE", "REASON", "AGE"}, strings.Fields(lines[0]))
		assert.Regexp(t, `(?s)ADDED +beta.*MODIFIED +beta.*Pending.*MODIFIED +beta.*Bound`, following.String())
	})
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"jsonpath":            {[]string{"sbclaim/beta", "--output=jsonpath={.status.phase} {.status.addresses.mcp}"}, "Bound " + claim.Status.Addresses["mcp"]},
		"go-template":         {[]string{"sbclaim/beta", "--output=go-template={{.kind}} {{.apiVersion}}"}, "SandboxClaim sandbox.omnia/v1alpha1"},
		"custom columns":      {[]string{"sbclaim", "--no-headers", "--output=custom-columns=N:.metadata.name,S:.spec.sessionID"}, "alpha   s2\nbeta    s1\n"},
		"--field-selector":    {[]string{"sbclaim", "--field-selector=status.phase=Bound", "--output=name"}, "sandboxclaim.sandbox.omnia/beta\n"},
		"--sort-by":           {[]string{"sbclaim", "--sort-by=.spec.sessionID", "--output=name"}, "sandboxclaim.sandbox.omnia/beta\nsandboxclaim.sandbox.omnia/alpha\n"},
		"--chunk-size":        {[]string{"sbclaim", "--chunk-size=1", "--output=name"}, "sandboxclaim.sandbox.omnia/alpha\nsandboxclaim.sandbox.omnia/beta\n"},
		"the full name":       {[]string{"sandboxclaims.v1alpha1.sandbox.omnia", "alpha", "--output=name"}, "sandboxclaim.sandbox.omnia/alpha\n"},
		"short names":         {[]string{"sbc/tenant", "csbc/" + w.class, "--output=name"}, "sandboxclass.sandbox.omnia/tenant\nclustersandboxclass.sandbox.omnia/" + w.class + "\n"},
		"the singular":        {[]string{"sandboxclass", "--output=name"}, "sandboxclass.sandbox.omnia/tenant\n"},
		"--subresource":       {[]string{"sbclaim/beta", "--subresource=status", "--output=jsonpath={.metadata.name}"}, "beta"},
		"--raw":               {[]string{"--raw", "/apis/sandbox.omnia/v1alpha1/namespaces/" + w.namespace + "/sandboxclaims?limit=1&fieldSelector=metadata.name%3Dnone"}, `"items":[]`},
		"--all-namespaces":    {[]string{"sbclaim", "--all-namespaces", "--field-selector=metadata.namespace=" + w.namespace}, w.namespace + "   beta"},
		"--show-labels":       {[]string{"sbclaim/beta", "--show-labels"}, "<none>"},
		"--ignore-not-found":  {[]string{"sbclaim/none", "--ignore-not-found"}, ""},
		"--show-managed":      {[]string{"sbclaim/beta", "--show-managed-fields", "--output=jsonpath={.metadata.managedFields[*].subresource}"}, "status"},
		"sorted by its table": {[]string{"sbclaim", "--sort-by=.metadata.name"}, "s2"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, w.kubectl(t, append([]string{"get"}, tt.args...)...), tt.want)
		})
	}
	t.Run("yaml and json: the object, without its managed fields", func(t *testing.T) {
		for _, format := range []string{"yaml", "json"} {
			got := &v1alpha1.SandboxClaim{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(w.kubectl(t, "get", "sbclaim/beta", "--output", format)), got))
			assert.Equal(t, "SandboxClaim", got.Kind)
			assert.Equal(t, claim.Spec, got.Spec)
			assert.Equal(t, claim.Status, got.Status)
			assert.Empty(t, got.ManagedFields)
		}
	})
	t.Run("what is not there or not served: a plain message", func(t *testing.T) {
		assert.Contains(t, w.kubectlFails(t, "get", "sbclaim/none"), `sandboxclaims.sandbox.omnia "none" not found`)
		assert.Contains(t, w.kubectlFails(t, "get", "sbclaim", "--field-selector=spec.nothing=x"), "status.phase", "it says what can be selected by")
		assert.Contains(t, w.kubectlFails(t, "scale", "sbclaim/beta", "--replicas=2"), "could not find the requested resource")
	})
}

func TestKubectl_Describe(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("told")
	out := w.kubectl(t, "describe", "sbclaim", claim.Name)
	for _, want := range []string{"Kind:         SandboxClaim", "Session ID:", "told", "Phase:", "Bound", "Conditions:", "SandboxReady", "ProvenanceVerified", "Addresses:", claim.Status.Addresses["mcp"]} {
		assert.Contains(t, out, want)
	}
	out = w.kubectl(t, "describe", "csbc", w.class)
	for _, want := range []string{"Kind:         ClusterSandboxClass", "Image:", framework.SandboxImage, "Readiness:"} {
		assert.Contains(t, out, want)
	}
}

func TestKubectl_Explain(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	for resource, fields := range map[string][]string{
		"sbclaim": {"spec.classRef.kind", "spec.sessionID", "status.phase", "status.wait.renewTime", "status.conditions.reason", "status.class.image"},
		"sbc":     {"spec.ports.port", "spec.readiness.httpGet.path", "spec.filesystem.scratch.sizeLimit"},
		"csbc":    {"spec.egress.allowedServices", "spec.resources.limits", "spec.tolerations.effect"},
	} {
		t.Run(resource, func(t *testing.T) {
			whole := w.kubectl(t, "explain", resource, "--recursive")
			assert.Contains(t, whole, "GROUP:      sandbox.omnia")
			assert.Contains(t, whole, "VERSION:    v1alpha1")
			for _, field := range append(fields, "spec") {
				out := w.kubectl(t, "explain", resource+"."+field)
				assert.Contains(t, out, "DESCRIPTION:")
				assert.NotContains(t, out, "<empty>", field)
				assert.Contains(t, whole, field[strings.LastIndex(field, ".")+1:])
			}
			assert.Contains(t, w.kubectlFails(t, "explain", resource+".spec.nonsense"), `field "nonsense" does not exist`)
		})
	}
}

func TestKubectl_APIResources(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	out := w.kubectl(t, "api-resources", "--api-group=sandbox.omnia", "--no-headers", "--output=wide", "--cached=false")
	var got [][]string
	for line := range strings.Lines(out) {
		got = append(got, strings.Fields(line))
	}
	verbs := "create,delete,deletecollection,get,list,patch,update,watch"
	assert.ElementsMatch(t, [][]string{
		{"clustersandboxclasses", "csbc", "sandbox.omnia/v1alpha1", "false", "ClusterSandboxClass", verbs},
		{"sandboxclaims", "sbclaim", "sandbox.omnia/v1alpha1", "true", "SandboxClaim", verbs},
		{"sandboxclasses", "sbc", "sandbox.omnia/v1alpha1", "true", "SandboxClass", verbs},
	}, got)
	assert.Contains(t, w.kubectl(t, "api-versions"), "sandbox.omnia/v1alpha1\n")
}

func TestKubectl_AuthCanI_OfEveryVerb(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.ServiceAccount(t, w.namespace, "viewer")
	kubeconfig := filepath.Join(t.TempDir(), "viewer.kubeconfig")
	require.NoError(t, w.WriteKubeconfig(t.Context(), kubeconfig, w.namespace, "viewer"))
	w.kubectl(t, "create", "role", "viewer", "--verb=get,list,watch", "--resource=sandboxclaims.sandbox.omnia")
	w.kubectl(t, "create", "rolebinding", "viewer", "--role=viewer", "--serviceaccount="+w.namespace+":viewer")
	w.mayOnce(t, "viewer", authorizationv1.ResourceAttributes{Verb: "list", Group: v1alpha1.GroupName, Resource: "sandboxclaims"})
	claim := w.bound("s")

	out, err := w.KubectlAs(t.Context(), kubeconfig, "get", "sbclaim", "--output=name")
	require.NoError(t, err)
	assert.Equal(t, "sandboxclaim.sandbox.omnia/"+claim.Name+"\n", out)
	for verb, args := range map[string][]string{
		"delete": {"delete", "sbclaim", claim.Name},
		"patch":  {"label", "sbclaim", claim.Name, "a=b"},
		"list":   {"get", "csbc"},
	} {
		answer, err := w.KubectlAs(t.Context(), kubeconfig, "auth", "can-i", verb, map[bool]string{true: "csbc", false: "sbclaim"}[verb == "list"])
		require.Error(t, err)
		assert.Equal(t, "no\n", answer)
		_, err = w.KubectlAs(t.Context(), kubeconfig, args...)
		require.ErrorContains(t, err, "Forbidden", "what it may not do it cannot do")
	}
	answer, err := w.KubectlAs(t.Context(), kubeconfig, "auth", "can-i", "watch", "sbclaim")
	require.NoError(t, err)
	assert.Equal(t, "yes\n", answer)
}
