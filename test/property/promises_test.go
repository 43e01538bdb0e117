package property

import (
	"time"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

// checkChanged holds a change of a claim against what was called, and what time it is.
func (e *events) checkChanged(before, now *seen) {
	if before == nil {
		return
	}
	was, is := before.Status, now.Status
	if was.Phase != is.Phase && is.Phase == v1alpha1.PhaseFailed {
		e.checkFailed(before, now)
	}
	if is.ReleaseAt != nil && !is.ReleaseAt.Equal(was.ReleaseAt) {
		e.checkReleased(before, now)
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
		e.wrong("claim %s failed (%s) after %s", now.Name, reason, before)
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
		e.wrong("the release of claim %s was scheduled out of turn: %s, from %s", now.Name, now, before)
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
		return e.calls.any(func(one *call) bool { return one.verb == acquire && one.key == s.Key() && also(one) })
	}
	switch {
	case e.calls.any(func(one *call) bool { return one.verb == remove && one.uid == s.UID }):
	case !bound && status.BoundAt == nil && !failed && e.calls.any(func(one *call) bool { return one.verb == release && one.about(s) && one.lately(time.Now()) }):
	case status.ReleaseAt != nil && !failed && over(status.ReleaseAt.Time, 0):
	case bound && untouched(runtime.idle):
	case failed && untouched(runtime.patience()):
	case waits && status.Wait != nil && over(status.Wait.RenewTime.Time, time.Duration(status.Wait.DurationSeconds)*time.Second):
	case waits && acquiring(func(one *call) bool { return !one.hungUp.IsZero() && time.Since(one.hungUp) < 3*judge.Lag }):
	case failed && s.ByAcquire() && acquiring(func(one *call) bool { return one.lately(s.Changed) }):
	case limited(s) && s.ByAcquire() && acquiring(func(one *call) bool { return one.lately(s.Changed) }):
	default:
		e.Break(judge.Lost, s.Name, "claim %s was lost: %s", s.Name, s)
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
		for _, s := range e.Claims() {
			if !s.Live() || s.RuntimeName() != one.key.Runtime || s.Spec.SessionID != one.key.Session || s.ByAcquire() && s.Key() == one.key {
				continue
			}
			now.claims++
			if s.Sandbox() == judge.SandboxOf(one.key.Handle) {
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
