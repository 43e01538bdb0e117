package judge

import (
	"slices"
	"time"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

const (
	// Lag is how long a server may go by what was changed, and an event be on its way.
	Lag = 5 * time.Second
	// Look is when to look again where no event tells.
	Look = 100 * time.Millisecond
)

// checkState holds one state of a claim against the one before it, which is nil for a new claim.
func (e *Events) checkState(before, now *Claim) {
	if before == nil {
		e.checkNew(now)
		return
	}
	was, is := before.Status, now.Status
	switch {
	case before.UID != now.UID:
		e.Break(Doubled, now.Name, "claim %s became another without going", now.Name)
	case !was.QueuedAt.Equal(is.QueuedAt), was.Replaces != is.Replaces:
		e.Break(Wrong, now.Name, "claim %s lost its place: %s", now.Name, now)
	case before.Admitted() && !now.Admitted():
		e.Break(Wrong, now.Name, "claim %s is no longer admitted", now.Name)
	case was.BoundAt != nil && !was.BoundAt.Equal(is.BoundAt):
		e.Break(Wrong, now.Name, "claim %s was first Bound twice: %s", now.Name, now)
	case !slices.Contains(steps[was.Phase], is.Phase):
		e.Break(Wrong, now.Name, "claim %s stepped from %q to %q", now.Name, was.Phase, is.Phase)
	case is.Phase != "" && is.LastUsedAt == nil:
		e.Break(Wrong, now.Name, "claim %s has a phase and was never used", now.Name)
	case was.LastUsedAt != nil && is.LastUsedAt.Before(was.LastUsedAt):
		e.Break(Wrong, now.Name, "claim %s was used earlier than before: %s", now.Name, now)
	case is.LastUsedAt != nil && is.LastUsedAt.After(e.Clock.Now()):
		e.Break(Wrong, now.Name, "claim %s is used in the future: %s", now.Name, now)
	}
	if !before.Admitted() && now.Admitted() {
		e.checkAdmitted(before, now)
	}
}

// steps are the phases that may follow on each.
var steps = map[v1alpha1.Phase][]v1alpha1.Phase{
	"":                      {"", v1alpha1.PhaseQueued, v1alpha1.PhasePending, v1alpha1.PhaseFailed},
	v1alpha1.PhaseQueued:    {v1alpha1.PhaseQueued, v1alpha1.PhasePending, v1alpha1.PhaseFailed},
	v1alpha1.PhasePending:   {v1alpha1.PhasePending, v1alpha1.PhaseBound, v1alpha1.PhaseFailed},
	v1alpha1.PhaseBound:     {v1alpha1.PhaseBound, v1alpha1.PhasePending},
	v1alpha1.PhaseFailed:    {v1alpha1.PhaseFailed},
	v1alpha1.PhaseCompleted: {},
}

// checkNew: one handle has one claim of acquire's; a claim begins with its place in the queue and nothing else.
func (e *Events) checkNew(now *Claim) {
	if now.Status.Phase != "" || now.Admitted() || now.Status.QueuedAt == nil {
		e.Break(Wrong, now.Name, "claim %s began with a status: %s", now.Name, now)
	}
	for _, other := range e.claims {
		if other != now && now.ByAcquire() && other.ByAcquire() && other.Key() == now.Key() {
			e.Break(Doubled, now.Name, "one handle has two claims: %s and %s", other, now)
		}
	}
	if uid := now.Status.Replaces; uid != "" {
		if failed := e.all[uid]; failed == nil || failed.Status.Phase != v1alpha1.PhaseFailed || failed.Name != now.Name {
			e.Break(Wrong, now.Name, "claim %s replaces what did not fail: %s", now.Name, now)
		}
	}
}

// checkAdmitted: never more than the runtime and the session may have, and oldest first.
func (e *Events) checkAdmitted(before, now *Claim) {
	limits := e.Limits(now.RuntimeName())
	admitted, ofSession, ofSandbox, older := 0, 0, 0, 0
	for _, c := range e.claims {
		switch {
		case c.RuntimeName() != now.RuntimeName() || !c.Live():
		case c.Admitted():
			admitted++
			if c.Spec.SessionID == now.Spec.SessionID {
				ofSession++
				if c.Sandbox() == now.Sandbox() {
					ofSandbox++
				}
			}
		// The leader had seen what it was admitted from, and so all that was written before.
		case c.created <= before.revision && c.free > 0 && c.free <= before.revision && ByAge(c, now) < 0:
			older++
		}
	}
	if most := limits.MostConcurrent; admitted > most {
		e.Break(Wrong, now.Name, "claim %s was admitted as number %d of at most %d", now.Name, admitted, most)
	} else if admitted+older > most {
		e.Break(Wrong, now.Name, "claim %s was admitted as number %d of at most %d before %d that are older: %s", now.Name, admitted, most, older, now)
	}
	if most := limits.MostPerSession; ofSession > most {
		e.Break(Wrong, now.Name, "claim %s was admitted as number %d of its session, which may have %d", now.Name, ofSession, most)
	}
	if most := now.Spec.MaxInstances; most != nil && ofSandbox > int(*most) {
		e.Break(Wrong, now.Name, "claim %s was admitted as instance %d of at most %d", now.Name, ofSandbox, *most)
	}
}

// checkRoom notes for each waiting claim since when its session's limits leave it room.
func (e *Events) checkRoom(revision int64) {
	claims := map[string]int{}    // by session
	sandboxes := map[string]int{} // by session and sandbox
	hold := func(c *Claim) {
		session := c.Key().session()
		claims[session]++
		sandboxes[session+"/"+c.Sandbox()]++
	}
	var waiting []*Claim
	for _, c := range e.claims {
		switch {
		case c.Waits():
			waiting = append(waiting, c)
		case c.Live():
			hold(c)
		}
	}
	slices.SortFunc(waiting, ByAge)
	for _, c := range waiting {
		session := c.Key().session()
		full := claims[session] >= e.Limits(c.RuntimeName()).LeastPerSession ||
			c.Spec.MaxInstances != nil && sandboxes[session+"/"+c.Sandbox()] >= int(*c.Spec.MaxInstances)
		switch {
		case full:
			c.free = 0
			continue
		case c.free == 0:
			c.free = revision
		}
		hold(c)
	}
}
