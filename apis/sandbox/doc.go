// +k8s:deepcopy-gen=package
// +groupName=sandbox.omnia

// Package sandbox is the hub version of the sandbox.omnia group: what the registry works on and what every served
// version converts to and from. The fields' meaning stands in v1alpha1; this package refuses to be serialised.
package sandbox
