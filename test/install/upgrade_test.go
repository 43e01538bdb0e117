package install

import (
	"encoding/json"
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/apiserver"
)

// upgradeAndBack plays another build: its template differs, and it has stored claims with fields that this one does not
// know. All the while there are replicas of both, and in the end only those of this one.
func (h *ha) upgradeAndBack() {
	claim := h.claimOf("every")
	acquires := h.startAcquires()
	h.rolled("patch", haDeployment, "--patch", `{"spec": {"template": {
		"metadata": {"annotations": {"sandbox.omnia/build": "later"}},
		"spec": {"containers": [{"name": "server", "env": [{"name": "LATER_BUILD", "value": "true"}]}]}}}}`)
	h.storedByALaterBuild(claim.Name)
	h.storedByALaterBuild(h.claimOf(standing[0]).Name)
	h.rolled("rollout", "undo", haDeployment)
	acquires.noneFails()
	for _, pod := range h.servers() {
		assert.NotContains(h.t, pod.Annotations, "sandbox.omnia/build", "it was gone back")
	}

	require.Equal(h.t, claim.UID, h.acquire("every").UID, "what is not known is no hindrance")
	labelled, err := h.Sandbox.SandboxV1alpha1().SandboxClaims(h.namespace).Patch(h.t.Context(), claim.Name, types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"sandbox.omnia/test": "labelled"}}}`), metav1.PatchOptions{})
	require.NoError(h.t, err, "nor to an update")
	assert.Equal(h.t, claim.UID, labelled.UID)
	assert.Equal(h.t, claim.Spec, labelled.Spec)
	assert.Equal(h.t, v1alpha1.PhaseBound, labelled.Status.Phase)
}

// claimOf is the claim of a session's sandbox, Bound.
func (h *ha) claimOf(session string) *v1alpha1.SandboxClaim {
	h.t.Helper()
	claim, err := h.Sandbox.SandboxV1alpha1().SandboxClaims(h.namespace).Get(h.t.Context(), h.acquire(session).Name, metav1.GetOptions{})
	require.NoError(h.t, err)
	return claim
}

// storedByALaterBuild puts fields into what is stored of a claim that no server of this build would.
func (h *ha) storedByALaterBuild(name string) {
	h.t.Helper()
	client, err := h.etcd.Access().Client()
	require.NoError(h.t, err)
	defer func() { _ = client.Close() }()
	key := apiserver.DefaultEtcdPrefix + "/" + v1alpha1.SchemeGroupVersion.Group + "/sandboxclaims/" + h.namespace + "/" + name
	for { // The claim may be written meanwhile, by its use.
		stored, err := client.Get(h.t.Context(), key)
		require.NoError(h.t, err)
		require.Len(h.t, stored.Kvs, 1, "the claim is stored at %s", key)
		later, err := withLaterFields(stored.Kvs[0].Value)
		require.NoError(h.t, err)
		done, err := client.Txn(h.t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", stored.Kvs[0].ModRevision)).
			Then(clientv3.OpPut(key, string(later))).Commit()
		require.NoError(h.t, err)
		if done.Succeeded {
			return
		}
	}
}

func withLaterFields(stored []byte) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(stored, &object); err != nil {
		return nil, fmt.Errorf("reading a stored claim: %w", err)
	}
	object["later"] = "new at the top"
	for _, part := range []string{"metadata", "spec", "status"} {
		fields, ok := object[part].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("a stored claim has no %s", part)
		}
		fields["later"] = map[string]any{"is": []string{"a", "b"}}
	}
	return json.Marshal(object)
}
