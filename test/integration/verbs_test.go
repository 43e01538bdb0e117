package integration

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// labelWorld marks what a test made, where others' objects are too.
const labelWorld = "sandbox.omnia/world"

// served is one of the group's resources, as a program without its types sees it.
type served struct {
	dynamic.ResourceInterface
	resource string
	kind     string
	world    string
	object   func(name string) runtime.Object
}

// served gives the group's three resources.
func (w *world) served() []*served {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.Config)
	require.NoError(w.t, err)
	of := func(resource string) dynamic.NamespaceableResourceInterface {
		return client.Resource(v1alpha1.SchemeGroupVersion.WithResource(resource))
	}
	all := []*served{
		{of("sandboxclaims").Namespace(w.namespace), "sandboxclaims", "SandboxClaim", w.namespace,
			// Without its class a claim fails at once and for good, and the controller writes it no more.
			func(name string) runtime.Object {
				return framework.MakeClaim(name, w.namespace, runtimeName, "none").Obj()
			}},
		{of("sandboxclasses").Namespace(w.namespace), "sandboxclasses", "SandboxClass", w.namespace,
			func(name string) runtime.Object { return framework.MakeClass(name).In(w.namespace) }},
		{of("clustersandboxclasses"), "clustersandboxclasses", "ClusterSandboxClass", w.namespace,
			func(name string) runtime.Object { return framework.MakeClass(name).Cluster() }},
	}
	w.t.Cleanup(func() {
		for _, r := range all {
			assert.NoError(w.t, r.DeleteCollection(context.Background(), metav1.DeleteOptions{}, r.mine()), r.resource)
		}
	})
	return all
}

// mine selects what this world made.
func (r *served) mine() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labelWorld + "=" + r.world}
}

// name is a name that no other world uses.
func (r *served) name(short string) string { return r.world + "-" + short }

// make is an object that is not stored yet.
func (r *served) make(t *testing.T, short string) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.object(r.name(short)))
	require.NoError(t, err)
	made := &unstructured.Unstructured{Object: fields}
	made.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(r.kind))
	made.SetLabels(map[string]string{labelWorld: r.world})
	return made
}

// stored makes an object and gives it once nobody else writes it any more.
func (r *served) stored(t *testing.T, short string) *unstructured.Unstructured {
	t.Helper()
	_, err := r.Create(t.Context(), r.make(t, short), metav1.CreateOptions{})
	require.NoError(t, err)
	return framework.Eventually(t, framework.Shortly, r.name(short)+" rests", func(ctx context.Context) (*unstructured.Unstructured, error) {
		return r.Get(ctx, r.name(short), metav1.GetOptions{})
	}, func(got *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(got.Object, "status", "phase")
		return r.kind != "SandboxClaim" || phase == string(v1alpha1.PhaseFailed)
	})
}

func labelled(object *unstructured.Unstructured, value string) *unstructured.Unstructured {
	changed := object.DeepCopy()
	labels := maps.Clone(changed.GetLabels())
	labels["changed"] = value
	changed.SetLabels(labels)
	return changed
}

// forEachResource runs the tests against claims, classes and cluster classes alike.
func forEachResource(t *testing.T, tests map[string]func(*testing.T, *served)) {
	w := newWorld(t, onFakeNodes)
	for _, r := range w.served() {
		for name, test := range tests {
			t.Run(r.resource+"/"+name, func(t *testing.T) { test(t, r) })
		}
	}
}

func TestVerbs(t *testing.T) {
	forEachResource(t, map[string]func(*testing.T, *served){
		"create and get":    createAndGet,
		"generateName":      generateName,
		"update":            update,
		"generation":        generation,
		"delete":            deleteWithPreconditions,
		"finalizers":        deleteWithFinalizers,
		"deletecollection":  deleteCollection,
		"dry run":           dryRunStoresNothing,
		"a missing object":  missing,
		"an unknown option": unknownDryRun,
	})
}

