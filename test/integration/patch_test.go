package integration

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	applyv1alpha1 "github.com/altairalabs/omnia-sandboxes/generated/applyconfiguration/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestPatch(t *testing.T) {
	forEachResource(t, map[string]func(*testing.T, *served){
		"JSON":              jsonPatch,
		"merge":             mergePatch,
		"strategic merge":   strategicPatch,
		"server-side apply": applyMetadata,
		"an unknown kind":   unknownPatch,
	})
}

func jsonPatch(t *testing.T, r *served) {
	object := r.stored(t, "json")
	patch := func(body string) (*unstructured.Unstructured, error) {
		return r.Patch(t.Context(), object.GetName(), types.JSONPatchType, []byte(body), metav1.PatchOptions{})
	}
	got, err := patch(`[{"op":"test","path":"/metadata/uid","value":"` + string(object.GetUID()) + `"},{"op":"add","path":"/metadata/labels/a","value":"1"}]`)
	require.NoError(t, err)
	assert.Equal(t, "1", got.GetLabels()["a"])
	got, err = patch(`[{"op":"remove","path":"/metadata/labels/a"}]`)
	require.NoError(t, err)
	assert.NotContains(t, got.GetLabels(), "a")

	_, err = patch(`[{"op":"test","path":"/metadata/uid","value":"another"},{"op":"add","path":"/metadata/labels/a","value":"2"}]`)
	require.True(t, apierrors.IsInvalid(err), "a test that fails: got %v", err)
	_, err = patch(`[{"op":"remove","path":"/metadata/labels/none"}]`)
	require.True(t, apierrors.IsInvalid(err), "nothing to remove: got %v", err)
	_, err = patch(`{"metadata":{}}`)
	require.True(t, apierrors.IsBadRequest(err), "no JSON patch: got %v", err)
}

func mergePatch(t *testing.T, r *served) {
	object := r.stored(t, "merge")
	patch := func(body string) (*unstructured.Unstructured, error) {
		return r.Patch(t.Context(), object.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{})
	}
	got, err := patch(`{"metadata":{"annotations":{"a":"1"}}}`)
	require.NoError(t, err)
	assert.Equal(t, "1", got.GetAnnotations()["a"])
	_, err = patch(`{"metadata":{"resourceVersion":"` + object.GetResourceVersion() + `","annotations":{"a":"2"}}}`)
	require.True(t, apierrors.IsConflict(err), "a patch of an older version: got %v", err)
	got, err = patch(`{"metadata":{"annotations":{"a":null}}}`)
	require.NoError(t, err)
	assert.NotContains(t, got.GetAnnotations(), "a")
	_, err = patch(`{"metadata":{"name":"renamed"}}`)
	require.Error(t, err, "a name never changes")

	strict := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
	_, err = r.Patch(t.Context(), object.GetName(), types.MergePatchType, []byte(`{"spec":{"nonsense":1}}`), strict)
	require.ErrorContains(t, err, `unknown field "spec.nonsense"`)
	if r.kind == "SandboxClaim" {
		_, err = patch(`{"spec":{"sessionID":"another"}}`)
		require.True(t, apierrors.IsInvalid(err), "got %v", err)
		assert.Contains(t, err.Error(), "spec: Forbidden: is immutable")
	}
}

// Types that are compiled in, as core ones are, take strategic merge patches; only custom resources refuse them.
func strategicPatch(t *testing.T, r *served) {
	object := r.stored(t, "strategic")
	patch := func(body string) (*unstructured.Unstructured, error) {
		return r.Patch(t.Context(), object.GetName(), types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
	}
	got, err := patch(`{"metadata":{"finalizers":["example.test/a"]}}`)
	require.NoError(t, err)
	assert.Equal(t, []string{"example.test/a"}, got.GetFinalizers())
	got, err = patch(`{"metadata":{"finalizers":["example.test/b"]}}`)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"example.test/a", "example.test/b"}, got.GetFinalizers(), "the lists are merged")
	got, err = patch(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.test/a","example.test/b"]}}`)
	require.NoError(t, err)
	assert.Empty(t, got.GetFinalizers())
}

func unknownPatch(t *testing.T, r *served) {
	object := r.stored(t, "unknown")
	_, err := r.Patch(t.Context(), object.GetName(), "text/plain", []byte(`{}`), metav1.PatchOptions{})
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	assert.EqualValues(t, http.StatusUnsupportedMediaType, status.Status().Code)
}

