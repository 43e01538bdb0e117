// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +groupName=omnia.altairalabs.ai
// +versionName=v1alpha1

// Package v1alpha1 holds the neighbours' kinds (AgentRuntime, ToolRegistry, Workspace, Connection), with only the fields
// that the sandbox server reads. It refuses to describe them whole: they are Omnia's, and what is missing here is
// preserved by the CRDs made from these types and never written.
package v1alpha1
