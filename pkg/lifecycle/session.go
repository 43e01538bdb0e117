package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Live says whether a claim counts against its session's limits: it is neither ended nor ending.
func Live(phase v1alpha1.Phase, terminating bool) bool {
	return !terminating && phase != v1alpha1.PhaseFailed && phase != v1alpha1.PhaseCompleted
}

// SessionUse is what a session holds already.
type SessionUse struct {
	// Claims is how many live claims the session holds of its runtime, whatever their class.
	Claims int32
	// Instances is how many of them are of the sandbox that is asked for.
	Instances int32
}

// SessionLimits is what a session may hold.
type SessionLimits struct {
	// PerSession is the runtime's maxPerSession.
	PerSession int32
	// Instances is the sandbox's maxInstances.
	Instances int32
}

// Limit is a limit that leaves no room; empty means that there is room.
type Limit string

const (
	// LimitPerSession is the runtime's maxPerSession.
	LimitPerSession Limit = "maxPerSession"
	// LimitInstances is the sandbox's maxInstances.
	LimitInstances Limit = "maxInstances"
)

// FullLimit is the limit that a session's next claim would break (spec/sandboxclaim.md, "How agents get a claim").
func FullLimit(use SessionUse, limits SessionLimits) Limit {
	switch {
	case use.Claims >= limits.PerSession:
		return LimitPerSession
	case use.Instances >= limits.Instances:
		return LimitInstances
	}
	return ""
}

// UseIsWritten says whether a use of a sandbox is worth a write: at most one per half the idle timeout, but always when
// it withdraws a scheduled release (spec/sandboxclaim.md, "Reaping" and "Release at conversation end").
func UseIsWritten(lastUsedAt, releaseAt *metav1.MicroTime, idleTimeout time.Duration, now time.Time) bool {
	if releaseAt != nil || lastUsedAt == nil {
		return true
	}
	return !now.Before(lastUsedAt.Add(idleTimeout / 2))
}

// Wait is what a waiting caller's lease becomes when it waits for seconds from now on: no shorter than it stands
// so that two who wait never cut each other short. False means that the lease that stands is long enough.
func Wait(stands *v1alpha1.WaitLease, seconds int32, now time.Time) (v1alpha1.WaitLease, bool) {
	next := v1alpha1.WaitLease{RenewTime: metav1.NewMicroTime(now), DurationSeconds: seconds + v1alpha1.WaitLeaseSlackSeconds}
	if stands != nil && !WaitEnds(*stands).Before(WaitEnds(next)) {
		return *stands, false
	}
	return next, true
}

// WaitEnds is when a lease runs out, by the clock of whoever wrote it.
func WaitEnds(lease v1alpha1.WaitLease) time.Time {
	return lease.RenewTime.Add(time.Duration(lease.DurationSeconds) * time.Second)
}

// Withdrawable says whether a claim may be deleted because nobody waits for it any longer: it was never admitted and
// mounts nothing. An admitted one may be an image pull from ready, and a mounting one is acquired with mustExist
// (spec/sandboxclaim.md, "How agents get a claim").
func Withdrawable(claim *v1alpha1.SandboxClaim) bool {
	waiting := claim.Status.Phase == "" || claim.Status.Phase == v1alpha1.PhaseQueued
	return waiting && claim.DeletionTimestamp == nil && !MountsAnything(&claim.Spec)
}

// MountsAnything says whether a claim mounts anything but its own scratch directory.
func MountsAnything(spec *v1alpha1.SandboxClaimSpec) bool {
	scratch := func(m v1alpha1.SandboxMount) bool { return m.Role == "" || m.Role == v1alpha1.MountRoleScratch }
	for _, m := range spec.Mounts {
		if !scratch(m) {
			return true
		}
	}
	return spec.Mount != nil && !scratch(*spec.Mount)
}