func applyMetadata(t *testing.T, r *served) {
	object := r.make(t, "applied")
	name := object.GetName()
	options := func(manager string, force bool) metav1.ApplyOptions {
		return metav1.ApplyOptions{FieldManager: manager, Force: force}
	}
	created, err := r.Apply(t.Context(), name, labelled(object, "1"), options("first", false))
	require.NoError(t, err)
	require.NotEmpty(t, created.GetManagedFields())
	assert.Equal(t, "first", created.GetManagedFields()[0].Manager)
	assert.Equal(t, metav1.ManagedFieldsOperationApply, created.GetManagedFields()[0].Operation)

	_, err = r.Apply(t.Context(), name, labelled(object, "2"), options("second", false))
	require.True(t, apierrors.IsConflict(err), "got %v", err)
	assert.Contains(t, err.Error(), `conflict with "first": .metadata.labels.changed`)
	assert.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict))
	forced, err := r.Apply(t.Context(), name, labelled(object, "2"), options("second", true))
	require.NoError(t, err)
	assert.Equal(t, "2", forced.GetLabels()["changed"])

	dropped, err := r.Apply(t.Context(), name, object, options("first", false))
	require.NoError(t, err, "the first no longer names what it lost")
	assert.Equal(t, "2", dropped.GetLabels()["changed"])
	dropped, err = r.Apply(t.Context(), name, object, options("second", false))
	require.NoError(t, err)
	assert.NotContains(t, dropped.GetLabels(), "changed", "nobody names it any more")

	old := labelled(object, "3")
	old.SetUID("another")
	_, err = r.Apply(t.Context(), name, old, options("first", true))
	require.True(t, apierrors.IsInvalid(err), "an earlier object of the name: got %v", err)
	assert.Contains(t, err.Error(), "metadata.uid")
}

func TestApply_OfAClass_MergesListsByTheirKeys(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	classes := w.Sandbox.SandboxV1alpha1().SandboxClasses(w.namespace)
	w.Create(t, framework.MakeClass("shared").In(w.namespace))
	env := func(manager string, variables ...string) (*v1alpha1.SandboxClass, error) {
		spec := applyv1alpha1.SandboxClassSpec()
		for _, name := range variables {
			spec.WithEnv(applyv1alpha1.EnvVar().WithName(name).WithValue("of-" + manager))
		}
		return classes.Apply(t.Context(), applyv1alpha1.SandboxClass("shared", w.namespace).WithSpec(spec), metav1.ApplyOptions{FieldManager: manager})
	}
	_, err := env("a", "ONE", "TWO")
	require.NoError(t, err)
	got, err := env("b", "THREE")
	require.NoError(t, err)
	assert.Equal(t, []v1alpha1.EnvVar{{Name: "ONE", Value: "of-a"}, {Name: "TWO", Value: "of-a"}, {Name: "THREE", Value: "of-b"}}, got.Spec.Env)
	_, err = env("b", "ONE", "THREE")
	require.True(t, apierrors.IsConflict(err), "got %v", err)
	assert.Contains(t, err.Error(), `conflict with "a": .spec.env[name="ONE"].value`)
	got, err = env("a", "TWO")
	require.NoError(t, err)
	assert.Equal(t, []v1alpha1.EnvVar{{Name: "TWO", Value: "of-a"}, {Name: "THREE", Value: "of-b"}}, got.Spec.Env, "what its one owner drops is removed")
	assert.EqualValues(t, 4, got.Generation)
}

