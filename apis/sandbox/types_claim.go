package sandbox

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClaim requests one sandbox: a network-isolated pod that exposes a tool surface to an agent. It works like a
// PersistentVolumeClaim: the claim asks, and a class defines what it gets. The controller turns it into a Deployment,
// a Service and a NetworkPolicy that the claim owns.
type SandboxClaim struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   SandboxClaimSpec
	Status SandboxClaimStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClaimList is a list of SandboxClaims.
type SandboxClaimList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []SandboxClaim
}

// SandboxClaimSpec is what a claim asks for.
type SandboxClaimSpec struct {
	AgentRuntimeRef *AgentRuntimeReference
	ClassRef        ClassReference
	SessionID       string
	Handle          string
	TargetPath      string
	Mounts          []SandboxMount
	Mount           *SandboxMount
	RequestedBy     *RequestedBy
	DeclaredBy      string
	MaxInstances    *int32
	Connections     []ConnectionBinding
	Enrolment       *Enrolment
}

// AgentRuntimeReference names an AgentRuntime in the claim's own namespace.
type AgentRuntimeReference struct {
	Name string
}

// ClassKind says which of the two class kinds a reference means.
type ClassKind string

const (
	// SandboxClassKind is looked up in the claim's own namespace only.
	SandboxClassKind ClassKind = "SandboxClass"
	// ClusterSandboxClassKind is looked up cluster-wide only.
	ClusterSandboxClassKind ClassKind = "ClusterSandboxClass"
)

// ClassReference names a class. There is no fallback between the kinds.
type ClassReference struct {
	Name string
	Kind ClassKind
}

const (
	// MountRoleScratch is the claim's own directory: the default, needing no authorisation.
	MountRoleScratch = "scratch"
	// MountRoleSession is the directory that every claim of the same session and handle shares.
	MountRoleSession = "session"
)

// SandboxMount binds a workspace directory.
type SandboxMount struct {
	Role      string
	ID        string
	Path      string
	MustExist bool
}

// RequestedBy records on whose behalf a sandbox was asked for.
type RequestedBy struct {
	Subject string
	Agent   string
}

// ConnectionBinding binds a Connection to a role that the class offers.
type ConnectionBinding struct {
	Role       string
	Connection string
}

// Enrolment is an interactive sign-in for one Connection.
type Enrolment struct {
	Connection  string
	Subject     string
	MaxDuration *metav1.Duration
}

// Phase is where a claim stands in its life.
type Phase string

const (
	// PhaseQueued means that a limit is full; the Ready condition's reason says which.
	PhaseQueued Phase = "Queued"
	// PhasePending means admitted: the sandbox is being created, or its pod has no ready replica yet.
	PhasePending Phase = "Pending"
	// PhaseBound means that status.addresses can be dialled.
	PhaseBound Phase = "Bound"
	// PhaseCompleted means that an enrolment stored its session.
	PhaseCompleted Phase = "Completed"
	// PhaseFailed is terminal: the Ready condition says why.
	PhaseFailed Phase = "Failed"
)

// SandboxClaimStatus is what the server and its controller report of a claim.
type SandboxClaimStatus struct {
	ObservedGeneration int64
	Phase              Phase
	Addresses          map[string]string
	SandboxName        string
	Class              *SandboxClassSpec
	Deployment         *DeploymentRecord
	QueuedAt           *metav1.MicroTime
	BoundAt            *metav1.MicroTime
	LastUsedAt         *metav1.MicroTime
	ReleaseAt          *metav1.MicroTime
	Wait               *WaitLease
	Replaces           types.UID
	ViewAddress        string
	ExpiresAt          *metav1.MicroTime
	VolumeSubPath      string
	LastSyncedVersion  string
	LastSyncedAt       *metav1.MicroTime
	SyncError          string
	Conditions         []metav1.Condition
}

// DeploymentRecord names one state of a Deployment.
type DeploymentRecord struct {
	UID        types.UID
	Generation int64
}

// WaitLease says that somebody waits on a claim, and until when to believe it.
type WaitLease struct {
	RenewTime       metav1.MicroTime
	DurationSeconds int32
}
