package lifecycle

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// admissionCheck refuses a claim, or gives false.
type admissionCheck func(Admission) (Verdict, bool)

// admissionChecks are asked in order: whose the claim is, what it asks for, whether that may be had.
var admissionChecks = []admissionCheck{
	enrolmentIsGranted,
	runtimeExists,
	runtimeAllowsSandboxes,
	mountIsGranted,
	targetPathIsGranted,
	connectionsAreGranted,
	classExists,
	workspaceIsSupported,
	workspaceHasStorage,
}

// Admit says whether a claim may have a sandbox: Pending, or Failed with the first cause, both for good; or Queued, while
// a limit leaves it no room.
func Admit(in Admission) Verdict {
	return admit(in, func() Limit { return in.Queue.Place(in.Claim) })
}

// admit asks for the claim's place in the queue where nothing else refuses the claim.
func admit(in Admission, place func() Limit) Verdict {
	for _, check := range admissionChecks {
		if verdict, refused := check(in); refused {
			return verdict
		}
	}
	if limit := place(); limit != "" {
		return queued(queuedReasons[limit], waitsFor(in, limit))
	}
	return creating()
}

// waitsFor tells of a full limit. It names no place in the queue, which would be a write per waiter whenever one is admitted.
func waitsFor(in Admission, limit Limit) string {
	runtime := fmt.Sprintf("AgentRuntime %s/%s", in.Claim.Namespace, in.Claim.RuntimeName())
	if limit == LimitConcurrent {
		return fmt.Sprintf("%s has its spec.sandbox.maxConcurrent of %d in use: waiting for one to end, oldest first", runtime, in.Runtime.MaxConcurrent())
	}
	return SessionIsFull(limit, in.Claim, SessionLimits{PerSession: in.Runtime.MaxPerSession(), Instances: ptr.Deref(in.Claim.Spec.MaxInstances, 0)})
}

// SessionIsFull says which limit of its session leaves a claim no room, and what to do. What the session holds may be more:
// the limit may have been lowered since.
func SessionIsFull(limit Limit, claim *v1alpha1.SandboxClaim, limits SessionLimits) string {
	if limit == LimitPerSession {
		return fmt.Sprintf("session %s may hold no more sandboxes of AgentRuntime %s/%s, whose spec.sandbox.maxPerSession is %d: release one first",
			claim.Spec.SessionID, claim.Namespace, claim.RuntimeName(), limits.PerSession)
	}
	return fmt.Sprintf("session %s may hold no more instances of sandbox %s, whose maxInstances is %d: release one first",
		claim.Spec.SessionID, SandboxOf(claim.Spec.Handle), limits.Instances)
}

// enrolmentIsGranted: only the enrolment endpoint writes an enrolment, and there is none yet, so nothing can have.
func enrolmentIsGranted(in Admission) (Verdict, bool) {
	return failed(v1alpha1.ReasonEnrolmentNotGranted, "an enrolment is created by the enrolment endpoint alone: delete the claim"), in.Claim.Spec.Enrolment != nil
}

func runtimeExists(in Admission) (Verdict, bool) {
	return failed(v1alpha1.ReasonAgentRuntimeNotFound, fmt.Sprintf("AgentRuntime %s/%s does not exist: create it, then delete the claim and create it again",
		in.Claim.Namespace, in.Claim.RuntimeName())), in.Runtime == nil
}

// runtimeAllowsSandboxes: "a misconfiguration, not resource contention, so it does not queue" (spec/sandboxclaim.md, "agentRuntimeRef").
func runtimeAllowsSandboxes(in Admission) (Verdict, bool) {
	return failed(v1alpha1.ReasonSandboxesDisabled, fmt.Sprintf("AgentRuntime %s/%s may not have sandboxes: set its spec.sandbox.enabled to true, then delete the claim and create it again",
		in.Claim.Namespace, in.Claim.RuntimeName())), in.Runtime != nil && !in.Runtime.SandboxesEnabled()
}

func mountIsGranted(in Admission) (Verdict, bool) {
	return failed(v1alpha1.ReasonMountNotGranted, "nothing proves that the server wrote this claim, so it may mount scratch only: acquire the sandbox instead"),
		MountsAnything(&in.Claim.Spec) && !v1alpha1.WrittenByAcquire(in.Claim.Status.Conditions)
}

func targetPathIsGranted(in Admission) (Verdict, bool) {
	return failed(v1alpha1.ReasonTargetPathNotGranted, "nothing proves that the server wrote this claim, so it may not name a targetPath: acquire the sandbox instead"),
		in.Claim.Spec.TargetPath != "" && !v1alpha1.WrittenByAcquire(in.Claim.Status.Conditions)
}

func connectionsAreGranted(in Admission) (Verdict, bool) {
	return failed(v1alpha1.ReasonConnectionsNotGranted, "nothing proves that the server wrote this claim, so it may not bind Connections: acquire the sandbox instead"),
		len(in.Claim.Spec.Connections) > 0 && !v1alpha1.WrittenByAcquire(in.Claim.Status.Conditions)
}

func classExists(in Admission) (Verdict, bool) {
	return failed(v1alpha1.ReasonClassNotFound, fmt.Sprintf("there is no %s: create it, then delete the claim and create it again",
		placed(in.Claim.Spec.ClassRef, in.Claim.Namespace))), in.Class == nil
}

// placed names a class, and where it is looked for on behalf of a namespace.
func placed(ref v1alpha1.ClassReference, namespace string) string {
	where := "in namespace " + namespace
	if ref.Kind == v1alpha1.ClusterSandboxClassKind {
		where = "in the cluster"
	}
	return fmt.Sprintf("%s %s %s", ref.Kind, ref.Name, where)
}

// workspaceIsSupported: a class without filesystem.workspace has nowhere to mount and nothing to promote.
func workspaceIsSupported(in Admission) (Verdict, bool) {
	spec := &in.Claim.Spec
	asks := len(spec.Mounts) > 0 || spec.Mount != nil || spec.TargetPath != ""
	return failed(v1alpha1.ReasonWorkspaceNotSupported, fmt.Sprintf("class %s has no filesystem.workspace, so a claim of it can have no mounts and no targetPath: drop them or name another class", spec.ClassRef.Name)),
		asks && in.Class != nil && !hasWorkspace(in.Class)
}

func workspaceHasStorage(in Admission) (Verdict, bool) {
	return failed(v1alpha1.ReasonNoWorkspaceStorage, fmt.Sprintf("class %s has a filesystem.workspace, and this server provides no workspace storage: name a class without one", in.Claim.Spec.ClassRef.Name)),
		in.Class != nil && hasWorkspace(in.Class)
}

func hasWorkspace(class *v1alpha1.SandboxClassSpec) bool {
	return class.Filesystem != nil && class.Filesystem.Workspace != nil
}