func TestStatus_ReadAndUpdated(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	w.Create(t, framework.MakeClaim("told", w.namespace, runtimeName, "none").Obj())
	claim := w.Claim(t, w.namespace, "told", framework.Failed)
	get := func() *v1alpha1.SandboxClaim {
		got, err := claims.Get(t.Context(), "told", metav1.GetOptions{})
		require.NoError(t, err)
		return got
	}
	t.Run("get: the claim", func(t *testing.T) {
		got, err := claims.Get(t.Context(), "told", metav1.GetOptions{})
		require.NoError(t, err)
		status, err := claims.Patch(t.Context(), "told", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		assert.Equal(t, got, status)
	})
	t.Run("update through status: the status alone", func(t *testing.T) {
		changed := get()
		changed.Status.SyncError, changed.Spec.SessionID, changed.Labels = "told", "another", map[string]string{"a": "b"}
		got, err := claims.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{FieldManager: "teller"})
		require.NoError(t, err)
		assert.Equal(t, "told", got.Status.SyncError)
		assert.Equal(t, claim.Spec, got.Spec)
		assert.Empty(t, got.Labels)
		assert.EqualValues(t, 1, got.Generation)
		owner := managerOf(got.ManagedFields, "teller")
		require.NotNil(t, owner)
		assert.Equal(t, "status", owner.Subresource)
		assert.NotContains(t, owner.FieldsV1.GetRawString(), "f:spec")
		_, err = claims.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
		require.True(t, apierrors.IsConflict(err), "a stale resourceVersion: got %v", err)
	})
	t.Run("update of the claim: the status is left", func(t *testing.T) {
		changed := get()
		changed.Status, changed.Labels = v1alpha1.SandboxClaimStatus{Phase: v1alpha1.PhaseBound}, map[string]string{"a": "b"}
		got, err := claims.Update(t.Context(), changed, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.PhaseFailed, got.Status.Phase)
		assert.Equal(t, "told", got.Status.SyncError)
		assert.Equal(t, "b", got.Labels["a"])
		got, err = claims.Patch(t.Context(), "told", types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.PhaseFailed, got.Status.Phase)
	})
	t.Run("a phase that is none: refused", func(t *testing.T) {
		_, err := claims.Patch(t.Context(), "told", types.MergePatchType, []byte(`{"status":{"phase":"Asleep"}}`), metav1.PatchOptions{}, "status")
		require.True(t, apierrors.IsInvalid(err), "got %v", err)
		assert.Contains(t, err.Error(), "status.phase")
	})
	t.Run("classes have none", func(t *testing.T) {
		_, err := w.Sandbox.SandboxV1alpha1().ClusterSandboxClasses().Patch(t.Context(), w.class, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
		require.True(t, apierrors.IsNotFound(err), "got %v", err)
	})
}

func TestStatus_Patched(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	w.Create(t, framework.MakeClaim("told", w.namespace, runtimeName, "none").Obj())
	before := w.Claim(t, w.namespace, "told", framework.Failed)
	condition := `{"status":{"conditions":[{"type":"Seen","status":"True","reason":"ByTest","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	t.Run("dry run: nothing stored", func(t *testing.T) {
		got, err := claims.Patch(t.Context(), "told", types.StrategicMergePatchType, []byte(condition), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		require.NoError(t, err)
		assert.Len(t, got.Status.Conditions, 2)
		after, err := claims.Get(t.Context(), "told", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, before.ResourceVersion, after.ResourceVersion)
		assert.Equal(t, before.Status, after.Status)
	})
	t.Run("strategic merge patch: conditions are merged by type", func(t *testing.T) {
		got, err := claims.Patch(t.Context(), "told", types.StrategicMergePatchType, []byte(condition), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		assert.NotNil(t, meta.FindStatusCondition(got.Status.Conditions, "Seen"))
		assert.NotNil(t, meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady))
	})
	t.Run("apply: a condition of one's own, and a conflict over the controller's", func(t *testing.T) {
		apply := func(manager string, status *applyv1alpha1.SandboxClaimStatusApplyConfiguration) (*v1alpha1.SandboxClaim, error) {
			return claims.ApplyStatus(t.Context(), applyv1alpha1.SandboxClaim("told", w.namespace).WithStatus(status), metav1.ApplyOptions{FieldManager: manager})
		}
		got, err := apply("applier", applyv1alpha1.SandboxClaimStatus().WithLastSyncedVersion("v1"))
		require.NoError(t, err)
		assert.Equal(t, "v1", got.Status.LastSyncedVersion)
		assert.Equal(t, "status", managerOf(got.ManagedFields, "applier").Subresource)
		_, err = apply("applier", applyv1alpha1.SandboxClaimStatus().WithPhase(v1alpha1.PhasePending))
		require.True(t, apierrors.IsConflict(err), "got %v", err)
		assert.Contains(t, err.Error(), ".status.phase")
		got, err = apply("applier", applyv1alpha1.SandboxClaimStatus())
		require.NoError(t, err)
		assert.Empty(t, got.Status.LastSyncedVersion, "its one owner dropped it")
		assert.Equal(t, v1alpha1.PhaseFailed, got.Status.Phase)
	})
}

func managerOf(fields []metav1.ManagedFieldsEntry, manager string) *metav1.ManagedFieldsEntry {
	for i := range fields {
		if fields[i].Manager == manager {
			return &fields[i]
		}
	}
	return nil
}
