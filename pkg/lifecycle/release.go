package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Released is what the end of its conversation makes of a claim. The zero value leaves it as it is.
type Released struct {
	// Delete says that it is deleted at once: it never had a sandbox, and would take the next free slot for a conversation
	// that has ended.
	Delete bool
	// At is when it is to be deleted; it becomes status.releaseAt.
	At *metav1.MicroTime
}

// Release says what the end of its conversation makes of a claim (spec/sandboxclaim.md, "Release at conversation end").
// A Failed claim is left to the reaper, and one that is scheduled already keeps its time.
func Release(claim *v1alpha1.SandboxClaim, runtime *omniav1alpha1.AgentRuntime, now time.Time) Released {
	switch {
	case !Live(claim.Status.Phase, claim.DeletionTimestamp != nil):
		return Released{}
	case claim.Status.BoundAt == nil && claim.Status.Phase != v1alpha1.PhaseBound:
		return Released{Delete: true}
	case claim.Status.ReleaseAt != nil:
		return Released{At: claim.Status.ReleaseAt}
	}
	grace := timesOf(runtime).ReleaseGrace()
	if MountsAnything(&claim.Spec) {
		grace = timesOf(runtime).MountReleaseGrace()
	}
	// What is stored has microseconds.
	return Released{At: &metav1.MicroTime{Time: now.Add(grace).Truncate(time.Microsecond)}}
}

// UseIsWritten says whether a use of a sandbox is worth a write: at most one per half the idle timeout, but always when
// it withdraws a scheduled release (spec/sandboxclaim.md, "Reaping" and "Release at conversation end").
func UseIsWritten(lastUsedAt, releaseAt *metav1.MicroTime, idleTimeout time.Duration, now time.Time) bool {
	if releaseAt != nil || lastUsedAt == nil {
		return true
	}
	return !now.Before(lastUsedAt.Add(idleTimeout / 2))
}
