package sandbox

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

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxAcquire asks for the claim of a runtime, session and handle, creating it where there is none, and waits for it
// to be Bound. It is the body and the answer of sandboxclaims/{name}/acquire.
type SandboxAcquire struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   SandboxAcquireSpec
	Status SandboxAcquireStatus
}

// SandboxAcquireSpec is what an acquire asks for.
type SandboxAcquireSpec struct {
	AgentRuntime string
	SessionID    string
	Handle       string
	MustExist    bool
	Declaration  *Declaration
	RequestedBy  *RequestedBy
	WaitSeconds  *int32
}

// Declaration says what a new sandbox mounts, authorised for a verified user.
type Declaration struct {
	Mounts          []DeclaredMount
	ReplacesSession string
}

// DeclaredMount is a declared role and id.
type DeclaredMount struct {
	Role string
	ID   string
}

// SandboxAcquireStatus is an acquire's answer. Without addresses, ask again after retryAfterSeconds.
type SandboxAcquireStatus struct {
	ClaimName         string
	ClaimUID          types.UID
	Phase             Phase
	Addresses         map[string]string
	Created           bool
	Reason            string
	Message           string
	RetryAfterSeconds int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxTouch says that a sandbox is in use: it renews the claim's lastUsedAt and withdraws a scheduled release. It is
// the body and the answer of sandboxclaims/{name}/touch.
type SandboxTouch struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   SandboxTouchSpec
	Status SandboxTouchStatus
}

// SandboxTouchSpec is what a touch asks for.
type SandboxTouchSpec struct {
	UID types.UID
}

// SandboxTouchStatus is a touch's answer.
type SandboxTouchStatus struct {
	ClaimUID   types.UID
	Phase      Phase
	LastUsedAt *metav1.MicroTime
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SandboxRelease says that a conversation has ended. With a claim's name in the URL it releases that claim, with - the
// session's claims. It is the body and the answer of sandboxclaims/{name}/release.
type SandboxRelease struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   SandboxReleaseSpec
	Status SandboxReleaseStatus
}

// SandboxReleaseSpec is what a release asks for.
type SandboxReleaseSpec struct {
	AgentRuntime string
	SessionID    string
	UID          types.UID
	Cancel       bool
}

// SandboxReleaseStatus is a release's answer.
type SandboxReleaseStatus struct {
	Claims []ReleasedClaim
}

// ReleasedClaim is what a release did to one claim.
type ReleasedClaim struct {
	Name      string
	UID       types.UID
	ReleaseAt *metav1.MicroTime
	Deleted   bool
}
