// Package sandboxclass is the registry of SandboxClass and ClusterSandboxClass: one schema, two kinds, one strategy. It
// refuses to know what is built from a class; claims copy it when they are admitted.
package sandboxclass

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// kind is what differs between the two.
type kind struct {
	resource, singular, shortName string
	namespaced                    bool
	newObject, newList            func() runtime.Object
}

var (
	namespacedKind = kind{
		resource: "sandboxclasses", singular: "sandboxclass", shortName: "sbc", namespaced: true,
		newObject: func() runtime.Object { return &sandbox.SandboxClass{} },
		newList:   func() runtime.Object { return &sandbox.SandboxClassList{} },
	}
	clusterKind = kind{
		resource: "clustersandboxclasses", singular: "clustersandboxclass", shortName: "csbc",
		newObject: func() runtime.Object { return &sandbox.ClusterSandboxClass{} },
		newList:   func() runtime.Object { return &sandbox.ClusterSandboxClassList{} },
	}
)

// parts gives the two halves of a class of either kind.
func parts(obj runtime.Object) (*metav1.ObjectMeta, *sandbox.SandboxClassSpec) {
	switch class := obj.(type) {
	case *sandbox.SandboxClass:
		return &class.ObjectMeta, &class.Spec
	case *sandbox.ClusterSandboxClass:
		return &class.ObjectMeta, &class.Spec
	}
	panic("sandboxclass: an object of neither kind")
}
