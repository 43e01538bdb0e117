package integration

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// server owns what acquire, touch, release and the controller write.
const server = "sandbox-apiserver"

// owned are the fields, and what they stand in, that managedFields give to a manager by one operation on one subresource.
func owned(t *testing.T, claim *v1alpha1.SandboxClaim, manager string, operation metav1.ManagedFieldsOperationType, subresource string) sets.Set[string] {
	t.Helper()
	fields := sets.New[string]()
	for _, entry := range claim.ManagedFields {
		if entry.Manager != manager || entry.Operation != operation || entry.Subresource != subresource {
			continue
		}
		assert.Equal(t, v1alpha1.SchemeGroupVersion.String(), entry.APIVersion)
		assert.False(t, entry.Time.IsZero())
		set := &fieldpath.Set{}
		require.NoError(t, set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())))
		for path := range set.All() {
			for i := range path {
				fields.Insert(path[:i+1].String())
			}
		}
	}
	return fields
}

func TestManagedFields_OfAnAcquiredClaim_SayWhoWroteWhat(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	acquire := owned(t, claim, server, metav1.ManagedFieldsOperationUpdate, "")
	for _, field := range []string{".spec.sessionID", ".spec.handle", ".spec.agentRuntimeRef.name", ".spec.classRef.name", ".spec.maxInstances",
		".metadata.ownerReferences", ".metadata.labels." + v1alpha1.LabelSession} {
		assert.Contains(t, acquire, field, "acquire wrote it")
	}
	assert.NotContains(t, acquire, ".status")
	controller := owned(t, claim, server, metav1.ManagedFieldsOperationUpdate, "status")
	for _, field := range []string{".status.phase", ".status.addresses.mcp", ".status.class.image", ".status.sandboxName", ".status.boundAt",
		`.status.conditions[type="Ready"].reason`} {
		assert.Contains(t, controller, field, "the controller wrote it")
	}
	assert.NotContains(t, controller, ".spec")
	assert.Len(t, claim.ManagedFields, 2, "nobody else wrote it")
}

func TestManagedFields_TouchTakesWhatItWrites(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	at := time.Now().Add(time.Hour).UTC().Format(metav1.RFC3339Micro)
	claim, err := claims.Patch(t.Context(), claim.Name, types.MergePatchType, []byte(`{"status":{"releaseAt":"`+at+`","lastUsedAt":"`+at+`"}}`),
		metav1.PatchOptions{FieldManager: "person"}, "status")
	require.NoError(t, err)
	require.Contains(t, owned(t, claim, "person", metav1.ManagedFieldsOperationUpdate, "status"), ".status.lastUsedAt")

	_, err = w.agent.SandboxV1alpha1().SandboxClaims(w.namespace).Touch(t.Context(), claim.Name, &v1alpha1.SandboxTouch{}, metav1.CreateOptions{})
	require.NoError(t, err)
	claim, err = claims.Get(t.Context(), claim.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, claim.Status.ReleaseAt, "a touch withdraws a release")
	assert.Contains(t, owned(t, claim, server, metav1.ManagedFieldsOperationUpdate, "status"), ".status.lastUsedAt")
	assert.Empty(t, owned(t, claim, "person", metav1.ManagedFieldsOperationUpdate, "status"))
}

func TestApply_ByAPerson(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	apply := func(body string, subresources ...string) (*v1alpha1.SandboxClaim, error) {
		return claims.Patch(t.Context(), claim.Name, types.ApplyPatchType, []byte(`{"apiVersion":"sandbox.omnia/v1alpha1","kind":"SandboxClaim",`+body+`}`),
			metav1.PatchOptions{FieldManager: "person"}, subresources...)
	}
	t.Run("a label of their own: no conflict, and the spec stays acquire's", func(t *testing.T) {
		before := owned(t, claim, server, metav1.ManagedFieldsOperationUpdate, "")
		labelled, err := apply(`"metadata":{"labels":{"team":"blue"}}`)
		require.NoError(t, err)
		assert.Equal(t, "blue", labelled.Labels["team"])
		assert.Equal(t, sets.New(".metadata", ".metadata.labels", ".metadata.labels.team"), owned(t, labelled, "person", metav1.ManagedFieldsOperationApply, ""))
		assert.Equal(t, before, owned(t, labelled, server, metav1.ManagedFieldsOperationUpdate, ""))
		assert.Equal(t, claim.Spec, labelled.Spec)

		gone, err := apply(`"metadata":{}`)
		require.NoError(t, err)
		assert.NotContains(t, gone.Labels, "team", "what is no longer applied goes")
	})
	for what, tt := range map[string]struct {
		body         string
		subresources []string
	}{
		"a label of acquire's":   {body: `"metadata":{"labels":{"` + v1alpha1.LabelSession + `":"another"}}`},
		"the spec":               {body: `"spec":{"sessionID":"another"}`},
		"the controller's phase": {`"status":{"phase":"Failed"}`, []string{"status"}},
		"the controller's Ready": {`"status":{"conditions":[{"type":"Ready","status":"False"}]}`, []string{"status"}},
	} {
		t.Run(what+": conflict", func(t *testing.T) {
			_, err := apply(tt.body, tt.subresources...)
			require.True(t, apierrors.IsConflict(err), "got %v", err)
			require.ErrorContains(t, err, `conflict with "`+server+`"`)
		})
	}
}
