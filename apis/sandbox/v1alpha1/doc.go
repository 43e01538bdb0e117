// +k8s:openapi-gen=true
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/altairalabs/omnia-sandboxes/apis/sandbox
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-model-package=omnia.sandbox.v1alpha1
// +groupName=sandbox.omnia
// +groupGoName=Sandbox

// Package v1alpha1 is the first served version of the sandbox.omnia group: claims, their classes, and the bodies of
// acquire, touch and release. It holds types, their defaults and the words (phases, reasons, labels) that a person or a
// client compares against. It refuses to hold behaviour: what is valid stands in ../validation, what is due in pkg/lifecycle.
package v1alpha1
