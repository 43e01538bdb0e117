// +k8s:openapi-gen=true
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/altairalabs/omnia-sandboxes/apis/sandbox
// +k8s:defaulter-gen=TypeMeta
// +k8s:validation-gen=TypesWithField=TypeMeta
// +k8s:validation-gen-nolint
// +k8s:openapi-model-package=omnia.sandbox.v1alpha1
// +groupName=sandbox.omnia
// +groupGoName=Sandbox

// Package v1alpha1 is the first served version of the sandbox.omnia group: claims, their classes, and the bodies of
// acquire, touch and release. It holds types, their defaults and the words (phases, reasons, labels) that a person or a
// client compares against. It refuses to hold behaviour: what is due stands in pkg/lifecycle, and what is valid in
// ../validation, save for lengths, counts, enumerations, formats and unique keys: those are +k8s tags here, which the store
// checks. What is required is checked there, so that its refusal says what to give; hence validation-gen's lint is off.
package v1alpha1
