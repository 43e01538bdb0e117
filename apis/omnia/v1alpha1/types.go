package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What an unset field of AgentRuntime.spec.sandbox means.
const (
	DefaultMaxConcurrent     int32 = 10
	DefaultMaxPerSession     int32 = 3
	DefaultIdleTimeout             = 30 * time.Minute
	DefaultReleaseGrace            = 2 * time.Minute
	DefaultMountReleaseGrace       = 5 * time.Minute
	DefaultMaxInstances      int32 = 1
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=agentruntimes

// AgentRuntime is an agent's runtime. A sandbox belongs to one.
type AgentRuntime struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AgentRuntimeSpec `json:"spec,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// AgentRuntimeList is a list of AgentRuntimes.
type AgentRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentRuntime `json:"items"`
}

// AgentRuntimeSpec is what the sandbox server reads of an AgentRuntime.
// +kubebuilder:pruning:PreserveUnknownFields
type AgentRuntimeSpec struct {
	// toolRegistryRef names the runtime's ToolRegistry, in the same namespace; another namespace is refused.
	// +optional
	ToolRegistryRef *ToolRegistryReference `json:"toolRegistryRef,omitempty"`
	// podOverrides changes the runtime's pods.
	// +optional
	PodOverrides *PodOverrides `json:"podOverrides,omitempty"`
	// sandbox holds the ceilings and times of the runtime's sandboxes.
	// +optional
	Sandbox *AgentRuntimeSandbox `json:"sandbox,omitempty"`
}

// ToolRegistryReference names a ToolRegistry.
type ToolRegistryReference struct {
	// name is the ToolRegistry's name.
	Name string `json:"name"`
	// namespace, where set, must be the runtime's own.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// PodOverrides is what a runtime changes in its pods.
// +kubebuilder:pruning:PreserveUnknownFields
type PodOverrides struct {
	// serviceAccountName is the ServiceAccount of the runtime's pods.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// AgentRuntimeSandbox holds the ceilings and times of a runtime's sandboxes.
type AgentRuntimeSandbox struct {
	// enabled lets the runtime have sandboxes. Default false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// maxConcurrent is how many claims of the runtime may be admitted at once. Default 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
	// maxPerSession is how many live claims one session may hold. Default 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxPerSession *int32 `json:"maxPerSession,omitempty"`
	// idleTimeout is how long a claim may go untouched. Default 30m.
	// +optional
	IdleTimeout *metav1.Duration `json:"idleTimeout,omitempty"`
	// releaseGrace is how long a claim outlives its conversation. Default 2m.
	// +optional
	ReleaseGrace *metav1.Duration `json:"releaseGrace,omitempty"`
	// mountReleaseGrace is releaseGrace for a claim that mounts a project or the session workspace. Default 5m.
	// +optional
	MountReleaseGrace *metav1.Duration `json:"mountReleaseGrace,omitempty"`
	// connections binds a Connection to each role that the runtime's sandboxes offer.
	// +optional
	// +listType=map
	// +listMapKey=role
	Connections []ConnectionBinding `json:"connections,omitempty"`
}

// ConnectionBinding binds a Connection to a role.
type ConnectionBinding struct {
	// role is the class's role.
	Role string `json:"role"`
	// connection is the Connection's name.
	Connection string `json:"connection"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=toolregistries,shortName=tr
// +kubebuilder:subresource:status

// ToolRegistry declares the tools of a runtime, and the sandboxes that serve some of them.
type ToolRegistry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ToolRegistrySpec   `json:"spec,omitempty"`
	Status ToolRegistryStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ToolRegistryList is a list of ToolRegistries.
type ToolRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ToolRegistry `json:"items"`
}

// ToolRegistrySpec is what the sandbox server reads of a ToolRegistry.
// +kubebuilder:pruning:PreserveUnknownFields
type ToolRegistrySpec struct {
	// sandboxes are the sandboxes that a handle's first segment may name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Sandboxes []RegistrySandbox `json:"sandboxes,omitempty"`
	// handlers are what serves the registry's tools.
	// +optional
	// +listType=map
	// +listMapKey=name
	Handlers []RegistryHandler `json:"handlers,omitempty"`
}

