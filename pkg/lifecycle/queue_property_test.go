package lifecycle

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// TestMain has rapid keep no file of a failure, which would stay in the tree: it prints the seed that repeats it.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		fmt.Fprintln(os.Stderr, "setting a flag of rapid:", err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// anyQueue draws few sessions, sandboxes and moments, so that limits are met and claims are as old as each other.
func anyQueue(t *rapid.T) Queue {
	queue := Queue{Runtime: ceilings(rapid.Int32Range(0, 6).Draw(t, "maxConcurrent"), rapid.Int32Range(0, 3).Draw(t, "maxPerSession")), Standing: sets.New[types.UID]()}
	for i := range rapid.IntRange(0, 12).Draw(t, "claims") {
		claim := waiter(types.UID(rune('a'+i)), rapid.IntRange(0, 4).Draw(t, "queuedAt"),
			of(rapid.SampledFrom([]string{"s", "t", "u"}).Draw(t, "session")),
			instances(rapid.SampledFrom([]string{"shell/1", "shell/2", "browser/1"}).Draw(t, "handle"), rapid.Int32Range(0, 2).Draw(t, "maxInstances")),
			in(rapid.SampledFrom([]v1alpha1.Phase{"", v1alpha1.PhaseQueued, v1alpha1.PhaseQueued, v1alpha1.PhaseFailed}).Draw(t, "phase")))
		if rapid.Bool().Draw(t, "admitted") {
			admitted(claim)
			in(rapid.SampledFrom([]v1alpha1.Phase{v1alpha1.PhasePending, v1alpha1.PhaseBound, v1alpha1.PhaseBound, v1alpha1.PhaseFailed}).Draw(t, "phase of the admitted"))(claim)
		}
		if rapid.IntRange(0, 5).Draw(t, "terminating") == 0 {
			terminating(claim)
		}
		if rapid.IntRange(0, 2).Draw(t, "stands") == 0 && Admitted(claim) {
			queue.Standing.Insert(claim.UID)
		}
		queue.Claims = append(queue.Claims, claim)
	}
	if rapid.Bool().Draw(t, "a gone claim's Deployment stands") {
		queue.Standing.Insert("gone")
	}
	return queue
}

func uidsOf(claims []*v1alpha1.SandboxClaim) []types.UID {
	uids := []types.UID{}
	for _, claim := range claims {
		uids = append(uids, claim.UID)
	}
	return uids
}

// admitIn gives the queue as it is once these claims were admitted.
func admitIn(q Queue, uids ...types.UID) Queue {
	q.Claims = slices.Clone(q.Claims)
	for i, claim := range q.Claims {
		if slices.Contains(uids, claim.UID) {
			q.Claims[i] = claim.DeepCopy()
			admitted(q.Claims[i])
		}
	}
	return q
}

// heldIn counts a session's live admitted claims: all, and those of one sandbox.
func heldIn(q Queue, session, sandbox string) (claims, ofSandbox int32) {
	for _, claim := range q.Claims {
		if claim.Spec.SessionID != session || !Admitted(claim) || !Live(claim.Status.Phase, claim.DeletionTimestamp != nil) {
			continue
		}
		claims++
		if SandboxOf(claim.Spec.Handle) == sandbox {
			ofSandbox++
		}
	}
	return claims, ofSandbox
}

// TestQueue_AnyClaims holds of all queues what the tables show of some.
func TestQueue_AnyClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queue := anyQueue(t)
		next := uidsOf(mayBeAdmitted(queue))
		most, slots := queue.Runtime.MaxConcurrent(), queue.Slots()

		after := admitIn(queue, next...)
		assert.LessOrEqual(t, after.Slots(), max(most, slots), "admission takes a runtime above no ceiling")
		assert.Empty(t, mayBeAdmitted(after), "whoever may be admitted is among the next")

		shuffled := queue
		shuffled.Claims = rapid.Permutation(queue.Claims).Draw(t, "order")
		assert.Equal(t, next, uidsOf(mayBeAdmitted(shuffled)), "the order in which the claims were read does not matter")

		places := map[types.UID]Limit{}
		for claim, limit := range queue.waiting() {
			places[claim.UID] = limit
		}
		var within []*v1alpha1.SandboxClaim
		for _, claim := range queue.Claims {
			place := queue.Place(claim)
			assert.Equal(t, places[claim.UID], place, "%s asks alone and is told what all are told", claim.UID)
			waits := !Admitted(claim) && Live(claim.Status.Phase, claim.DeletionTimestamp != nil)
			assert.Equal(t, waits && place == "", slices.Contains(next, claim.UID), "%s has its place where it is next", claim.UID)
			if waits && (place == "" || place == LimitConcurrent) {
				within = append(within, claim)
			}
		}
		slices.SortFunc(within, older)
		free := int(max(most-slots, 0))
		assert.Equal(t, uidsOf(within[:min(free, len(within))]), next, "as many as are free, the oldest of those within their session's limits")

		for len(next) > 0 {
			queue, next = admitIn(queue, next[0]), next[1:]
			assert.Equal(t, next, uidsOf(mayBeAdmitted(queue)), "admitted one by one, they are the same")
		}
	})
}

// TestQueue_AnyClaims_SessionLimitsHold counts for itself what admission leaves each session with.
func TestQueue_AnyClaims_SessionLimitsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queue := anyQueue(t)
		for _, claim := range mayBeAdmitted(queue) {
			queue = admitIn(queue, claim.UID)
			claims, ofSandbox := heldIn(queue, claim.Spec.SessionID, SandboxOf(claim.Spec.Handle))
			assert.LessOrEqual(t, claims, queue.Runtime.MaxPerSession(), "maxPerSession, with %s", claim.UID)
			if claim.Spec.MaxInstances != nil {
				assert.LessOrEqual(t, ofSandbox, *claim.Spec.MaxInstances, "maxInstances, with %s", claim.UID)
			}
		}
	})
}

// mayBeAdmitted gives the claims that may be admitted now, oldest first.
func mayBeAdmitted(queue Queue) []*v1alpha1.SandboxClaim {
	var out []*v1alpha1.SandboxClaim
	for claim, limit := range queue.waiting() {
		if limit == "" {
			out = append(out, claim)
		}
	}
	return out
}
