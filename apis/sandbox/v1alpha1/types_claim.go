package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:method=Acquire,verb=create,subresource=acquire,input=github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1.SandboxAcquire,result=github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1.SandboxAcquire
// +genclient:method=Touch,verb=create,subresource=touch,input=github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1.SandboxTouch,result=github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1.SandboxTouch
// +genclient:method=Release,verb=create,subresource=release,input=github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1.SandboxRelease,result=github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1.SandboxRelease
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// SandboxClaim requests one sandbox: a network-isolated pod that exposes a tool surface to an agent. It works like a
// PersistentVolumeClaim: the claim asks, and a class defines what it gets. The controller turns it into a Deployment,
// a Service and a NetworkPolicy that the claim owns.
type SandboxClaim struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata. A claim's name is a DNS-1035 label of at most 55 characters.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for. It is immutable as a whole.
	Spec SandboxClaimSpec `json:"spec"`
	// status is what the server and its controller report.
	// +optional
	Status SandboxClaimStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxClaimList is a list of SandboxClaims.
type SandboxClaimList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the claims.
	Items []SandboxClaim `json:"items"`
}

// SandboxClaimSpec is what a claim asks for.
type SandboxClaimSpec struct {
	// agentRuntimeRef names the AgentRuntime, in the claim's namespace, that this sandbox belongs to: the NetworkPolicy
	// admits its pods, and its ceilings govern the claim. Exactly one of agentRuntimeRef and enrolment is set.
	// +optional
	AgentRuntimeRef *AgentRuntimeReference `json:"agentRuntimeRef,omitempty"`
	// classRef names the class that says what to build. There is no fallback between the two kinds of class.
	ClassRef ClassReference `json:"classRef"`
	// sessionID is the session that the sandbox is for: a label value of 1 to 63 characters.
	SessionID string `json:"sessionID"`
	// handle is the sandbox's identity within its runtime and session, <sandbox>/<instance>: two DNS-1123 labels, the
	// first of them a name in the ToolRegistry's spec.sandboxes.
	// +optional
	Handle string `json:"handle,omitempty"`
	// targetPath is the project that the sandbox's work is promoted into, relative to the workspace content volume (at
	// most 512 characters). Only acquire writes it.
	// +optional
	// +k8s:maxLength=512
	TargetPath string `json:"targetPath,omitempty"`
	// mounts says which workspace directory the sandbox's /workspace is: empty means the claim's own scratch directory.
	// At most one entry. Only acquire writes any role but scratch.
	// +optional
	// +listType=atomic
	// +k8s:maxItems=1
	Mounts []SandboxMount `json:"mounts,omitempty"`
	// mount is the deprecated single form of mounts. Set one of the two, not both.
	// +optional
	// +k8s:optional
	Mount *SandboxMount `json:"mount,omitempty"`
	// requestedBy records who the runtime believed it was acting for. It is not a credential; nothing gates on it.
	// +optional
	RequestedBy *RequestedBy `json:"requestedBy,omitempty"`
	// declaredBy is the verified, pseudonymised user whose declaration was authorised (at most 256 characters). Only acquire writes it.
	// +optional
	// +k8s:maxLength=256
	DeclaredBy string `json:"declaredBy,omitempty"`
	// maxInstances is how many instances of this claim's sandbox its session may hold, copied from the ToolRegistry
	// (at least 1). Unset means not held to an instance limit. Only acquire writes it.
	// +optional
	// +k8s:minimum=1
	MaxInstances *int32 `json:"maxInstances,omitempty"`
	// connections are the Connections bound to the class's roles (at most 16). Only acquire writes them.
	// +optional
	// +listType=map
	// +listMapKey=role
	// +k8s:maxItems=16
	// +k8s:listType=map
	// +k8s:listMapKey=role
	Connections []ConnectionBinding `json:"connections,omitempty"`
	// enrolment makes the claim an interactive sign-in for one Connection and user. Only the enrolment endpoint writes it.
	// +optional
	// +k8s:optional
	Enrolment *Enrolment `json:"enrolment,omitempty"`
}

// AgentRuntimeReference names an AgentRuntime in the claim's own namespace.
type AgentRuntimeReference struct {
	// name is the AgentRuntime's name: at most 63 characters, because it becomes a label.
	Name string `json:"name"`
}

// ClassKind says which of the two class kinds a reference means.
// +k8s:enum
type ClassKind string

const (
	// SandboxClassKind is looked up in the claim's own namespace only.
	SandboxClassKind ClassKind = "SandboxClass"
	// ClusterSandboxClassKind is looked up cluster-wide only.
	ClusterSandboxClassKind ClassKind = "ClusterSandboxClass"
)

// ClassReference names a class. There is no fallback between the kinds.
type ClassReference struct {
	// name is the class's name.
	Name string `json:"name"`
	// kind is SandboxClass (the default) or ClusterSandboxClass.
	// +optional
	Kind ClassKind `json:"kind,omitempty"`
}

const (
	// MountRoleScratch is the claim's own directory: the default, needing no authorisation.
	MountRoleScratch = "scratch"
	// MountRoleSession is the directory that every claim of the same session and handle shares.
	MountRoleSession = "session"
)

// SandboxMount binds a workspace directory.
type SandboxMount struct {
	// role is scratch (the default), session, or a configured mount role (a DNS label).
	// +optional
	Role string `json:"role,omitempty"`
	// id says which directory of a configured role (at most 253 characters); never with scratch or session.
	// +optional
	// +k8s:maxLength=253
	ID string `json:"id,omitempty"`
	// path is the directory, relative to the workspace's content, that role and id resolved to (at most 1024 characters).
	// +optional
	// +k8s:maxLength=1024
	Path string `json:"path,omitempty"`
	// mustExist fails the bind with MountNotFound when the directory is not there.
	// +optional
	MustExist bool `json:"mustExist,omitempty"`
}

