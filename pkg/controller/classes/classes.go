// Package classes reads the class that a reference names: of exactly its kind, and never another of the same name. It refuses
// to know what a class is for.
package classes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Read reads a class: a SandboxClass from the namespace, a ClusterSandboxClass cluster-wide; nil if there is none. What the cache
// misses is confirmed by a live read, since the cache may lag behind whoever created the class a moment ago.
func Read(ctx context.Context, cached, live client.Reader, namespace string, ref v1alpha1.ClassReference) (*v1alpha1.SandboxClassSpec, error) {
	var object client.Object
	var spec *v1alpha1.SandboxClassSpec
	key := client.ObjectKey{Name: ref.Name}
	switch ref.Kind {
	case v1alpha1.SandboxClassKind:
		class := &v1alpha1.SandboxClass{}
		object, spec = class, &class.Spec
		key.Namespace = namespace
	case v1alpha1.ClusterSandboxClassKind:
		class := &v1alpha1.ClusterSandboxClass{}
		object, spec = class, &class.Spec
	default:
		return nil, nil
	}
	err := cached.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		err = live.Get(ctx, key, object)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil && key.Namespace == "":
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, key.Name, err)
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, key, err)
	}
	return spec, nil
}
