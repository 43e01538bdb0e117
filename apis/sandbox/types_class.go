package sandbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClass says how to run a sandbox's image. It is namespaced, so that a tenant can define its own.
type SandboxClass struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec SandboxClassSpec
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClassList is a list of SandboxClasses.
type SandboxClassList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []SandboxClass
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSandboxClass is the platform's SandboxClass: one schema, cluster-wide.
type ClusterSandboxClass struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec SandboxClassSpec
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSandboxClassList is a list of ClusterSandboxClasses.
type ClusterSandboxClassList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []ClusterSandboxClass
}

// SandboxClassSpec says how to run an image, and nothing about the image's tools or the protocol on its ports.
type SandboxClassSpec struct {
	Image            string
	ImagePullPolicy  corev1.PullPolicy
	Args             []string
	Env              []EnvVar
	Ports            []ClassPort
	Readiness        *Readiness
	Filesystem       *Filesystem
	Resources        corev1.ResourceRequirements
	Trusted          bool
	RuntimeClassName *string
	NodeSelector     map[string]string
	Tolerations      []corev1.Toleration
	Egress           *Egress
	Mounts           []ClassMount
	Connections      []ClassConnection
	View             *View
	Enrolment        *ClassEnrolment
}

// EnvVar is a literal environment variable: a class serves many namespaces and cannot refer to a Secret in any of them.
type EnvVar struct {
	Name  string
	Value string
}

// ClassPort is a port that the sandbox serves.
type ClassPort struct {
	Name string
	Port int32
}

// Readiness says how a sandbox is found ready: probed every second from pod start, ten consecutive failures take it out of its Service.
type Readiness struct {
	Port    string
	HTTPGet *HTTPGet
}

// HTTPGet is a probe by GET.
type HTTPGet struct {
	Path string
}

// Filesystem says what a sandbox may write to.
type Filesystem struct {
	Workspace    *WorkspaceMount
	ReadOnlyRoot bool
	Scratch      []ScratchVolume
}

// WorkspaceMount says where the workspace directory appears.
type WorkspaceMount struct {
	MountPath string
}

// ScratchMedium says what holds a scratch volume.
type ScratchMedium string

const (
	// ScratchMediumDisk keeps a scratch volume on the node's disk.
	ScratchMediumDisk ScratchMedium = "Disk"
	// ScratchMediumMemory keeps a scratch volume in memory, counted against the container's memory limit.
	ScratchMediumMemory ScratchMedium = "Memory"
)

// ScratchVolume is an emptyDir with a bound.
type ScratchVolume struct {
	Name      string
	MountPath string
	SizeLimit resource.Quantity
	Medium    ScratchMedium
}

// Egress is what a sandbox may reach.
type Egress struct {
	AllowedServices []AllowedService
	DNS             bool
}

// AllowedService names a Service object.
type AllowedService struct {
	Name      string
	Namespace string
	Ports     []int32
}

// MountAccess says whether a mount may be written.
type MountAccess string

const (
	// MountReadWrite lets the sandbox write its mount.
	MountReadWrite MountAccess = "ReadWrite"
	// MountReadOnly does not.
	MountReadOnly MountAccess = "ReadOnly"
)

// ClassMount is a mount role that the class accepts.
type ClassMount struct {
	Role   string
	Access MountAccess
}

// ClassConnection is a role that the class offers for a Connection.
type ClassConnection struct {
	Role     string
	Required bool
	Session  *ConnectionSession
}

// ConnectionSession says how a stored browser session reaches the image.
type ConnectionSession struct {
	StateFile string
	Args      []string
}

// View is a sandbox's live view.
type View struct {
	Port string
}

// ClassEnrolment makes a class usable for enrolments.
type ClassEnrolment struct {
	Args []string
}