// RequestedBy records on whose behalf a sandbox was asked for.
type RequestedBy struct {
	// subject is the pseudonymised end user (at most 253 characters).
	// +optional
	Subject string `json:"subject,omitempty"`
	// agent is the agent that asked (at most 253 characters).
	// +optional
	Agent string `json:"agent,omitempty"`
}

// ConnectionBinding binds a Connection to a role that the class offers.
type ConnectionBinding struct {
	// role is the class's role (at most 253 characters).
	// +k8s:maxLength=253
	Role string `json:"role"`
	// connection is the Connection's name (at most 253 characters).
	// +k8s:maxLength=253
	Connection string `json:"connection"`
}

// Enrolment is an interactive sign-in for one Connection.
type Enrolment struct {
	// connection is the browserSession Connection to sign in to (at most 253 characters).
	// +k8s:maxLength=253
	Connection string `json:"connection"`
	// subject is the user of a perUser Connection (at most 256 characters); empty for a shared one.
	// +optional
	// +k8s:maxLength=256
	Subject string `json:"subject,omitempty"`
	// maxDuration is how long the sign-in may take once its pod runs: 1m to 20m, by default 15m.
	// +optional
	// +k8s:opaqueType
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`
}

// Phase is where a claim stands in its life.
// +k8s:enum
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
	// observedGeneration is the generation that the controller last acted on.
	// +optional
	// +k8s:minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Pending, Queued, Bound, Completed or Failed; empty until the controller has first seen the claim.
	// +optional
	// +k8s:optional
	Phase Phase `json:"phase,omitempty"`
	// addresses is, while Bound, one host:port per class port, keyed by the port's name.
	// +optional
	Addresses map[string]string `json:"addresses,omitempty"`
	// sandboxName is the name of the Deployment, Service and NetworkPolicy.
	// +optional
	SandboxName string `json:"sandboxName,omitempty"`
	// class is the class as it stood when the claim was admitted. Everything is built from it, so that a sandbox does
	// not change under its agent.
	// +optional
	// +k8s:opaqueType
	Class *SandboxClassSpec `json:"class,omitempty"`
	// deployment is the sandbox's Deployment as it stood when the claim was last found Bound. While it is that one, and
	// nobody has changed it, it is left as it is, also by a newer server that would build another.
	// +optional
	// +k8s:optional
	Deployment *DeploymentRecord `json:"deployment,omitempty"`
	// queuedAt orders claims for admission, oldest first, then by UID. Set at create.
	// +optional
	// +k8s:opaqueType
	QueuedAt *metav1.MicroTime `json:"queuedAt,omitempty"`
	// boundAt is when the claim first became Bound; unset if it never was.
	// +optional
	// +k8s:opaqueType
	BoundAt *metav1.MicroTime `json:"boundAt,omitempty"`
	// lastUsedAt is when the claim was last touched; the reaper reads it. Unset means not measured, and never reaped.
	// +optional
	// +k8s:opaqueType
	LastUsedAt *metav1.MicroTime `json:"lastUsedAt,omitempty"`
	// releaseAt is when the claim is deleted because its conversation ended; unset while the conversation lives.
	// +optional
	// +k8s:opaqueType
	ReleaseAt *metav1.MicroTime `json:"releaseAt,omitempty"`
	// wait is the lease of whoever waits on the claim. Unset means that it is never withdrawn.
	// +optional
	// +k8s:optional
	Wait *WaitLease `json:"wait,omitempty"`
	// replaces is the UID of the failed claim that this one was created in place of.
	// +optional
	Replaces types.UID `json:"replaces,omitempty"`
	// viewAddress is an enrolment's live view, host:port, while it is Bound.
	// +optional
	ViewAddress string `json:"viewAddress,omitempty"`
	// expiresAt is when an enrolment ends unsaved.
	// +optional
	// +k8s:opaqueType
	ExpiresAt *metav1.MicroTime `json:"expiresAt,omitempty"`
	// volumeSubPath is where the claim's /workspace lives on the workspace volume.
	// +optional
	VolumeSubPath string `json:"volumeSubPath,omitempty"`
	// lastSyncedVersion is the project version that this claim's work was last promoted to.
	// +optional
	LastSyncedVersion string `json:"lastSyncedVersion,omitempty"`
	// lastSyncedAt is when that promotion happened.
	// +optional
	// +k8s:opaqueType
	LastSyncedAt *metav1.MicroTime `json:"lastSyncedAt,omitempty"`
	// syncError is why the most recent promotion failed, if it did.
	// +optional
	SyncError string `json:"syncError,omitempty"`
	// conditions are the detail behind the phase: Ready, and ProvenanceVerified on a claim that acquire wrote.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +k8s:eachVal=+k8s:opaqueType
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// DeploymentRecord names one state of a Deployment.
type DeploymentRecord struct {
	// uid is the Deployment's.
	UID types.UID `json:"uid"`
	// generation is the Deployment's: every change of its spec raises it.
	// +k8s:minimum=0
	Generation int64 `json:"generation"`
}

// WaitLease says that somebody waits on a claim, and until when to believe it.
type WaitLease struct {
	// renewTime is when the latest wait began.
	// +k8s:opaqueType
	RenewTime metav1.MicroTime `json:"renewTime"`
	// durationSeconds is how long after renewTime the wait is believed; a later wait never shortens it.
	// +k8s:minimum=0
	DurationSeconds int32 `json:"durationSeconds"`
}
