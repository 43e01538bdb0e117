package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestKubectl_Wait(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.Create(t, framework.MakeClaim("awaited", w.namespace, runtimeName, w.class).Obj())
	waited := w.kubectl(t, "wait", "--for=condition=Ready", "--timeout=60s", "sbclaim/awaited")
	assert.Equal(t, "sandboxclaim.sandbox.omnia/awaited condition met\n", waited)
	w.kubectl(t, "wait", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s", "sbclaim", "--all")
	assert.Contains(t, w.kubectlFails(t, "wait", "--for=jsonpath={.status.phase}=Queued", "--timeout=1s", "sbclaim/awaited"), "timed out waiting for the condition")

	finalizers := func(list string) {
		w.kubectl(t, "patch", "sbclaim/awaited", "--type=merge", "--patch", `{"metadata":{"finalizers":`+list+`}}`)
	}
	finalizers(`["example.test/hold"]`)
	w.kubectl(t, "delete", "sbclaim/awaited", "--wait=false")
	assert.Contains(t, w.kubectlFails(t, "wait", "--for=delete", "--timeout=1s", "sbclaim/awaited"), "timed out")
	finalizers(`null`)
	w.kubectl(t, "wait", "--for=delete", "--timeout=60s", "sbclaim/awaited")
	assert.Contains(t, w.kubectlFails(t, "get", "sbclaim/awaited"), "(NotFound)")
	w.kubectl(t, "wait", "--for=create", "--timeout=10s", "csbc/"+w.class)
}

func TestKubectl_Delete(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	objects := func() string {
		return w.kubectl(t, "get", "deployments,services,networkpolicies", "--selector", v1alpha1.LabelClaim, "--output=name")
	}
	t.Run("--cascade=foreground: when it returns, nothing is left", func(t *testing.T) {
		claim := w.bound("foreground")
		require.NotEmpty(t, objects())
		out := w.kubectl(t, "delete", "sbclaim", claim.Name, "--cascade=foreground")
		assert.Contains(t, out, `sandboxclaim.sandbox.omnia "`+claim.Name+`" deleted`)
		assert.Empty(t, objects())
	})
	t.Run("--cascade=orphan: the objects are left, nobody's", func(t *testing.T) {
		claim := w.bound("orphan")
		w.kubectl(t, "delete", "sbclaim", claim.Name, "--cascade=orphan")
		name := claim.Status.SandboxName
		assert.Equal(t, "deployment.apps/"+name+"\nservice/"+name+"\nnetworkpolicy.networking.k8s.io/"+name+"\n", objects())
		assert.Empty(t, w.kubectl(t, "get", "deployment", name, "--output=jsonpath={.metadata.ownerReferences}"))
		w.kubectl(t, "delete", "deployment/"+name, "service/"+name, "networkpolicy/"+name)
	})
	t.Run("--cascade=background: the objects follow", func(t *testing.T) {
		claim := w.bound("background")
		w.kubectl(t, "delete", "sbclaim", claim.Name, "--cascade=background")
		w.noObjects()
	})
	t.Run("by label: those alone", func(t *testing.T) {
		for _, name := range []string{"one", "two", "three"} {
			w.Create(t, framework.MakeClass(name).In(w.namespace))
		}
		w.kubectl(t, "label", "sbc", "one", "two", "team=red")
		assert.Regexp(t, `"one" deleted.* \(server dry run\)`, w.kubectl(t, "delete", "sbc", "--selector=team=red", "--dry-run=server"))
		w.kubectl(t, "delete", "sbc", "--selector=team=red")
		assert.Equal(t, "sandboxclass.sandbox.omnia/three\n", w.kubectl(t, "get", "sbc", "--output=name"))
		w.kubectl(t, "delete", "sbc", "--all", "--now")
		assert.Empty(t, w.kubectl(t, "get", "sbc", "--output=name"))
		assert.Contains(t, w.kubectlFails(t, "delete", "sbc", "three"), "(NotFound)")
	})
}
