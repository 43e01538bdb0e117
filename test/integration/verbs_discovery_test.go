package integration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const groupPath = "/apis/sandbox.omnia/v1alpha1"

// raw asks kube-apiserver for a path.
func (w *world) raw(ctx context.Context, path, accept string) ([]byte, error) {
	return w.Kube.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).DoRaw(ctx)
}

func (w *world) decode(t *testing.T, path, accept string, into any) {
	t.Helper()
	data, err := w.raw(t.Context(), path, accept)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

var (
	allVerbs    = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	statusVerbs = metav1.Verbs{"get", "patch", "update"}
	actionVerbs = metav1.Verbs{"create"}
)

func TestDiscovery_Golden(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	list := metav1.APIResourceList{}
	w.decode(t, groupPath, "application/json", &list)
	for i, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			assert.NotEmpty(t, r.StorageVersionHash, "%s: the storage version migrator looks for it", r.Name)
		}
		list.APIResources[i].StorageVersionHash = ""
	}
	assert.Equal(t, []metav1.APIResource{
		{Name: "clustersandboxclasses", SingularName: "clustersandboxclass", Kind: "ClusterSandboxClass", Verbs: allVerbs, ShortNames: []string{"csbc"}},
		{Name: "sandboxclaims", SingularName: "sandboxclaim", Namespaced: true, Kind: "SandboxClaim", Verbs: allVerbs, ShortNames: []string{"sbclaim"}},
		{Name: "sandboxclaims/acquire", Namespaced: true, Kind: "SandboxAcquire", Verbs: actionVerbs},
		{Name: "sandboxclaims/release", Namespaced: true, Kind: "SandboxRelease", Verbs: actionVerbs},
		{Name: "sandboxclaims/status", Namespaced: true, Kind: "SandboxClaim", Verbs: statusVerbs},
		{Name: "sandboxclaims/touch", Namespaced: true, Kind: "SandboxTouch", Verbs: actionVerbs},
		{Name: "sandboxclasses", SingularName: "sandboxclass", Namespaced: true, Kind: "SandboxClass", Verbs: allVerbs, ShortNames: []string{"sbc"}},
	}, list.APIResources)
}

func TestDiscovery_Aggregated(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	accept := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	groups := framework.Eventually(t, framework.BoundTimeout, "the group is fresh in the aggregated discovery", func(ctx context.Context) (*apidiscoveryv2.APIGroupDiscoveryList, error) {
		data, err := w.raw(ctx, "/apis", accept)
		if err != nil {
			return nil, err
		}
		groups := &apidiscoveryv2.APIGroupDiscoveryList{}
		return groups, json.Unmarshal(data, groups)
	}, func(groups *apidiscoveryv2.APIGroupDiscoveryList) bool {
		group := discovered(groups)
		return group != nil && len(group.Versions) == 1 && group.Versions[0].Freshness == apidiscoveryv2.DiscoveryFreshnessCurrent
	})
	var got []string
	for _, r := range discovered(groups).Versions[0].Resources {
		line := string(r.Scope) + " " + r.Resource + " " + r.ResponseKind.Kind + " " + strings.Join(r.ShortNames, ",")
		for _, sub := range r.Subresources {
			line += " " + sub.Subresource + ":" + strings.Join(sub.Verbs, ",")
		}
		got = append(got, line)
	}
	assert.Equal(t, []string{
		"Cluster clustersandboxclasses ClusterSandboxClass csbc",
		"Namespaced sandboxclaims SandboxClaim sbclaim acquire:create release:create status:get,patch,update touch:create",
		"Namespaced sandboxclasses SandboxClass sbc",
	}, got)
}

func discovered(groups *apidiscoveryv2.APIGroupDiscoveryList) *apidiscoveryv2.APIGroupDiscovery {
	for i := range groups.Items {
		if groups.Items[i].Name == "sandbox.omnia" {
			return &groups.Items[i]
		}
	}
	return nil
}

// schema is what these tests read of an OpenAPI schema.
type schema struct {
	Description string            `json:"description"`
	Properties  map[string]schema `json:"properties"`
	Kinds       []struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

// kindsOf gives the group's kinds among schemas.
func kindsOf(schemas map[string]schema) []string {
	var kinds []string
	for name, s := range schemas {
		for _, k := range s.Kinds {
			if k.Group == "sandbox.omnia" && strings.Contains(name, "sandbox") {
				kinds = append(kinds, k.Version+" "+k.Kind)
			}
		}
	}
	return kinds
}

var servedKinds = []string{
	"v1alpha1 SandboxClaim", "v1alpha1 SandboxClaimList", "v1alpha1 SandboxClass", "v1alpha1 SandboxClassList",
	"v1alpha1 ClusterSandboxClass", "v1alpha1 ClusterSandboxClassList",
	"v1alpha1 SandboxAcquire", "v1alpha1 SandboxTouch", "v1alpha1 SandboxRelease",
}

func TestOpenAPI_V3_HoldsEveryKindAndDescribesEveryField(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	document := struct {
		Paths      map[string]any `json:"paths"`
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}{}
	w.decode(t, "/openapi/v3"+groupPath, "application/json", &document)
	assert.ElementsMatch(t, servedKinds, kindsOf(document.Components.Schemas))
	for _, path := range []string{"/clustersandboxclasses/{name}", "/namespaces/{namespace}/sandboxclaims/{name}/acquire", "/namespaces/{namespace}/sandboxclaims/{name}/status"} {
		assert.Contains(t, document.Paths, groupPath+path)
	}
	for name, s := range document.Components.Schemas {
		if !strings.HasPrefix(name, "omnia.") {
			continue // Kubernetes' own, or a list's, which nobody asks to have explained
		}
		for property, p := range s.Properties {
			assert.NotEmpty(t, p.Description, "%s.%s", name, property)
		}
	}
}

func TestOpenAPI_V2_HoldsEveryKind(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	framework.Eventually(t, framework.BoundTimeout, "the aggregator's OpenAPI v2 holds the group's kinds", func(ctx context.Context) ([]string, error) {
		data, err := w.raw(ctx, "/openapi/v2", "application/json")
		if err != nil {
			return nil, err
		}
		document := struct {
			Definitions map[string]schema `json:"definitions"`
		}{}
		err = json.Unmarshal(data, &document)
		return kindsOf(document.Definitions), err
	}, func(kinds []string) bool { return assert.ObjectsAreEqual(set(servedKinds), set(kinds)) })
}

func set(all []string) map[string]bool {
	out := map[string]bool{}
	for _, one := range all {
		out[one] = true
	}
	return out
}

// A server that offers protobuf without having it holds up the deletion of every namespace.
func TestNegotiation_JSONIsServedAndProtobufIsNotOffered(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	const protobuf = "application/vnd.kubernetes.protobuf"
	path := groupPath + "/namespaces/" + w.namespace + "/sandboxclaims"
	for _, accept := range []string{"application/json", protobuf + ",application/json", "*/*"} {
		list := metav1.List{}
		w.decode(t, path, accept, &list)
		assert.Equal(t, "SandboxClaimList", list.Kind, accept)
	}
	data, err := w.raw(t.Context(), path, "application/yaml")
	require.NoError(t, err)
	assert.Contains(t, string(data), "kind: SandboxClaimList")
	_, err = w.raw(t.Context(), path, protobuf)
	require.True(t, apierrors.IsNotAcceptable(err), "got %v", err)
}
