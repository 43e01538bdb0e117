package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClass says how to run a sandbox's image. It is namespaced, so that a tenant can define its own.
type SandboxClass struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the class.
	Spec SandboxClassSpec `json:"spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClassList is a list of SandboxClasses.
type SandboxClassList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the classes.
	Items []SandboxClass `json:"items"`
}

// +genclient
// +genclient:nonNamespaced
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSandboxClass is the platform's SandboxClass: one schema, cluster-wide.
type ClusterSandboxClass struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the class.
	Spec SandboxClassSpec `json:"spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSandboxClassList is a list of ClusterSandboxClasses.
type ClusterSandboxClassList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the classes.
	Items []ClusterSandboxClass `json:"items"`
}

// SandboxClassSpec says how to run an image, and nothing about the image's tools or the protocol on its ports.
type SandboxClassSpec struct {
	// image is the container image (at most 1024 characters).
	// +k8s:maxLength=1024
	Image string `json:"image"`
	// imagePullPolicy is Always, IfNotPresent (the default) or Never.
	// +optional
	// +k8s:opaqueType
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// args are the image's arguments (at most 64, each at most 4096 characters).
	// +optional
	// +listType=atomic
	// +k8s:maxItems=64
	// +k8s:eachVal=+k8s:maxLength=4096
	Args []string `json:"args,omitempty"`
	// env are literal environment variables (at most 64, each value at most 8192 characters). The proxy variables are refused.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:maxItems=64
	// +k8s:listType=map
	// +k8s:listMapKey=name
	Env []EnvVar `json:"env,omitempty"`
	// ports are what a ToolRegistry handler addresses by name (1 to 8). Immutable.
	// +listType=map
	// +listMapKey=name
	// +k8s:maxItems=8
	// +k8s:listType=map
	// +k8s:listMapKey=name
	Ports []ClassPort `json:"ports"`
	// readiness says how a sandbox is found ready. Unset: a TCP dial of the first port.
	// +optional
	// +k8s:optional
	Readiness *Readiness `json:"readiness,omitempty"`
	// filesystem says what the sandbox may write to.
	// +optional
	// +k8s:optional
	Filesystem *Filesystem `json:"filesystem,omitempty"`
	// resources are the container's. limits must set cpu and memory unless the class is trusted.
	// +optional
	// +k8s:opaqueType
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// trusted makes resources.limits optional and changes nothing else: the class runs first-party code.
	// +optional
	Trusted bool `json:"trusted,omitempty"`
	// runtimeClassName names a RuntimeClass; unset means the cluster's default. It is not checked to exist.
	// +optional
	// +k8s:format=k8s-long-name
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`
	// nodeSelector restricts the nodes that a sandbox may run on (at most 64 labels).
	// +optional
	// +k8s:maxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations lets a sandbox run on tainted nodes (at most 64).
	// +optional
	// +listType=atomic
	// +k8s:maxItems=64
	// +k8s:eachVal=+k8s:opaqueType
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// egress is what a sandbox may reach. Unset means nothing, DNS included.
	// +optional
	// +k8s:optional
	Egress *Egress `json:"egress,omitempty"`
	// mounts are the roles that a claim may mount at the workspace (at most 64). Unset offers a scratch mount only.
	// +optional
	// +listType=map
	// +listMapKey=role
	// +k8s:maxItems=64
	// +k8s:listType=map
	// +k8s:listMapKey=role
	Mounts []ClassMount `json:"mounts,omitempty"`
	// connections are the roles that a sandbox offers for Connections (at most 16).
	// +optional
	// +listType=map
	// +listMapKey=role
	// +k8s:maxItems=16
	// +k8s:listType=map
	// +k8s:listMapKey=role
	Connections []ClassConnection `json:"connections,omitempty"`
	// view names the port that serves the sandbox's live view.
	// +optional
	View *View `json:"view,omitempty"`
	// enrolment makes the class usable for an enrolment; needs view.
	// +optional
	// +k8s:optional
	Enrolment *ClassEnrolment `json:"enrolment,omitempty"`
}

// EnvVar is a literal environment variable: a class serves many namespaces and cannot refer to a Secret in any of them.
type EnvVar struct {
	// name is the variable's name.
	// +k8s:maxLength=253
	Name string `json:"name"`
	// value is its literal value.
	// +optional
	// +k8s:maxLength=8192
	Value string `json:"value,omitempty"`
}

// ClassPort is a port that the sandbox serves.
type ClassPort struct {
	// name is what status.addresses is keyed by: an IANA service name of at most 15 characters.
	Name string `json:"name"`
	// port is the TCP port that the image listens on.
	// +k8s:minimum=1
	// +k8s:maximum=65535
	Port int32 `json:"port"`
}

// Readiness says how a sandbox is found ready: probed every second from pod start, ten consecutive failures take it out of its Service.
type Readiness struct {
	// port is the name of the port that is probed. Unset: the first.
	// +optional
	Port string `json:"port,omitempty"`
	// httpGet probes by a GET in place of a TCP dial.
	// +optional
	// +k8s:optional
	HTTPGet *HTTPGet `json:"httpGet,omitempty"`
}

// HTTPGet is a probe by GET.
type HTTPGet struct {
	// path is the path that is asked for: it begins with / (at most 1024 characters).
	// +k8s:maxLength=1024
	Path string `json:"path"`
}

// Filesystem says what a sandbox may write to.
type Filesystem struct {
	// workspace mounts the claim's directory of the workspace volume. Its presence is immutable.
	// +optional
	// +k8s:optional
	Workspace *WorkspaceMount `json:"workspace,omitempty"`
	// readOnlyRoot makes the image's own filesystem read-only.
	// +optional
	ReadOnlyRoot bool `json:"readOnlyRoot,omitempty"`
	// scratch are emptyDir volumes (at most 8).
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:maxItems=8
	// +k8s:listType=map
	// +k8s:listMapKey=name
	Scratch []ScratchVolume `json:"scratch,omitempty"`
}

// WorkspaceMount says where the workspace directory appears.
type WorkspaceMount struct {
	// mountPath is an absolute path in the container (at most 1024 characters).
	// +k8s:maxLength=1024
	MountPath string `json:"mountPath"`
}

// ScratchMedium says what holds a scratch volume.
// +k8s:enum
type ScratchMedium string

const (
	// ScratchMediumDisk keeps a scratch volume on the node's disk.
	ScratchMediumDisk ScratchMedium = "Disk"
	// ScratchMediumMemory keeps a scratch volume in memory, counted against the container's memory limit.
	ScratchMediumMemory ScratchMedium = "Memory"
)

// ReservedScratchName names the volume that every sandbox has at /tmp unless its class mounts one there; no class may use it.
const ReservedScratchName = "sandbox-tmp"

// ScratchVolume is an emptyDir with a bound.
type ScratchVolume struct {
	// name is the volume's name, a DNS label.
	// +k8s:format=k8s-short-name
	Name string `json:"name"`
	// mountPath is an absolute path in the container (at most 1024 characters).
	// +k8s:maxLength=1024
	MountPath string `json:"mountPath"`
	// sizeLimit bounds the volume; positive.
	SizeLimit resource.Quantity `json:"sizeLimit"`
	// medium is Disk (the default) or Memory.
	// +optional
	Medium ScratchMedium `json:"medium,omitempty"`
}

// Egress is what a sandbox may reach.
type Egress struct {
	// allowedServices are Services whose pods and ports the sandbox may reach (at most 64).
	// +optional
	// +listType=atomic
	// +k8s:maxItems=64
	AllowedServices []AllowedService `json:"allowedServices,omitempty"`
	// dns allows the cluster's resolver. It is off by default because a resolver is a channel out.
	// +optional
	DNS bool `json:"dns,omitempty"`
}

// AllowedService names a Service object.
type AllowedService struct {
	// name is the Service's name.
	// +k8s:format=k8s-short-name
	Name string `json:"name"`
	// namespace is the Service's namespace; unset means the claim's.
	// +optional
	// +k8s:optional
	// +k8s:format=k8s-short-name
	Namespace string `json:"namespace,omitempty"`
	// ports are the Service's ports that are allowed (at most 64); unset means all of them.
	// +optional
	// +listType=atomic
	// +k8s:maxItems=64
	// +k8s:eachVal=+k8s:minimum=1
	// +k8s:eachVal=+k8s:maximum=65535
	Ports []int32 `json:"ports,omitempty"`
}

// MountAccess says whether a mount may be written.
// +k8s:enum
type MountAccess string

const (
	// MountReadWrite lets the sandbox write its mount.
	MountReadWrite MountAccess = "ReadWrite"
	// MountReadOnly does not.
	MountReadOnly MountAccess = "ReadOnly"
)

// ClassMount is a mount role that the class accepts.
type ClassMount struct {
	// role is scratch or a configured mount role, a DNS label other than session.
	// +k8s:format=k8s-short-name
	Role string `json:"role"`
	// access is ReadWrite (the default) or ReadOnly.
	// +optional
	Access MountAccess `json:"access,omitempty"`
}

// ClassConnection is a role that the class offers for a Connection.
type ClassConnection struct {
	// role is an opaque name (at most 253 characters).
	// +k8s:maxLength=253
	Role string `json:"role"`
	// required refuses a sandbox with the role unbound.
	// +optional
	Required bool `json:"required,omitempty"`
	// session says how a bound browserSession reaches the image.
	// +optional
	// +k8s:optional
	Session *ConnectionSession `json:"session,omitempty"`
}

// ConnectionSession says how a stored browser session reaches the image.
type ConnectionSession struct {
	// stateFile is where the session is written before the sandbox starts, under one of the class's scratch volumes.
	// +optional
	// +k8s:maxLength=1024
	StateFile string `json:"stateFile,omitempty"`
	// args are appended to the class's args when a session is bound (at most 32, each at most 4096 characters). Each is a
	// Go template over .Connection, .SignedOutPrefixes and .StateFile.
	// +optional
	// +listType=atomic
	// +k8s:maxItems=32
	// +k8s:eachVal=+k8s:maxLength=4096
	Args []string `json:"args,omitempty"`
}

// View is a sandbox's live view.
type View struct {
	// port is the name of one of the class's ports.
	Port string `json:"port"`
}

// ClassEnrolment makes a class usable for enrolments.
type ClassEnrolment struct {
	// args are appended to args for each enrolment (1 to 32, each at most 4096 characters). Each is a Go template over
	// .Connection, .StartURL, .StateDomains, .MaxDuration, .StateEndpoint and .TokenFile.
	// +listType=atomic
	// +k8s:minItems=1
	// +k8s:maxItems=32
	// +k8s:eachVal=+k8s:maxLength=4096
	Args []string `json:"args"`
}