func createAndGet(t *testing.T, r *served) {
	created, err := r.Create(t.Context(), r.make(t, "made"), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.NotEmpty(t, created.GetUID())
	assert.NotEmpty(t, created.GetResourceVersion())
	assert.EqualValues(t, 1, created.GetGeneration())
	assert.NotZero(t, created.GetCreationTimestamp())
	require.NotEmpty(t, created.GetManagedFields())
	assert.Equal(t, v1alpha1.SchemeGroupVersion.String(), created.GetManagedFields()[0].APIVersion)

	got, err := r.Get(t.Context(), r.name("made"), metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, created.GetUID(), got.GetUID())
	assert.Equal(t, created.Object["spec"], got.Object["spec"])

	_, err = r.Create(t.Context(), r.make(t, "made"), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "got %v", err)
	if created.GetNamespace() != "" {
		astray := r.make(t, "astray")
		astray.SetNamespace("another")
		_, err = r.Create(t.Context(), astray, metav1.CreateOptions{})
		require.True(t, apierrors.IsBadRequest(err), "a body of another namespace than the URL's: got %v", err)
	}
}

func generateName(t *testing.T, r *served) {
	generated := func(prefix string) (*unstructured.Unstructured, error) {
		object := r.make(t, "unused")
		object.SetName("")
		object.SetGenerateName(prefix)
		return r.Create(t.Context(), object, metav1.CreateOptions{})
	}
	seen := map[string]bool{}
	for range 3 {
		got, err := generated(r.name("gen-"))
		require.NoError(t, err)
		assert.Regexp(t, "^"+r.name("gen-")+"[a-z0-9]{5}$", got.GetName())
		seen[got.GetName()] = true
	}
	assert.Len(t, seen, 3)

	_, err := generated("Not-A-Name-")
	require.True(t, apierrors.IsInvalid(err), "got %v", err)
	assert.Contains(t, err.Error(), "metadata.name")
	_, err = generated("")
	require.ErrorContains(t, err, "name or generateName is required")
	if r.kind == "SandboxClaim" {
		_, err = generated("a-prefix-so-long-that-the-name-cannot-also-name-a-service-")
		require.True(t, apierrors.IsInvalid(err), "got %v", err)
		assert.Contains(t, err.Error(), "no more than 55 characters")
	}
}

func update(t *testing.T, r *served) {
	first := r.stored(t, "updated")
	second, err := r.Update(t.Context(), labelled(first, "1"), metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Equal(t, "1", second.GetLabels()["changed"])
	assert.NotEqual(t, first.GetResourceVersion(), second.GetResourceVersion())

	same, err := r.Update(t.Context(), second, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Equal(t, second.GetResourceVersion(), same.GetResourceVersion(), "an update that changes nothing writes nothing")

	_, err = r.Update(t.Context(), labelled(first, "2"), metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "a stale resourceVersion: got %v", err)

	unconditional := labelled(second, "3")
	unconditional.SetResourceVersion("")
	_, err = r.Update(t.Context(), unconditional, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "got %v", err)
	assert.Contains(t, err.Error(), "metadata.resourceVersion")
	assert.Contains(t, err.Error(), "must be specified for an update")

	other := labelled(second, "4")
	other.SetUID("another")
	_, err = r.Update(t.Context(), other, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "an earlier object of the name: got %v", err)
}

func generation(t *testing.T, r *served) {
	object := r.stored(t, "counted")
	relabelled, err := r.Update(t.Context(), labelled(object, "1"), metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 1, relabelled.GetGeneration(), "labels do not move it")
	forged := relabelled.DeepCopy()
	forged.SetGeneration(9)
	forged, err = r.Update(t.Context(), forged, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 1, forged.GetGeneration(), "nobody sets it")
	if r.kind == "SandboxClaim" {
		observed, _, err := unstructured.NestedInt64(forged.Object, "status", "observedGeneration")
		require.NoError(t, err)
		assert.EqualValues(t, 1, observed)
		return // its spec is immutable
	}
	require.NoError(t, unstructured.SetNestedField(forged.Object, "example.test/image:2", "spec", "image"))
	changed, err := r.Update(t.Context(), forged, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 2, changed.GetGeneration(), "a change of spec does")
}

func deleteWithPreconditions(t *testing.T, r *served) {
	object := r.stored(t, "deleted")
	for _, wrong := range []*metav1.Preconditions{
		{UID: ptr.To(types.UID("another"))},
		{ResourceVersion: ptr.To("1")},
		{UID: ptr.To(object.GetUID()), ResourceVersion: ptr.To("1")},
	} {
		err := r.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{Preconditions: wrong})
		require.True(t, apierrors.IsConflict(err), "got %v", err)
	}
	_, err := r.Get(t.Context(), object.GetName(), metav1.GetOptions{})
	require.NoError(t, err, "it is still there")

	right := &metav1.Preconditions{UID: ptr.To(object.GetUID()), ResourceVersion: ptr.To(object.GetResourceVersion())}
	require.NoError(t, r.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{Preconditions: right}))
	_, err = r.Get(t.Context(), object.GetName(), metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "got %v", err)
}

func deleteWithFinalizers(t *testing.T, r *served) {
	object := r.stored(t, "held")
	object.SetFinalizers([]string{"example.test/hold"})
	object, err := r.Update(t.Context(), object, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, r.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{}))
	held, err := r.Get(t.Context(), object.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, held.GetDeletionTimestamp())
	assert.Equal(t, object.GetUID(), held.GetUID())

	_, err = r.Create(t.Context(), r.make(t, "held"), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "got %v", err)
	more := held.DeepCopy()
	more.SetFinalizers(append(more.GetFinalizers(), "example.test/late"))
	_, err = r.Update(t.Context(), more, metav1.UpdateOptions{})
	require.Error(t, err, "nobody adds a finalizer to what is being deleted")

	held.SetFinalizers(nil)
	_, err = r.Update(t.Context(), held, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = r.Get(t.Context(), object.GetName(), metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "got %v", err)
}

func deleteCollection(t *testing.T, r *served) {
	for _, short := range []string{"del-1", "del-2", "kept"} {
		object := r.make(t, short)
		object.SetLabels(map[string]string{labelWorld: r.world, "group": short[:3]})
		_, err := r.Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	selected := metav1.ListOptions{LabelSelector: r.mine().LabelSelector + ",group"}
	names := func() []string {
		list, err := r.List(t.Context(), selected)
		require.NoError(t, err)
		var got []string
		for _, item := range list.Items {
			got = append(got, item.GetName())
		}
		return got
	}
	require.NoError(t, r.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: r.mine().LabelSelector + ",group=del"}))
	assert.Equal(t, []string{r.name("kept")}, names())
	require.NoError(t, r.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + r.name("none")}))
	assert.Equal(t, []string{r.name("kept")}, names())
	require.NoError(t, r.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + r.name("kept")}))
	assert.Empty(t, names())
}

