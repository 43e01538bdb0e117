package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// Every component beside every overlay gives what it promises, also those whose operators this cluster does not have.
func TestComponents_BesideEveryOverlay(t *testing.T) {
	c := framework.Get(t)
	for _, overlay := range []string{"embedded", "ha", "local"} {
		t.Run(overlay+" alone", func(t *testing.T) {
			objects := render(t, c, overlay)
			assert.Contains(t, objects, "Secret/sandbox-apiserver-cert")
			assert.Contains(t, args(t, objects), "--serving-cert-secret=sandbox-apiserver-cert")
			assert.Contains(t, args(t, objects), "--lease-identity=$(POD_NAME)_$(POD_UID)")
			assert.Equal(t, map[string]string{"POD_NAME": "metadata.name", "POD_UID": "metadata.uid"}, podFields(t, objects), "what it is called after")
		})
		t.Run(overlay+" with cert-manager", func(t *testing.T) {
			objects := render(t, c, overlay, "cert-manager")
			for _, gone := range []string{"Secret/sandbox-apiserver-cert", "Role/omnia-sandboxes:serving-cert", "RoleBinding/omnia-sandboxes:serving-cert",
				"ClusterRole/omnia-sandboxes:serving-cert", "ClusterRoleBinding/omnia-sandboxes:serving-cert"} {
				assert.NotContains(t, objects, gone, "the server may neither read Secrets nor write the APIService")
			}
			assert.Contains(t, objects, "Certificate/sandbox-apiserver")
			assert.Equal(t, "sandbox-system/sandbox-apiserver", objects["APIService/v1alpha1.sandbox.omnia"].GetAnnotations()["cert-manager.io/inject-ca-from"])
			given := args(t, objects)
			assert.Contains(t, given, "--tls-cert-file=/certs/tls.crt")
			assert.Contains(t, given, "--tls-private-key-file=/certs/tls.key")
			for _, arg := range given {
				assert.NotContains(t, arg, "--serving-cert-secret")
			}
		})
		t.Run(overlay+" with a ServiceMonitor", func(t *testing.T) {
			objects := render(t, c, overlay, "servicemonitor")
			require.Contains(t, objects, "ServiceMonitor/sandbox-apiserver")
			selected, _, err := unstructured.NestedStringMap(objects["ServiceMonitor/sandbox-apiserver"].Object, "spec", "selector", "matchLabels")
			require.NoError(t, err)
			for key, value := range selected {
				assert.Equal(t, value, objects["Service/sandbox-apiserver"].GetLabels()[key], "it finds the Service")
			}
			endpoints, _, err := unstructured.NestedSlice(objects["ServiceMonitor/sandbox-apiserver"].Object, "spec", "endpoints")
			require.NoError(t, err)
			require.Len(t, endpoints, 2)
			for _, endpoint := range endpoints {
				relabelings, _, err := unstructured.NestedSlice(endpoint.(map[string]any), "relabelings")
				require.NoError(t, err)
				assert.Equal(t, []any{map[string]any{"sourceLabels": []any{"__metrics_path__"}, "targetLabel": "metrics_path"}}, relabelings, "what both paths have is told apart")
			}
		})
		t.Run(overlay+" with alerts and a dashboard", func(t *testing.T) {
			objects := render(t, c, overlay, "servicemonitor", "alerts", "dashboard")
			require.Contains(t, objects, "PrometheusRule/sandbox-apiserver")
			dashboard := objects["ConfigMap/sandbox-apiserver-dashboard"]
			require.NotNil(t, dashboard)
			assert.Equal(t, "1", dashboard.GetLabels()["grafana_dashboard"], "Grafana's sidecar finds it")
			files, _, err := unstructured.NestedStringMap(dashboard.Object, "data")
			require.NoError(t, err)
			assert.True(t, json.Valid([]byte(files["sandbox-omnia.json"])))
			for _, name := range []string{"PrometheusRule/sandbox-apiserver", "ConfigMap/sandbox-apiserver-dashboard"} {
				assert.Equal(t, framework.SystemNamespace, objects[name].GetNamespace(), "it goes with the server")
			}
		})
		t.Run(overlay+" with traces", func(t *testing.T) {
			objects := render(t, c, overlay, "cert-manager", "tracing")
			assert.Contains(t, args(t, objects), "--tracing-config-file=/tracing/tracing.yaml")
			mounted := slices.IndexFunc(volumes(t, objects), func(v corev1.Volume) bool { return v.Name == "tracing" })
			require.GreaterOrEqual(t, mounted, 0)
			config := objects["ConfigMap/"+volumes(t, objects)[mounted].ConfigMap.Name]
			require.NotNil(t, config, "the pods are replaced when it changes, by its name")
			data, _, err := unstructured.NestedString(config.Object, "data", "tracing.yaml")
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "tracing.yaml")
			require.NoError(t, os.WriteFile(file, []byte(data), 0o600))
			read, err := genericoptions.ReadTracingConfiguration(file)
			require.NoError(t, err)
			assert.Empty(t, tracingapi.ValidateTracingConfiguration(read, nil, nil))
			assert.NotEmpty(t, ptr.Deref(read.Endpoint, ""))
		})
	}
}

// render gives the objects of an overlay with components, by kind and name.
func render(t *testing.T, c *framework.Cluster, overlay string, components ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	dir := t.TempDir()
	relative, err := filepath.Rel(dir, filepath.Join(c.Root, "manifests"))
	require.NoError(t, err)
	kustomization := fmt.Sprintf("resources: [%s/overlays/%s]\ncomponents:\n", relative, overlay)
	for _, component := range components {
		kustomization += fmt.Sprintf("- %s/components/%s\n", relative, component)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(strings.TrimSuffix(kustomization, "components:\n")), 0o600))
	out, err := c.Kubectl(t.Context(), "kustomize", dir)
	require.NoError(t, err)
	objects := map[string]*unstructured.Unstructured{}
	for document := range bytes.SplitSeq([]byte(out), []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		require.NoError(t, utilyaml.Unmarshal(document, &object.Object))
		objects[object.GetKind()+"/"+object.GetName()] = object
	}
	return objects
}

// args are the flags of the server's pods.
func args(t *testing.T, objects map[string]*unstructured.Unstructured) []string {
	t.Helper()
	return podSpec(t, objects).Containers[0].Args
}

// podFields are the variables of the server's container that are fields of its pod, by name.
func podFields(t *testing.T, objects map[string]*unstructured.Unstructured) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for _, variable := range podSpec(t, objects).Containers[0].Env {
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
			fields[variable.Name] = from.FieldRef.FieldPath
		}
	}
	return fields
}

// volumes are those of the server's pods.
func volumes(t *testing.T, objects map[string]*unstructured.Unstructured) []corev1.Volume {
	t.Helper()
	return podSpec(t, objects).Volumes
}

// podSpec is what the server's pods are made from.
func podSpec(t *testing.T, objects map[string]*unstructured.Unstructured) corev1.PodSpec {
	t.Helper()
	for _, kind := range []string{"StatefulSet", "Deployment"} {
		workload, ok := objects[kind+"/"+framework.ServerName]
		if !ok {
			continue
		}
		found, _, err := unstructured.NestedMap(workload.Object, "spec", "template", "spec")
		require.NoError(t, err)
		var spec corev1.PodSpec
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(found, &spec))
		return spec
	}
	t.Fatal("no workload")
	return corev1.PodSpec{}
}
