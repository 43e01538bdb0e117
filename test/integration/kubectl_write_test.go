package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const claimManifest = `apiVersion: sandbox.omnia/v1alpha1
kind: SandboxClaim
metadata:
  name: written
  labels: {team: %s}
spec:
  agentRuntimeRef: {name: agent}
  classRef: {name: none}
  sessionID: s
`

const classManifest = `apiVersion: sandbox.omnia/v1alpha1
kind: SandboxClass
metadata: {name: tenant}
spec:
  image: %s
  ports: [{name: mcp, port: 8080}]
  resources: {limits: {cpu: 500m, memory: 128Mi}}
`

// written puts a manifest into a file of the test's own. kubectl takes a comma in a file's name, and so in the test's,
// for the end of it.
func written(t *testing.T, manifest string, args ...any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, manifest, args...), 0o600))
	return file
}

func (w *world) tenantClass(t *testing.T) *v1alpha1.SandboxClass {
	t.Helper()
	class, err := w.Sandbox.SandboxV1alpha1().SandboxClasses(w.namespace).Get(t.Context(), "tenant", metav1.GetOptions{})
	require.NoError(t, err)
	return class
}

func TestKubectl_Apply(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	t.Run("client-side: created then unchanged then configured", func(t *testing.T) {
		first, second := written(t, claimManifest, "red"), written(t, claimManifest, "blue")
		assert.Equal(t, "sandboxclaim.sandbox.omnia/written created\n", w.kubectl(t, "apply", "--filename", first))
		assert.Equal(t, "sandboxclaim.sandbox.omnia/written unchanged\n", w.kubectl(t, "apply", "--filename", first))
		assert.Equal(t, "sandboxclaim.sandbox.omnia/written configured\n", w.kubectl(t, "apply", "--filename", second))
		claim := w.Claim(t, w.namespace, "written", framework.Failed)
		assert.Equal(t, "blue", claim.Labels["team"])
		refusal := w.kubectlFails(t, "apply", "--filename", written(t, strings.Replace(claimManifest, "sessionID: s", "sessionID: other", 1), "blue"))
		assert.Contains(t, refusal, "spec: Forbidden: is immutable")
	})
	t.Run("client-side: what a class no longer names is removed", func(t *testing.T) {
		w.kubectl(t, "apply", "--filename", written(t, classManifest+"  env: [{name: A, value: a}, {name: B, value: b}]\n", "example.test/image:1"))
		w.kubectl(t, "apply", "--filename", written(t, classManifest+"  env: [{name: B, value: b}]\n", "example.test/image:2"))
		class := w.tenantClass(t)
		assert.Equal(t, "example.test/image:2", class.Spec.Image)
		assert.Equal(t, []v1alpha1.EnvVar{{Name: "B", Value: "b"}}, class.Spec.Env)
		assert.EqualValues(t, 2, class.Generation)
	})
	t.Run("server-side: a conflict names the other manager and force takes the field", func(t *testing.T) {
		w.kubectl(t, "delete", "sbc/tenant")
		apply := []string{"apply", "--server-side", "--filename"}
		w.kubectl(t, append(apply, written(t, classManifest, "example.test/image:3"), "--field-manager=platform")...)
		mine := written(t, classManifest, "example.test/image:4")
		refusal := w.kubectlFails(t, append(apply, mine, "--field-manager=tenant")...)
		assert.Contains(t, refusal, `conflict with "platform": .spec.image`)
		assert.Equal(t, "example.test/image:3", w.tenantClass(t).Spec.Image)
		w.kubectl(t, append(apply, mine, "--field-manager=tenant", "--force-conflicts")...)
		assert.Equal(t, "example.test/image:4", w.tenantClass(t).Spec.Image)
	})
	t.Run("a field that there is none of: refused by name", func(t *testing.T) {
		assert.Contains(t, w.kubectlFails(t, "apply", "--filename", written(t, claimManifest+"  sesionID: s\n", "red")), `unknown field "spec.sesionID"`)
	})
	t.Run("dry run on the server: told and not stored", func(t *testing.T) {
		before := w.tenantClass(t)
		out := w.kubectl(t, "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--output=jsonpath={.spec.image}", "--filename", written(t, classManifest, "example.test/image:5"))
		assert.Equal(t, "example.test/image:5", out)
		assert.Equal(t, before, w.tenantClass(t))
	})
}

func TestKubectl_Diff(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	same, other := written(t, classManifest, "example.test/image:1"), written(t, classManifest, "example.test/image:2")
	for _, mode := range []string{"--server-side=false", "--server-side=true"} {
		t.Run(mode, func(t *testing.T) {
			assert.Contains(t, w.kubectlFails(t, "diff", mode, "--filename", same), "+kind: SandboxClass", "of what is not there, all of it")
			w.kubectl(t, "apply", mode, "--filename", same)
			before := w.tenantClass(t)
			assert.Empty(t, w.kubectl(t, "diff", mode, "--filename", same))
			out := w.kubectlFails(t, "diff", mode, "--filename", other)
			assert.Contains(t, out, "exit status 1")
			assert.Contains(t, out, "-  image: example.test/image:1\n+  image: example.test/image:2\n")
			assert.Equal(t, before, w.tenantClass(t), "nothing was written")
			w.kubectl(t, "delete", "sbc/tenant")
		})
	}
}

