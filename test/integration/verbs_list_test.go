package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestList_InChunks_IsOneSnapshot(t *testing.T) {
	forEachResource(t, map[string]func(*testing.T, *served){"limit and continue": listInChunks})
}

func listInChunks(t *testing.T, r *served) {
	var want, got []string
	for i := range 5 {
		want = append(want, r.stored(t, fmt.Sprintf("chunk-%d", i)).GetName())
	}
	options := r.mine()
	options.Limit = 2
	var pages []int
	version := ""
	for {
		page, err := r.List(t.Context(), options)
		require.NoError(t, err)
		if version == "" {
			version = page.GetResourceVersion()
			r.stored(t, "chunk-late")
		}
		assert.Equal(t, version, page.GetResourceVersion(), "every page is of one moment")
		pages = append(pages, len(page.Items))
		for _, item := range page.Items {
			got = append(got, item.GetName())
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	assert.Equal(t, []int{2, 2, 1}, pages)
	assert.Equal(t, want, got)

	options.Continue = "no token"
	_, err := r.List(t.Context(), options)
	require.True(t, apierrors.IsBadRequest(err), "got %v", err)
}

func TestList_ResourceVersions(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	direct := w.direct()
	list := func(set versioned.Interface, options metav1.ListOptions) ([]string, string, error) {
		got, err := set.SandboxV1alpha1().SandboxClasses(w.namespace).List(t.Context(), options)
		if err != nil {
			return nil, "", err
		}
		var names []string
		for _, item := range got.Items {
			names = append(names, item.Name)
		}
		return names, got.ResourceVersion, nil
	}
	_, before, err := list(w.Sandbox, metav1.ListOptions{})
	require.NoError(t, err)

	last := &v1alpha1.SandboxClass{}
	for i := range 20 {
		last, err = w.Sandbox.SandboxV1alpha1().SandboxClasses(w.namespace).Create(t.Context(), framework.MakeClass(fmt.Sprintf("seen-%02d", i)).In(w.namespace), metav1.CreateOptions{})
		require.NoError(t, err)
		names, _, err := list(direct[i%2], metav1.ListOptions{})
		require.NoError(t, err)
		require.Contains(t, names, last.Name, "whichever server is asked, it has seen the write")
	}

	names, _, err := list(w.Sandbox, metav1.ListOptions{ResourceVersion: last.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	require.NoError(t, err)
	assert.Len(t, names, 20)
	names, version, err := list(w.Sandbox, metav1.ListOptions{ResourceVersion: before, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	require.NoError(t, err)
	assert.Empty(t, names, "as it was before")
	assert.Equal(t, before, version)
	_, _, err = list(w.Sandbox, metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(t, err)

	_, _, err = list(w.Sandbox, metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	require.True(t, apierrors.IsInvalid(err), "a match of no version: got %v", err)
	_, _, err = list(w.Sandbox, metav1.ListOptions{ResourceVersion: "soon"})
	require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "got %v", err)
	err = w.Sandbox.SandboxV1alpha1().RESTClient().Get().MaxRetries(0).Namespace(w.namespace).Resource("sandboxclasses").
		Param("resourceVersion", "999999999").Param("resourceVersionMatch", "NotOlderThan").Do(t.Context()).Error()
	require.True(t, apierrors.IsTimeout(err), "a version that is not there yet: got %v", err)
	assert.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "got %v", err)
}

func TestFieldSelectors(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	w.Create(t,
		framework.MakeRuntime("other", w.namespace).Obj(),
		framework.MakeClaim("bound", w.namespace, runtimeName, w.class).Session("s1").Handle("shell/default").Obj(),
		framework.MakeClaim("failed", w.namespace, runtimeName, "none").Session("s2").Handle("shell/second").Obj(),
		framework.MakeClaim("foreign", w.namespace, "other", "none").Session("s1").Obj())
	w.Claim(t, w.namespace, "bound", framework.Bound)
	w.Claim(t, w.namespace, "failed", framework.Failed)
	w.Claim(t, w.namespace, "foreign", framework.Failed)

	for selector, want := range map[string][]string{
		"metadata.name=bound":                               {"bound"},
		"metadata.namespace=" + w.namespace:                 {"bound", "failed", "foreign"},
		"spec.agentRuntimeRef.name=" + runtimeName:          {"bound", "failed"},
		"spec.sessionID=s1":                                 {"bound", "foreign"},
		"spec.sessionID=s1,spec.agentRuntimeRef.name=other": {"foreign"},
		"spec.sessionID!=s1":                                {"failed"},
		"spec.handle=shell/second":                          {"failed"},
		"spec.handle=":                                      {"foreign"},
		"status.phase=Failed":                               {"failed", "foreign"},
		"status.phase!=Failed":                              {"bound"},
	} {
		t.Run(selector, func(t *testing.T) {
			list, err := claims.List(t.Context(), metav1.ListOptions{FieldSelector: selector})
			require.NoError(t, err)
			var got []string
			for _, claim := range list.Items {
				got = append(got, claim.Name)
			}
			assert.Equal(t, want, got)
			watcher, err := claims.Watch(t.Context(), metav1.ListOptions{FieldSelector: selector})
			require.NoError(t, err)
			defer watcher.Stop()
			var watched []string
			for range want {
				watched = append(watched, nextEvent(t, watcher).Object.(*v1alpha1.SandboxClaim).Name)
			}
			assert.ElementsMatch(t, want, watched)
		})
	}

	require.NoError(t, claims.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "status.phase=Failed,spec.sessionID=s1"}))
	left, err := claims.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 2)
	assert.Equal(t, "bound", left.Items[0].Name)
	assert.Equal(t, "failed", left.Items[1].Name)
}

func TestFieldSelectors_Unsupported_RefusedWithThoseThatAre(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	for verb, err := range map[string]error{
		"list":             second(claims.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.classRef.name=x"})),
		"watch":            second(claims.Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.classRef.name=x"})),
		"deletecollection": claims.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "spec.classRef.name=x"}),
	} {
		require.True(t, apierrors.IsBadRequest(err), "%s by a field that nothing is selected by: got %v", verb, err)
		for _, supported := range v1alpha1.ClaimFieldLabels {
			assert.Contains(t, err.Error(), supported)
		}
	}
	_, err := w.Sandbox.SandboxV1alpha1().ClusterSandboxClasses().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.image=x"})
	require.True(t, apierrors.IsBadRequest(err), "got %v", err)
	assert.Contains(t, err.Error(), "metadata.name")
}

func second[T any](_ T, err error) error { return err }

// direct gives a clientset for each server, past the aggregator, of an account that may do everything in the namespace.
func (w *world) direct() []versioned.Interface {
	w.t.Helper()
	w.ServiceAccount(w.t, w.namespace, "editor")
	_, err := w.Kubectl(w.t.Context(), "--namespace", w.namespace, "create", "rolebinding", "editor", "--clusterrole=cluster-admin", "--serviceaccount="+w.namespace+":editor")
	require.NoError(w.t, err)
	w.mayOnce(w.t, "editor", authorizationv1.ResourceAttributes{Verb: "list", Group: v1alpha1.GroupName, Resource: "sandboxclasses"})
	config, err := w.AsServiceAccount(w.t.Context(), w.namespace, "editor")
	require.NoError(w.t, err)
	var direct []versioned.Interface
	for _, server := range w.servers.List {
		set, err := versioned.NewForConfig(server.Direct(config))
		require.NoError(w.t, err)
		direct = append(direct, set)
	}
	return direct
}
