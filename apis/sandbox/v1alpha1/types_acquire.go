package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AnyClaim is the name that stands in a URL for "the claim that the body describes": sandboxclaims/-/acquire.
const AnyClaim = "-"

const (
	// MaxWaitSeconds is how long one acquire waits at most, and what an unset waitSeconds means: a longer create is cut by Kubernetes.
	MaxWaitSeconds = 25
	// WaitLeaseSlackSeconds is how long past its wait a waiter is still believed in.
	WaitLeaseSlackSeconds = 10
)

// +k8s:validation-gen=false
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxAcquire asks for the claim of a runtime, session and handle, creating it where there is none, and waits for it
// to be Bound. It is the body and the answer of sandboxclaims/{name}/acquire.
type SandboxAcquire struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be empty; a name or namespace in it must be the URL's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for.
	Spec SandboxAcquireSpec `json:"spec"`
	// status is the answer; ignored in a request.
	// +optional
	Status SandboxAcquireStatus `json:"status,omitempty"`
}

// SandboxAcquireSpec is what an acquire asks for.
type SandboxAcquireSpec struct {
	// agentRuntime is the name of the caller's AgentRuntime (at most 63 characters).
	AgentRuntime string `json:"agentRuntime"`
	// sessionID is the session that the sandbox is for: a label value of 1 to 63 characters.
	SessionID string `json:"sessionID"`
	// handle is <sandbox>/<instance>; the sandbox is one of the ToolRegistry's spec.sandboxes.
	Handle string `json:"handle"`
	// mustExist refuses with SandboxEnded rather than create a claim.
	// +optional
	MustExist bool `json:"mustExist,omitempty"`
	// declaration says what a new sandbox mounts. Not served yet: refused with NotYetSupported.
	// +optional
	Declaration *Declaration `json:"declaration,omitempty"`
	// requestedBy is recorded on a claim that this call creates. It is not a credential.
	// +optional
	RequestedBy *RequestedBy `json:"requestedBy,omitempty"`
	// waitSeconds is how long this call may wait. Absent or above 25: 25. 0: do not wait.
	// +optional
	WaitSeconds *int32 `json:"waitSeconds,omitempty"`
}

// Declaration says what a new sandbox mounts, authorised for a verified user.
type Declaration struct {
	// mounts are the declared mounts; at most one.
	// +optional
	// +listType=atomic
	Mounts []DeclaredMount `json:"mounts,omitempty"`
	// replacesSession names the session whose claim of the same handle this one replaces.
	// +optional
	ReplacesSession string `json:"replacesSession,omitempty"`
}

// DeclaredMount is a declared role and id.
type DeclaredMount struct {
	// role is the mount role.
	Role string `json:"role"`
	// id says which directory of a configured role.
	// +optional
	ID string `json:"id,omitempty"`
}

// SandboxAcquireStatus is an acquire's answer. Without addresses, ask again after retryAfterSeconds.
type SandboxAcquireStatus struct {
	// claimName is the claim's name.
	// +optional
	ClaimName string `json:"claimName,omitempty"`
	// claimUID tells this claim from a later one of the same name; pass it to touch and release.
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`
	// phase is the claim's phase when the call answered.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// addresses is, when Bound, one host:port per class port, keyed by the port's name.
	// +optional
	Addresses map[string]string `json:"addresses,omitempty"`
	// created is true when this call created the claim.
	Created bool `json:"created"`
	// reason is the reason of the claim's Ready condition.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is the message of the claim's Ready condition.
	// +optional
	Message string `json:"message,omitempty"`
	// retryAfterSeconds says, while unbound, when to ask again.
	// +optional
	RetryAfterSeconds int32 `json:"retryAfterSeconds,omitempty"`
}

// +k8s:validation-gen=false
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxTouch says that a sandbox is in use: it renews the claim's lastUsedAt and withdraws a scheduled release. It is
// the body and the answer of sandboxclaims/{name}/touch.
type SandboxTouch struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be empty; a name or namespace in it must be the URL's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for.
	// +optional
	Spec SandboxTouchSpec `json:"spec,omitempty"`
	// status is the answer; ignored in a request.
	// +optional
	Status SandboxTouchStatus `json:"status,omitempty"`
}

// SandboxTouchSpec is what a touch asks for.
type SandboxTouchSpec struct {
	// uid, when set, must be the claim's: a handle's next claim bears the same name.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// SandboxTouchStatus is a touch's answer.
type SandboxTouchStatus struct {
	// claimUID is the touched claim's UID.
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`
	// phase is the touched claim's phase.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// lastUsedAt is the claim's lastUsedAt, which is written at most once per half the idle timeout.
	// +optional
	LastUsedAt *metav1.MicroTime `json:"lastUsedAt,omitempty"`
}

// +k8s:validation-gen=false
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxRelease says that a conversation has ended. With a claim's name in the URL it releases that claim, with - the
// session's claims. It is the body and the answer of sandboxclaims/{name}/release.
type SandboxRelease struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be empty; a name or namespace in it must be the URL's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for.
	// +optional
	Spec SandboxReleaseSpec `json:"spec,omitempty"`
	// status is the answer; ignored in a request.
	// +optional
	Status SandboxReleaseStatus `json:"status,omitempty"`
}

// SandboxReleaseSpec is what a release asks for.
type SandboxReleaseSpec struct {
	// agentRuntime, with sessionID, says whose claims are released; only with - in the URL.
	// +optional
	AgentRuntime string `json:"agentRuntime,omitempty"`
	// sessionID, with agentRuntime, says whose claims are released; only with - in the URL.
	// +optional
	SessionID string `json:"sessionID,omitempty"`
	// uid, when set, must be the claim's; only with a claim's name in the URL.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// cancel withdraws a scheduled release instead: the session goes on.
	// +optional
	Cancel bool `json:"cancel,omitempty"`
}

// SandboxReleaseStatus is a release's answer.
type SandboxReleaseStatus struct {
	// claims are the claims that the call found. Empty is success: there was nothing to release.
	// +optional
	// +listType=map
	// +listMapKey=name
	Claims []ReleasedClaim `json:"claims,omitempty"`
}

// ReleasedClaim is what a release did to one claim.
type ReleasedClaim struct {
	// name is the claim's name.
	Name string `json:"name"`
	// uid is the claim's UID.
	UID types.UID `json:"uid"`
	// releaseAt is when the claim will be deleted; unset when it was deleted at once or its release was cancelled.
	// +optional
	ReleaseAt *metav1.MicroTime `json:"releaseAt,omitempty"`
	// deleted is true when the claim was deleted at once.
	// +optional
	Deleted bool `json:"deleted,omitempty"`
}
