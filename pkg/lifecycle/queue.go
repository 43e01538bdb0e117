package lifecycle

import (
	"cmp"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Queue is one AgentRuntime's claims, as they compete for what the runtime and its sessions may have. It only reads them.
type Queue struct {
	// Runtime is the AgentRuntime; nil if there is none, and then nothing can be admitted.
	Runtime *omniav1alpha1.AgentRuntime
	// Claims are all the runtime's claims.
	Claims []*v1alpha1.SandboxClaim
	// Standing are the UIDs of the runtime's claims, gone ones too, whose Deployment stands.
	Standing sets.Set[types.UID]
}

// Admitted says whether a claim was admitted: the class that it was admitted with is on record. It is never refused for
// a limit afterwards.
func Admitted(claim *v1alpha1.SandboxClaim) bool {
	return claim.Status.Class != nil && claim.Status.SandboxName != ""
}

// Slots is how many of the runtime's maxConcurrent are held: by each admitted claim that has not failed, and by whatever
// sandbox of an ended or ending claim still has its Deployment.
func (q Queue) Slots() int32 {
	held := q.Standing.Len()
	for _, claim := range q.Claims {
		if Admitted(claim) && Live(claim.Status.Phase, claim.DeletionTimestamp != nil) && !q.Standing.Has(claim.UID) {
			held++
		}
	}
	return int32(held)
}

// free is how many slots are not held. A lowered maxConcurrent makes it negative.
func (q Queue) free() int32 {
	if q.Runtime == nil {
		return 0
	}
	return q.Runtime.MaxConcurrent() - q.Slots()
}

// Place is the limit that the claim waits for; empty if it may be admitted now, before every claim that is younger, or
// does not wait. One that is not among Claims is not admitted: where it stands is not known.
func (q Queue) Place(claim *v1alpha1.SandboxClaim) Limit {
	free, claims := q.free(), q.Claims
	if free <= 0 { // then all wait, and only what a claim's own session holds says for what
		claims = ofSession(claims, claim.Spec.SessionID)
	}
	for waiting, limit := range q.among(claims, free) {
		if waiting.UID == claim.UID {
			return limit
		}
	}
	if Admitted(claim) || !Live(claim.Status.Phase, claim.DeletionTimestamp != nil) {
		return ""
	}
	return LimitConcurrent
}

// Again gives the claims that the queue's last change concerns, oldest first: those that may be admitted now, which are as
// many as there are free slots at most, and those that say that they wait for another limit than they do by now.
func (q Queue) Again() []*v1alpha1.SandboxClaim {
	var again []*v1alpha1.SandboxClaim
	for claim, limit := range q.waiting() {
		said := LimitOf(v1alpha1.ReadyCondition(claim.Status.Conditions).Reason)
		if limit == "" || claim.Status.Phase == v1alpha1.PhaseQueued && limit != said {
			again = append(again, claim)
		}
	}
	return again
}

// waiting gives the claims that wait to be admitted, oldest first, each with the limit that it waits for. One that waits
// for its session's limits stands in nobody's way; one that waits for a slot does: the next is not admitted before it.
func (q Queue) waiting() iter.Seq2[*v1alpha1.SandboxClaim, Limit] { return q.among(q.Claims, q.free()) }

// among gives those that wait among some of the claims, as if so many slots were free for them.
func (q Queue) among(claims []*v1alpha1.SandboxClaim, free int32) iter.Seq2[*v1alpha1.SandboxClaim, Limit] {
	return func(yield func(*v1alpha1.SandboxClaim, Limit) bool) {
		held := newSessions(timesOf(q.Runtime).MaxPerSession(), len(claims))
		var waiting []*v1alpha1.SandboxClaim
		for _, claim := range claims {
			switch {
			case !Live(claim.Status.Phase, claim.DeletionTimestamp != nil):
			case Admitted(claim):
				held.add(claim)
			default:
				waiting = append(waiting, claim)
			}
		}
		slices.SortFunc(waiting, older)
		for _, claim := range waiting {
			limit := held.fullFor(claim)
			if limit == "" {
				held.add(claim)
				if free--; free < 0 {
					limit = LimitConcurrent
				}
			}
			if !yield(claim, limit) {
				return
			}
		}
	}
}

func ofSession(claims []*v1alpha1.SandboxClaim, session string) []*v1alpha1.SandboxClaim {
	var out []*v1alpha1.SandboxClaim
	for _, claim := range claims {
		if claim.Spec.SessionID == session {
			out = append(out, claim)
		}
	}
	return out
}

// older orders claims for admission: by queuedAt, then by UID. One without queuedAt, which none should be, is the oldest.
func older(a, b *v1alpha1.SandboxClaim) int {
	var at, bt int64
	if a.Status.QueuedAt != nil {
		at = a.Status.QueuedAt.UnixMicro()
	}
	if b.Status.QueuedAt != nil {
		bt = b.Status.QueuedAt.UnixMicro()
	}
	return cmp.Or(cmp.Compare(at, bt), cmp.Compare(a.UID, b.UID))
}