func dryRunStoresNothing(t *testing.T, r *served) {
	dry := []string{metav1.DryRunAll}
	before := r.stored(t, "as-it-was")
	name := before.GetName()

	created, err := r.Create(t.Context(), r.make(t, "never"), metav1.CreateOptions{DryRun: dry})
	require.NoError(t, err)
	assert.NotEmpty(t, created.GetUID(), "it answers as if it had been stored")
	_, err = r.Get(t.Context(), r.name("never"), metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "got %v", err)
	_, err = r.Create(t.Context(), r.make(t, "as-it-was"), metav1.CreateOptions{DryRun: dry})
	require.True(t, apierrors.IsAlreadyExists(err), "it refuses what a create would: got %v", err)

	updated, err := r.Update(t.Context(), labelled(before, "1"), metav1.UpdateOptions{DryRun: dry})
	require.NoError(t, err)
	assert.Equal(t, "1", updated.GetLabels()["changed"])
	patched, err := r.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"2"}}}`), metav1.PatchOptions{DryRun: dry})
	require.NoError(t, err)
	assert.Equal(t, "2", patched.GetLabels()["changed"])
	applied := r.make(t, "as-it-was")
	applied, err = r.Apply(t.Context(), name, labelled(applied, "3"), metav1.ApplyOptions{FieldManager: "dry", DryRun: dry})
	require.NoError(t, err)
	assert.Equal(t, "3", applied.GetLabels()["changed"])
	require.NoError(t, r.Delete(t.Context(), name, metav1.DeleteOptions{DryRun: dry}))
	require.NoError(t, r.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: dry}, r.mine()))

	after, err := r.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func missing(t *testing.T, r *served) {
	name := r.name("missing")
	_, got := r.Get(t.Context(), name, metav1.GetOptions{})
	absent := r.make(t, "missing")
	absent.SetResourceVersion("1")
	_, updated := r.Update(t.Context(), absent, metav1.UpdateOptions{})
	_, patched := r.Patch(t.Context(), name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	deleted := r.Delete(t.Context(), name, metav1.DeleteOptions{})
	for verb, err := range map[string]error{"get": got, "update": updated, "patch": patched, "delete": deleted} {
		require.True(t, apierrors.IsNotFound(err), "%s: got %v", verb, err)
		assert.Contains(t, err.Error(), r.resource+`.sandbox.omnia "`+name+`" not found`)
	}
}

func unknownDryRun(t *testing.T, r *served) {
	_, err := r.Create(t.Context(), r.make(t, "never"), metav1.CreateOptions{DryRun: []string{"Some"}})
	require.True(t, apierrors.IsInvalid(err), "got %v", err)
	assert.Contains(t, err.Error(), "dryRun")
}