func TestKubectl_Edit(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.kubectl(t, "apply", "--filename", written(t, claimManifest, "red"), "--filename", written(t, classManifest, "example.test/image:1"))
	w.Claim(t, w.namespace, "written", framework.Failed)
	folder := t.TempDir()
	edit := func(script string, args ...string) (string, error) {
		cmd := w.KubectlCommand(t.Context(), append([]string{"--namespace", w.namespace, "edit"}, args...)...)
		cmd.Env = append(os.Environ(), "KUBE_EDITOR=sed -i '"+script+"'", "TMPDIR="+folder)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Run("a change that may be made", func(t *testing.T) {
		out, err := edit("s/team: red/team: blue/", "sbclaim/written")
		require.NoError(t, err, out)
		assert.Contains(t, out, "sandboxclaim.sandbox.omnia/written edited")
		out, err = edit("s/image:1/image:2/", "sbc/tenant")
		require.NoError(t, err, out)
		assert.Equal(t, "example.test/image:2", w.tenantClass(t).Spec.Image)
	})
	t.Run("none: nothing is written", func(t *testing.T) {
		out, err := edit("s/nothing/else/", "sbclaim/written")
		require.NoError(t, err, out)
		assert.Contains(t, out, "no changes made")
	})
	t.Run("of the immutable spec: refused, and the edit is kept", func(t *testing.T) {
		out, err := edit("s/sessionID: s/sessionID: other/", "sbclaim/written")
		require.Error(t, err)
		assert.Contains(t, out, "is invalid")
		kept := regexp.MustCompile(`stored to "([^"]+)"`).FindStringSubmatch(out)
		require.NotNil(t, kept, out)
		text, err := os.ReadFile(kept[1])
		require.NoError(t, err)
		assert.Contains(t, string(text), "sessionID: other")
		assert.Contains(t, string(text), "# * spec: Forbidden: is immutable", "and says why")
	})
	t.Run("of the status", func(t *testing.T) {
		out, err := edit("s/^  phase: Failed/&\\n  syncError: edited/", "sbclaim/written", "--subresource=status")
		require.NoError(t, err, out)
		assert.Equal(t, "edited", w.kubectl(t, "get", "sbclaim/written", "--output=jsonpath={.status.syncError}"))
	})
}

func TestKubectl_ChangesOfOneObject(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.kubectl(t, "create", "--filename", written(t, claimManifest, "red"))
	assert.Contains(t, w.kubectlFails(t, "create", "--filename", written(t, claimManifest, "red")), "(AlreadyExists)")
	w.Claim(t, w.namespace, "written", framework.Failed)
	read := func(path string) string {
		return w.kubectl(t, "get", "sbclaim/written", "--output=jsonpath={"+path+"}")
	}
	t.Run("label", func(t *testing.T) {
		assert.Contains(t, w.kubectlFails(t, "label", "sbclaim", "written", "team=blue"), "--overwrite is false")
		w.kubectl(t, "label", "sbclaim", "written", "team=blue", "--overwrite")
		assert.Equal(t, "blue", read(".metadata.labels.team"))
		assert.Contains(t, w.kubectl(t, "get", "sbclaim", "--selector=team=blue", "--label-columns=team"), "blue")
		w.kubectl(t, "label", "sbclaim", "--all", "team-")
		assert.Empty(t, read(".metadata.labels"))
	})
	t.Run("annotate", func(t *testing.T) {
		w.kubectl(t, "annotate", "sbclaim/written", "note=one")
		w.kubectl(t, "annotate", "sbclaim/written", "note=two", "--overwrite")
		assert.Equal(t, "two", read(".metadata.annotations.note"))
		w.kubectl(t, "annotate", "sbclaim/written", "note-")
		assert.Empty(t, read(".metadata.annotations"))
	})
	t.Run("replace", func(t *testing.T) {
		out := w.kubectl(t, "replace", "--filename", written(t, claimManifest, "green"))
		assert.Equal(t, "sandboxclaim.sandbox.omnia/written replaced\n", out)
		assert.Equal(t, "green", read(".metadata.labels.team"))
		stale := written(t, strings.Replace(claimManifest, "name: written", "name: written\n  resourceVersion: '1'", 1), "stale")
		assert.Contains(t, w.kubectlFails(t, "replace", "--filename", stale), "the object has been modified")
		before := read(".metadata.uid")
		w.kubectl(t, "replace", "--force", "--filename", written(t, strings.Replace(claimManifest, "sessionID: s", "sessionID: other", 1), "green"))
		assert.NotEqual(t, before, read(".metadata.uid"), "an immutable spec is replaced by a new claim")
		assert.Equal(t, "other", read(".spec.sessionID"))
		w.Claim(t, w.namespace, "written", framework.Failed)
	})
	t.Run("patch", func(t *testing.T) {
		for kind, body := range map[string]string{
			"merge":     `{"metadata":{"labels":{"by":"merge"}}}`,
			"strategic": `{"metadata":{"labels":{"by":"strategic"}}}`,
			"json":      `[{"op":"add","path":"/metadata/labels/by","value":"json"}]`,
		} {
			w.kubectl(t, "patch", "sbclaim/written", "--type", kind, "--patch", body)
			assert.Equal(t, kind, read(".metadata.labels.by"))
		}
		w.kubectl(t, "patch", "sbclaim/written", "--subresource=status", "--type=merge", "--patch", `{"status":{"syncError":"patched"},"metadata":{"labels":{"by":"status"}}}`)
		assert.Equal(t, "patched", read(".status.syncError"))
		assert.NotEqual(t, "status", read(".metadata.labels.by"), "through the status nothing else changes")
		assert.Equal(t, "1", read(".metadata.generation"))
	})
}