// RegistryHandler is one handler of a ToolRegistry. Its other fields, such as type and mcpConfig, are Omnia's and kept as
// they are.
// +kubebuilder:pruning:PreserveUnknownFields
type RegistryHandler struct {
	// name is the handler's name.
	Name string `json:"name"`
	// sandbox is the sandbox that serves the handler; unset if none does. The field is this project's reading of the
	// specification's "A ToolRegistry handler addresses one by name", which names no field.
	// +optional
	Sandbox *HandlerSandbox `json:"sandbox,omitempty"`
}

// HandlerSandbox is the port of a sandbox that a handler addresses.
// +kubebuilder:pruning:PreserveUnknownFields
type HandlerSandbox struct {
	// name is the name of one of spec.sandboxes.
	Name string `json:"name"`
	// port is the name of one of the ports of the sandbox's class. It may be left out where the class has only one.
	// +optional
	Port string `json:"port,omitempty"`
}

// RegistrySandbox is one sandbox of a ToolRegistry.
type RegistrySandbox struct {
	// name is a handle's first segment: a DNS label.
	Name string `json:"name"`
	// classRef names the class of the sandbox.
	ClassRef ClassReference `json:"classRef"`
	// targetPath is the project that the sandbox's work is promoted into.
	// +optional
	TargetPath string `json:"targetPath,omitempty"`
	// maxInstances is how many instances one session may hold. Default 1; always 1 with targetPath.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxInstances *int32 `json:"maxInstances,omitempty"`
	// workspace, where "session", mounts the session's shared directory.
	// +optional
	Workspace string `json:"workspace,omitempty"`
	// connections are the defaults for roles that the runtime does not bind.
	// +optional
	// +listType=map
	// +listMapKey=role
	Connections []ConnectionBinding `json:"connections,omitempty"`
}

// ClassReference names a sandbox class.
type ClassReference struct {
	// name is the class's name.
	Name string `json:"name"`
	// kind is SandboxClass (the default) or ClusterSandboxClass.
	// +optional
	// +kubebuilder:validation:Enum=SandboxClass;ClusterSandboxClass
	Kind string `json:"kind,omitempty"`
}

// ToolRegistryStatus is what the sandbox server reads and writes of a ToolRegistry's status.
// +kubebuilder:pruning:PreserveUnknownFields
type ToolRegistryStatus struct {
	// conditions are the registry's conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workspaces,scope=Cluster,shortName=ws

// Workspace owns one namespace.
type Workspace struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WorkspaceSpec `json:"spec,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// WorkspaceList is a list of Workspaces.
type WorkspaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Workspace `json:"items"`
}

// WorkspaceSpec is what the sandbox server reads of a Workspace.
// +kubebuilder:pruning:PreserveUnknownFields
type WorkspaceSpec struct {
	// namespace is the namespace that the Workspace owns.
	Namespace WorkspaceNamespace `json:"namespace"`
	// runtime holds defaults for the namespace's runtimes.
	// +optional
	Runtime *WorkspaceRuntime `json:"runtime,omitempty"`
}

// WorkspaceNamespace names a Workspace's namespace.
// +kubebuilder:pruning:PreserveUnknownFields
type WorkspaceNamespace struct {
	// name is the namespace's name.
	Name string `json:"name"`
}

// WorkspaceRuntime holds defaults for runtimes.
// +kubebuilder:pruning:PreserveUnknownFields
type WorkspaceRuntime struct {
	// serviceAccountName is the ServiceAccount of runtimes that name none themselves.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=connections

// Connection is an external service that a sandbox may be bound to.
type Connection struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ConnectionSpec `json:"spec,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ConnectionList is a list of Connections.
type ConnectionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Connection `json:"items"`
}

// ConnectionSpec is kept as it is found: nothing of it is read yet.
// +kubebuilder:pruning:PreserveUnknownFields
type ConnectionSpec struct{}
