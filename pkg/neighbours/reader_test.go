package neighbours

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
)

// standIn is a host cluster with these objects.
type standIn struct {
	cluster.Cluster
	cached, live client.Client
}

func (s standIn) GetClient() client.Client    { return s.cached }
func (s standIn) GetAPIReader() client.Reader { return s.live }

func reading(t *testing.T, cached, live []client.Object) *Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, omniav1alpha1.AddToScheme(scheme))
	of := func(objects []client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	return &Reader{host: standIn{cached: of(cached), live: of(live)}}
}

func agent(change func(*omniav1alpha1.AgentRuntime)) *omniav1alpha1.AgentRuntime {
	r := &omniav1alpha1.AgentRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "a"}}
	change(r)
	return r
}

func workspace(name, namespace, account string) *omniav1alpha1.Workspace {
	return &omniav1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: omniav1alpha1.WorkspaceSpec{
		Namespace: omniav1alpha1.WorkspaceNamespace{Name: namespace}, Runtime: &omniav1alpha1.WorkspaceRuntime{ServiceAccountName: account}}}
}

func TestServiceAccount(t *testing.T) {
	plain := func(*omniav1alpha1.AgentRuntime) {}
	overridden := func(r *omniav1alpha1.AgentRuntime) {
		r.Spec.PodOverrides = &omniav1alpha1.PodOverrides{ServiceAccountName: "own"}
	}
	tests := map[string]struct {
		runtime    func(*omniav1alpha1.AgentRuntime)
		workspaces []client.Object
		want, says string
	}{
		"nothing said: the facade's":                      {plain, nil, "a-facade", ""},
		"another namespace's Workspace: not looked at":    {plain, []client.Object{workspace("w", "other", "shared")}, "a-facade", ""},
		"the Workspace's":                                 {plain, []client.Object{workspace("w", "agents", "shared")}, "shared", ""},
		"a Workspace that says nothing: the facade's":     {plain, []client.Object{workspace("w", "agents", "")}, "a-facade", ""},
		"the runtime's own choice: before the Workspace":  {overridden, []client.Object{workspace("w", "agents", "shared")}, "own", ""},
		"two Workspaces: nobody can be told from another": {plain, []client.Object{workspace("v", "agents", "x"), workspace("w", "agents", "y")}, "", "belongs to 2 Workspaces"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := reading(t, tt.workspaces, nil).ServiceAccount(t.Context(), agent(tt.runtime))
			if tt.says != "" {
				require.ErrorContains(t, err, tt.says)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestAgentRuntime_ConfirmsAMissByALiveRead(t *testing.T) {
	r := reading(t, nil, []client.Object{agent(func(*omniav1alpha1.AgentRuntime) {})})
	got, err := r.AgentRuntime(t.Context(), "agents", "a")
	require.NoError(t, err, "the cache lags behind")
	assert.Equal(t, "a", got.Name)
	_, err = r.AgentRuntime(t.Context(), "agents", "none")
	require.True(t, apierrors.IsNotFound(err), "got %v", err)
}

func TestToolRegistry(t *testing.T) {
	registry := &omniav1alpha1.ToolRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "tools"}}
	r := reading(t, []client.Object{registry}, nil)
	referring := func(name, namespace string) *omniav1alpha1.AgentRuntime {
		return agent(func(a *omniav1alpha1.AgentRuntime) {
			a.Spec.ToolRegistryRef = &omniav1alpha1.ToolRegistryReference{Name: name, Namespace: namespace}
		})
	}
	got, err := r.ToolRegistry(t.Context(), referring("tools", ""))
	require.NoError(t, err)
	assert.Equal(t, "tools", got.Name)
	_, err = r.ToolRegistry(t.Context(), referring("tools", "agents"))
	require.NoError(t, err)
	_, err = r.ToolRegistry(t.Context(), referring("tools", "other"))
	require.True(t, apierrors.IsForbidden(err), "got %v", err)
	_, err = r.ToolRegistry(t.Context(), agent(func(*omniav1alpha1.AgentRuntime) {}))
	require.True(t, apierrors.IsNotFound(err), "got %v", err)
}
