package v1alpha1

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels that claims and the objects built from them carry. They are for people and policies; nothing is looked up by
// them, because labels stay editable.
const (
	// LabelAgentRuntime carries spec.agentRuntimeRef.name.
	LabelAgentRuntime = "omnia.altairalabs.ai/sandbox-agent-runtime"
	// LabelSession carries spec.sessionID.
	LabelSession = "omnia.altairalabs.ai/sandbox-session"
	// LabelClaim carries the claim's name on its objects.
	LabelClaim = "omnia.altairalabs.ai/sandbox-claim"
	// LabelClaimUID carries the claim's UID on its pods: the sandbox's own identity, which Deployment, Service and NetworkPolicy select by.
	LabelClaimUID = "omnia.altairalabs.ai/sandbox-claim-uid"
)

// Finalizers of a SandboxClaim, which the server sets when a claim that has a sandbox is deleted and whoever deletes it says what
// becomes of the sandbox before the claim goes. The controller carries that out and removes them. A deletion by
// propagationPolicy Background, or by none, sets none: the sandbox goes after the claim.
const (
	// FinalizerForeground holds a claim until nothing of its sandbox is left (propagationPolicy Foreground).
	FinalizerForeground = "sandbox.omnia/foreground"
	// FinalizerOrphan holds a claim until its sandbox is nobody's (propagationPolicy Orphan): it runs on, and is deleted by hand.
	FinalizerOrphan = "sandbox.omnia/orphan"
)

// Annotations that the server writes. Like labels they stay editable, so nothing is concluded from them.
const (
	// AnnotationTraceparent is on a claim that an acquire created whose request is traced: the acquire's span, as a W3C traceparent.
	// The controllers' spans join it until the claim is first Bound. Written with the claim and never afterwards; what has another
	// form, or stands on a claim that acquire did not write, is ignored.
	AnnotationTraceparent = "sandbox.omnia/traceparent"
)

// Condition types of a SandboxClaim.
const (
	// ConditionReady is true while the claim is Bound; otherwise its reason and message say what is waited for, or why it failed.
	ConditionReady = "Ready"
	// ConditionProvenanceVerified is true on a claim that acquire wrote. It comes into being with the object and is never set afterwards.
	ConditionProvenanceVerified = "ProvenanceVerified"
	// ConditionEgressResolved is there where the class has an egress that asks for something: true while all of it is allowed,
	// false while a part cannot be told and so is not allowed.
	ConditionEgressResolved = "EgressResolved"
	// ConditionIsolationWeakened is there, and true, while another NetworkPolicy of the namespace allows the sandbox more than its
	// own does. A bad state.
	ConditionIsolationWeakened = "IsolationWeakened"
)

// Reasons of the EgressResolved condition.
const (
	ReasonEgressAllowed         = "EgressAllowed"         // all that the class's egress asks for is allowed.
	ReasonServiceNotFound       = "ServiceNotFound"       // an allowed Service does not exist.
	ReasonServiceIsExternalName = "ServiceIsExternalName" // an allowed Service leads to a name, and so to no pods.
	ReasonServiceHasNoSelector  = "ServiceHasNoSelector"  // an allowed Service does not say which pods it leads to.
	ReasonServicePortNotFound   = "ServicePortNotFound"   // an allowed Service has no such port, or none at all.
	ReasonNoDNSPeers            = "NoDNSPeers"            // the class allows DNS, and the server was told of no resolver.
)

// Reasons of the IsolationWeakened condition.
const (
	// ReasonPolicyAllowsMore says that another NetworkPolicy allows more; the message names it.
	ReasonPolicyAllowsMore = "PolicyAllowsMore"
)

// Reasons of the ProvenanceVerified condition.
const (
	// ReasonWrittenByOperator says that acquire wrote the claim.
	ReasonWrittenByOperator = "WrittenByOperator"
)

// Reasons of the Ready condition while a claim waits or is Bound.
const (
	ReasonSandboxReady     = "SandboxReady"         // Bound: the addresses can be dialled.
	ReasonCreating         = "Creating"             // the objects are being created.
	ReasonPodNotReady      = "PodNotReady"          // the pod has not reported ready yet.
	ReasonClearingPrevious = "ClearingPrevious"     // objects of an earlier claim of this name are being deleted.
	ReasonNameTaken        = "NameTaken"            // an object of the sandbox's name belongs to somebody else.
	ReasonUnschedulable    = "Unschedulable"        // the scheduler cannot place the pod; the message is its own.
	ReasonImagePullBackOff = "ImagePullBackOff"     // the image cannot be pulled.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"     // the container keeps ending.
	ReasonPodRefused       = "PodRefused"           // quota, a LimitRange, Pod Security, a RuntimeClass, a policy or a webhook refuses the pod, or what it needs.
	ReasonCeilingReached   = "CeilingReached"       // Queued: the runtime's maxConcurrent is full.
	ReasonSessionLimit     = "SessionLimitReached"  // Queued: the session's maxPerSession is full.
	ReasonInstanceLimit    = "InstanceLimitReached" // Queued: the claim's maxInstances is full.
)

