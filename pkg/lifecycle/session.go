package lifecycle

import (
	"math"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Live says whether a claim counts against its session's limits: it is neither ended nor ending.
func Live(phase v1alpha1.Phase, terminating bool) bool {
	return !terminating && !Terminal(phase)
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
	// LimitConcurrent is the runtime's maxConcurrent. It is waited for; the two others are a session's own, and refused.
	LimitConcurrent Limit = "maxConcurrent"
)

// queuedReasons are what a Queued claim's Ready condition says of the limit that it waits for.
var queuedReasons = map[Limit]string{
	LimitConcurrent: v1alpha1.ReasonCeilingReached,
	LimitPerSession: v1alpha1.ReasonSessionLimit,
	LimitInstances:  v1alpha1.ReasonInstanceLimit,
}

// LimitOf is the limit that a Queued claim's Ready condition names.
func LimitOf(reason string) Limit {
	for limit, said := range queuedReasons {
		if said == reason {
			return limit
		}
	}
	return ""
}

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

// SandboxOf is the sandbox that a handle is an instance of: its first segment.
func SandboxOf(handle string) string {
	name, _, _ := strings.Cut(handle, "/")
	return name
}

// sessions counts what each session of one runtime holds.
type sessions struct {
	perSession int32
	claims     map[string]int32
	instances  map[instance]int32
}

// instance is what maxInstances counts: a session's claims of one sandbox.
type instance struct{ session, sandbox string }

// newSessions has room for the sessions of so many claims.
func newSessions(perSession int32, room int) *sessions {
	return &sessions{perSession: perSession, claims: make(map[string]int32, room), instances: make(map[instance]int32, room)}
}

func instanceOf(claim *v1alpha1.SandboxClaim) instance {
	return instance{claim.Spec.SessionID, SandboxOf(claim.Spec.Handle)}
}

// fullFor is the limit of its session that leaves the claim no room. A claim without maxInstances is held to none.
func (s *sessions) fullFor(claim *v1alpha1.SandboxClaim) Limit {
	use := SessionUse{Claims: s.claims[claim.Spec.SessionID], Instances: s.instances[instanceOf(claim)]}
	return FullLimit(use, SessionLimits{PerSession: s.perSession, Instances: ptr.Deref(claim.Spec.MaxInstances, math.MaxInt32)})
}

func (s *sessions) add(claim *v1alpha1.SandboxClaim) {
	s.claims[claim.Spec.SessionID]++
	s.instances[instanceOf(claim)]++
}
