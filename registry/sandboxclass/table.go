package sandboxclass

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/registry/printing"
)

// tableConvertor prints classes of either kind.
type tableConvertor struct{}

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	{Name: "Image", Type: "string", Description: "The container image that a sandbox of the class runs."},
	{Name: "Ports", Type: "string", Description: "The ports that it serves, as name:port."},
	{Name: "Limits", Type: "string", Description: "The container's limits."},
	{Name: "RuntimeClass", Type: "string", Description: "The RuntimeClass that its pods run under."},
	{Name: "Trusted", Type: "boolean", Description: "Whether the class runs first-party code, for which limits are optional."},
	{Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
}

// ConvertToTable prints one class or a list of them.
func (tableConvertor) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return printing.Table(obj, options, columns, func(item runtime.Object) []any {
		metadata, spec := parts(item)
		runtimeClass := "<none>"
		if spec.RuntimeClassName != nil {
			runtimeClass = *spec.RuntimeClassName
		}
		return []any{metadata.Name, spec.Image, ports(spec), limits(spec), runtimeClass, spec.Trusted, printing.Age(metadata.CreationTimestamp.Time)}
	})
}

func ports(spec *sandbox.SandboxClassSpec) string {
	var out []string
	for _, p := range spec.Ports {
		out = append(out, fmt.Sprintf("%s:%d", p.Name, p.Port))
	}
	return strings.Join(out, ",")
}

func limits(spec *sandbox.SandboxClassSpec) string {
	var out []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, set := spec.Resources.Limits[name]; set {
			out = append(out, fmt.Sprintf("%s=%s", name, q.String()))
		}
	}
	if len(out) == 0 {
		return "<none>"
	}
	return strings.Join(out, ",")
}