// Reasons of the Ready condition of a Failed claim.
const (
	ReasonClassNotFound         = "ClassNotFound"         // no such class.
	ReasonAgentRuntimeNotFound  = "AgentRuntimeNotFound"  // no such AgentRuntime.
	ReasonSandboxesDisabled     = "SandboxesDisabled"     // the runtime's spec.sandbox.enabled is not true.
	ReasonSandboxRejected       = "SandboxRejected"       // the API server rejected the sandbox's objects.
	ReasonInvalidImageName      = "InvalidImageName"      // the class's image is not an image reference.
	ReasonErrImageNeverPull     = "ErrImageNeverPull"     // the image is not on the node and may not be pulled.
	ReasonWorkspaceNotSupported = "WorkspaceNotSupported" // a mount or targetPath, and the class has no filesystem.workspace.
	ReasonNoWorkspaceStorage    = "NoWorkspaceStorage"    // the class has a filesystem.workspace, and there is no storage for it.
	ReasonMountNotGranted       = "MountNotGranted"       // a configured mount on a claim that acquire did not write.
	ReasonConnectionsNotGranted = "ConnectionsNotGranted" // Connections on a claim that acquire did not write.
	ReasonTargetPathNotGranted  = "TargetPathNotGranted"  // a targetPath on a claim that acquire did not write.
	ReasonEnrolmentNotGranted   = "EnrolmentNotGranted"   // an enrolment that the enrolment endpoint did not write.
	ReasonSandboxNeverReady     = "SandboxNeverReady"     // Pending for too long.
	ReasonQueueWaitExceeded     = "QueueWaitExceeded"     // Queued for too long.
)

// Reasons of a refused acquire, touch or release: the metav1.Status's reason, in the specification's own words.
const (
	StatusReasonSandboxesDisabled   metav1.StatusReason = "SandboxesDisabled"   // 403: the runtime's spec.sandbox.enabled is not true.
	StatusReasonMaxPerSession       metav1.StatusReason = "MaxPerSession"       // 403: the session holds the runtime's maxPerSession.
	StatusReasonMaxInstances        metav1.StatusReason = "MaxInstances"        // 403: the session holds the sandbox's maxInstances.
	StatusReasonUnknownSandbox      metav1.StatusReason = "UnknownSandbox"      // 422: the handle names a sandbox that the ToolRegistry does not declare.
	StatusReasonSandboxEnded        metav1.StatusReason = "SandboxEnded"        // 410: mustExist, and there is no claim.
	StatusReasonDeclarationMismatch metav1.StatusReason = "DeclarationMismatch" // 409: the handle's claim mounts something else.
	StatusReasonSandboxFailed       metav1.StatusReason = "SandboxFailed"       // 409: the claim failed; the message is its Ready message.
	StatusReasonNotYetSupported     metav1.StatusReason = "NotYetSupported"     // 422: a part of the specification that this server does not serve yet; names the field.
)

// IsSandboxesDisabled says whether err refuses because the runtime forbids sandboxes.
func IsSandboxesDisabled(err error) bool { return is(err, StatusReasonSandboxesDisabled) }

// IsMaxPerSession says whether err refuses because the session holds as many claims as its runtime allows.
func IsMaxPerSession(err error) bool { return is(err, StatusReasonMaxPerSession) }

// IsMaxInstances says whether err refuses because the session holds as many instances of the sandbox as it may.
func IsMaxInstances(err error) bool { return is(err, StatusReasonMaxInstances) }

// IsUnknownSandbox says whether err refuses because no ToolRegistry declares the handle's sandbox.
func IsUnknownSandbox(err error) bool { return is(err, StatusReasonUnknownSandbox) }

// IsSandboxEnded says whether err refuses because the handle's sandbox has ended.
func IsSandboxEnded(err error) bool { return is(err, StatusReasonSandboxEnded) }

// IsSandboxFailed says whether err refuses because the claim failed, for a second time where acquire wrote it.
func IsSandboxFailed(err error) bool { return is(err, StatusReasonSandboxFailed) }

// IsDeclarationMismatch says whether err refuses because the handle's claim mounts something else than was declared.
func IsDeclarationMismatch(err error) bool { return is(err, StatusReasonDeclarationMismatch) }

// IsNotYetSupported says whether err refuses a part of the specification that the server does not serve yet.
func IsNotYetSupported(err error) bool { return is(err, StatusReasonNotYetSupported) }

func is(err error, reason metav1.StatusReason) bool { return apierrors.ReasonForError(err) == reason }
