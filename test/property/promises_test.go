package property

import (
	"cmp"
	"slices"
	"time"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// checkState holds one state of a claim against the one before it, which is nil for a new claim.
func (e *events) checkState(before, now *seen) {
	if before == nil {
		e.checkNew(now)
		return
	}
	was, is := before.Status, now.Status
	switch {
	case before.UID != now.UID:
		e.wrong("claim %s became another without going", now.Name)
	case !was.QueuedAt.Equal(is.QueuedAt), was.Replaces != is.Replaces:
		e.wrong("claim %s lost its place: %s", now.Name, told(now))
	case before.admitted() && !now.admitted():
		e.wrong("claim %s is no longer admitted", now.Name)
	case was.BoundAt != nil && !was.BoundAt.Equal(is.BoundAt):
		e.wrong("claim %s was first Bound twice: %s", now.Name, told(now))
	case !slices.Contains(steps[was.Phase], is.Phase):
		e.wrong("claim %s stepped from %q to %q", now.Name, was.Phase, is.Phase)
	case is.Phase != "" && is.LastUsedAt == nil:
		e.wrong("claim %s has a phase and was never used", now.Name)
	case was.LastUsedAt != nil && is.LastUsedAt.Before(was.LastUsedAt):
		e.wrong("claim %s was used earlier than before: %s", now.Name, told(now))
	case is.LastUsedAt != nil && is.LastUsedAt.After(e.clock.Now()):
		e.wrong("claim %s is used in the future: %s", now.Name, told(now))
	}
	if !before.admitted() && now.admitted() {
		e.checkAdmitted(before, now)
	}
	if was.Phase != is.Phase && is.Phase == v1alpha1.PhaseFailed {
		e.checkFailed(before, now)
	}
	if is.ReleaseAt != nil && !is.ReleaseAt.Equal(was.ReleaseAt) {
		e.checkReleased(before, now)
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
func (e *events) checkNew(now *seen) {
	if now.Status.Phase != "" || now.admitted() || now.Status.QueuedAt == nil {
		e.wrong("claim %s began with a status: %s", now.Name, told(now))
	}
	for _, other := range e.claims {
		if other != now && now.byAcquire() && other.byAcquire() && other.key() == now.key() {
			e.wrong("one handle has two claims: %s and %s", told(other), told(now))
		}
	}
	if uid := now.Status.Replaces; uid != "" {
		if failed := e.all[uid]; failed == nil || failed.Status.Phase != v1alpha1.PhaseFailed || failed.Name != now.Name {
			e.wrong("claim %s replaces what did not fail: %s", now.Name, told(now))
		}
	}
}

// checkAdmitted: never more than the runtime and the session may have, and oldest first.
func (e *events) checkAdmitted(before, now *seen) {
	runtime := e.runtimes[now.RuntimeName()]
	admitted, ofSession, ofSandbox, older := 0, 0, 0, 0
	for _, s := range e.claims {
		switch {
		case s.RuntimeName() != now.RuntimeName() || !s.live():
		case s.admitted():
			admitted++
			if s.Spec.SessionID == now.Spec.SessionID {
				ofSession++
				if s.sandbox() == now.sandbox() {
					ofSandbox++
				}
			}
		// The leader had seen what it was admitted from, and so all that was written before.
		case s.created <= before.revision && s.free > 0 && s.free <= before.revision && byAge(s, now) < 0:
			older++
		}
	}
	if most := runtime.concurrent.most(lag); admitted > most {
		e.wrong("claim %s was admitted as number %d of at most %d", now.Name, admitted, most)
	} else if admitted+older > most {
		e.wrong("claim %s was admitted as number %d of at most %d before %d that are older: %s", now.Name, admitted, most, older, told(now))
	}
	if most := runtime.perSession.most(lag); ofSession > most {
		e.wrong("claim %s was admitted as number %d of its session, which may have %d", now.Name, ofSession, most)
	}
	if most := now.Spec.MaxInstances; most != nil && ofSandbox > int(*most) {
		e.wrong("claim %s was admitted as instance %d of at most %d", now.Name, ofSandbox, *most)
	}
}

// byAge orders claims as they are admitted.
func byAge(a, b *seen) int {
	return cmp.Or(a.Status.QueuedAt.Compare(b.Status.QueuedAt.Time), cmp.Compare(a.UID, b.UID))
}

// checkRoom notes for each waiting claim since when its session's limits leave it room.
func (e *events) checkRoom(revision int64) {
	claims := map[string]held{}   // by session
	sandboxes := map[string]int{} // by session and sandbox
	hold := func(s *seen) {
		session := s.RuntimeName() + "/" + s.Spec.SessionID
		claims[session] = held{claims: claims[session].claims + 1}
		sandboxes[session+"/"+s.sandbox()]++
	}
	var waiting []*seen
	for _, s := range e.claims {
		switch {
		case s.waits():
			waiting = append(waiting, s)
		case s.live():
			hold(s)
		}
	}
	slices.SortFunc(waiting, byAge)
	for _, s := range waiting {
		session := s.RuntimeName() + "/" + s.Spec.SessionID
		full := claims[session].claims >= e.runtimes[s.RuntimeName()].perSession.least(lag) ||
			s.Spec.MaxInstances != nil && sandboxes[session+"/"+s.sandbox()] >= int(*s.Spec.MaxInstances)
		switch {
		case full:
			s.free = 0
			continue
		case s.free == 0:
			s.free = revision
		}
		hold(s)
	}
}

// checkFailed: a claim fails for want of its class, or because it waited for long enough.
func (e *events) checkFailed(before, now *seen) {
	patience := e.runtimes[now.RuntimeName()].patience()
	waited := before.Status.LastUsedAt != nil && !e.clock.Now().Before(before.Status.LastUsedAt.Add(patience))
	switch reason := framework.Reason(now.SandboxClaim); {
	case reason == v1alpha1.ReasonClassNotFound && now.Spec.ClassRef.Name == missingClass:
	case reason == v1alpha1.ReasonSandboxNeverReady && before.Status.Phase == v1alpha1.PhasePending && waited:
	case reason == v1alpha1.ReasonQueueWaitExceeded && before.Status.Phase == v1alpha1.PhaseQueued && waited:
	default:
		e.wrong("claim %s failed (%s) after %s", now.Name, reason, told(before))
	}
}

// checkReleased: a release is scheduled because somebody asked for it, to the grace after that.
func (e *events) checkReleased(before, now *seen) {
	grace := e.runtimes[now.RuntimeName()].grace
	at := now.Status.ReleaseAt.Time
	asked := e.calls.any(func(one *call) bool {
		return one.verb == release && one.about(now) && one.lately(time.Now()) &&
			!at.Before(one.asked.Add(grace).Truncate(time.Microsecond)) && !at.After(e.clock.Now().Add(grace))
	})
	if !asked || before.Status.BoundAt == nil || before.Status.ReleaseAt != nil {
		e.wrong("the release of claim %s was scheduled out of turn: %s, from %s", now.Name, told(now), told(before))
	}
}

// checkGone: a claim goes because it was deleted or released, because its time was over, because nobody waited for it, to
// be replaced, or because its session had no room for it; and is lost otherwise.
func (e *events) checkGone(s *seen) {
	now, status := e.clock.Now(), &s.Status
	over := func(since time.Time, lasts time.Duration) bool { return !now.Before(since.Add(lasts)) }
	untouched := func(lasts time.Duration) bool {
		return status.LastUsedAt != nil && over(status.LastUsedAt.Time, lasts)
	}
	runtime := e.runtimes[s.RuntimeName()]
	failed, bound := status.Phase == v1alpha1.PhaseFailed, status.Phase == v1alpha1.PhaseBound
	waits := status.Phase == "" || status.Phase == v1alpha1.PhaseQueued
	acquiring := func(also func(*call) bool) bool {
		return e.calls.any(func(one *call) bool { return one.verb == acquire && one.key == s.key() && also(one) })
	}
	switch {
	case e.calls.any(func(one *call) bool { return one.verb == remove && one.uid == s.UID }):
	case !bound && status.BoundAt == nil && !failed && e.calls.any(func(one *call) bool { return one.verb == release && one.about(s) && one.lately(time.Now()) }):
	case status.ReleaseAt != nil && !failed && over(status.ReleaseAt.Time, 0):
	case bound && untouched(runtime.idle):
	case failed && untouched(runtime.patience()):
	case waits && status.Wait != nil && over(status.Wait.RenewTime.Time, time.Duration(status.Wait.DurationSeconds)*time.Second):
	case waits && acquiring(func(one *call) bool { return !one.hungUp.IsZero() && time.Since(one.hungUp) < 3*lag }):
	case failed && s.byAcquire() && acquiring(func(one *call) bool { return one.lately(s.changed) }):
	case limited(s) && s.byAcquire() && acquiring(func(one *call) bool { return one.lately(s.changed) }):
	default:
		e.wrong("claim %s was lost: %s", s.Name, told(s))
	}
}

// limited says whether a claim is Queued for its session's limits, for which nobody waits.
func limited(s *seen) bool {
	reason := framework.Reason(s.SandboxClaim)
	return s.Status.Phase == v1alpha1.PhaseQueued && (reason == v1alpha1.ReasonSessionLimit || reason == v1alpha1.ReasonInstanceLimit)
}

// checkCalls notes what else the session of each acquire that is under way holds.
func (e *events) checkCalls() {
	for _, one := range e.calls.underWay() {
		if one.verb != acquire {
			continue
		}
		var now held
		for _, s := range e.claims {
			if !s.live() || s.RuntimeName() != one.key.runtime || s.Spec.SessionID != one.key.session || s.byAcquire() && s.key() == one.key {
				continue
			}
			now.claims++
			if s.sandbox() == sandboxOf(one.key.handle) {
				now.instances++
			}
		}
		if !one.counted {
			one.fewest, one.most, one.counted = now, now, true
		}
		one.fewest = held{min(one.fewest.claims, now.claims), min(one.fewest.instances, now.instances)}
		one.most = held{max(one.most.claims, now.claims), max(one.most.instances, now.instances)}
	}
}
