package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// reapFloor keeps a short idleTimeout from ending claims whose pods are still pulling their image.
const reapFloor = 10 * time.Minute

// End is how a claim comes to its end because time has passed. The zero value is a claim that goes on.
type End struct {
	// Delete says that the claim is deleted, once it has been read again and is still due.
	Delete bool
	// Failed is the verdict of a claim that is not deleted but marked Failed.
	Failed *Verdict
	// Cause says in a word why, for events and metrics.
	Cause EndCause
}

// Now says whether the claim has come to its end.
func (e End) Now() bool { return e.Delete || e.Failed != nil }

// Instead is what the status of a claim in this phase is to say: the end, where the claim has come to it and is no further
// than it was. One that is ready at last goes on.
func (e End) Instead(phase v1alpha1.Phase, verdict Verdict) Verdict {
	if e.Failed != nil && verdict.Phase == phase {
		return *e.Failed
	}
	return verdict
}

// EndCause is why a claim came to its end.
type EndCause string

const (
	// EndReleased is the end of the grace after its conversation.
	EndReleased EndCause = "Released"
	// EndIdle is a Bound claim that nobody has used for the runtime's idleTimeout.
	EndIdle EndCause = "Idle"
	// EndNeverReady is a claim that was Pending for too long.
	EndNeverReady EndCause = v1alpha1.ReasonSandboxNeverReady
	// EndQueueWait is a claim that was Queued for too long.
	EndQueueWait EndCause = v1alpha1.ReasonQueueWaitExceeded
	// EndFailed is a Failed claim that nobody has looked at for long enough.
	EndFailed EndCause = "FailedExpired"
)

// Due says whether a claim's time has come, and if not, after how long to ask again; zero means that time alone changes
// nothing, or that it has come. What is due is due from its moment on, not before. runtime is the claim's; without one, its times are the
// defaults (spec/sandboxclaim.md, "Reaping" and "Release at conversation end").
func Due(claim *v1alpha1.SandboxClaim, runtime *omniav1alpha1.AgentRuntime, now time.Time) (End, time.Duration) {
	if claim.DeletionTimestamp != nil || claim.Spec.Enrolment != nil {
		return End{}, 0
	}
	releaseIn, toBeReleased := left(releaseDeadline(claim), now)
	if toBeReleased && releaseIn == 0 {
		return End{Delete: true, Cause: EndReleased}, 0
	}
	staleIn, measured := left(staleDeadline(claim, runtime), now)
	if measured && staleIn == 0 {
		return stale(claim, runtime), 0
	}
	switch {
	case toBeReleased && measured:
		return End{}, min(releaseIn, staleIn)
	case toBeReleased:
		return End{}, releaseIn
	}
	return End{}, staleIn
}

// left is how long it is until a deadline, which may be none; 0 from the deadline on.
func left(deadline *time.Time, now time.Time) (time.Duration, bool) {
	if deadline == nil {
		return 0, false
	}
	return max(deadline.Sub(now), 0), true
}

// releaseDeadline is when the claim's conversation has been over for its grace. A Failed claim is left to the reaper.
func releaseDeadline(claim *v1alpha1.SandboxClaim) *time.Time {
	if claim.Status.ReleaseAt == nil || Terminal(claim.Status.Phase) {
		return nil
	}
	return &claim.Status.ReleaseAt.Time
}

// staleDeadline is when the claim has gone untouched for too long. Without lastUsedAt it is never: not measured is not idle.
func staleDeadline(claim *v1alpha1.SandboxClaim, runtime *omniav1alpha1.AgentRuntime) *time.Time {
	if claim.Status.LastUsedAt == nil || claim.Status.Phase == "" || claim.Status.Phase == v1alpha1.PhaseCompleted {
		return nil
	}
	deadline := claim.Status.LastUsedAt.Add(patience(claim.Status.Phase, runtime))
	return &deadline
}

// patience is how long a claim may go untouched in its phase.
func patience(phase v1alpha1.Phase, runtime *omniav1alpha1.AgentRuntime) time.Duration {
	idle := timesOf(runtime).IdleTimeout()
	if phase == v1alpha1.PhaseBound {
		return idle
	}
	return max(idle, reapFloor)
}

// timesOf gives the runtime, or one that has set nothing.
func timesOf(runtime *omniav1alpha1.AgentRuntime) *omniav1alpha1.AgentRuntime {
	if runtime == nil {
		return &omniav1alpha1.AgentRuntime{}
	}
	return runtime
}

// stale is what becomes of a claim that has gone untouched for too long.
func stale(claim *v1alpha1.SandboxClaim, runtime *omniav1alpha1.AgentRuntime) End {
	waited := patience(claim.Status.Phase, runtime)
	switch claim.Status.Phase {
	case v1alpha1.PhasePending:
		verdict := failed(v1alpha1.ReasonSandboxNeverReady, fmt.Sprintf("the sandbox was not ready for %s; at last: %s", waited, lastWords(claim.Status.Conditions)))
		return End{Failed: &verdict, Cause: EndNeverReady}
	case v1alpha1.PhaseQueued:
		verdict := failed(v1alpha1.ReasonQueueWaitExceeded, fmt.Sprintf("the claim was queued for %s; at last: %s", waited, lastWords(claim.Status.Conditions)))
		return End{Failed: &verdict, Cause: EndQueueWait}
	case v1alpha1.PhaseBound:
		return End{Delete: true, Cause: EndIdle}
	case v1alpha1.PhaseFailed:
		return End{Delete: true, Cause: EndFailed}
	case v1alpha1.PhaseCompleted: // none of the reaper's
	}
	return End{}
}

// lastWords is what the Ready condition said.
func lastWords(conditions []metav1.Condition) string {
	ready := v1alpha1.ReadyCondition(conditions)
	if ready.Reason == "" {
		return "nothing was heard of it"
	}
	return ready.Reason + ": " + ready.Message
}
