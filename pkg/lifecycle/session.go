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
