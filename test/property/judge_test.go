package property

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

// blame notes that a call got an answer that it should not have got, unless its server's end cut it off.
func (w *world) blame(one *call, format string, args ...any) {
	if !one.disturbed && w.ctx.Err() == nil {
		w.events.wrongly(format, args...)
	}
}

// stands says whether the claim of this UID is there and live.
func (w *world) stands(uid types.UID) bool {
	w.events.CatchUp(w.ctx)
	claims, _ := w.events.Now()
	for _, s := range claims {
		if s.UID == uid {
			return s.Live()
		}
	}
	return false
}

// judgeAcquire holds an acquire's answer against what there was while it ran.
func (w *world) judgeAcquire(one *call, answer *v1alpha1.SandboxAcquire, err error) {
	w.events.CatchUp(w.ctx)
	w.calls.end(one)
	if err != nil {
		w.say("acquire %v at %d (wait %s): %s", one.key, one.server, one.wait, err)
		w.judgeRefusal(one, err)
		return
	}
	status := answer.Status
	w.say("acquire %v at %d (wait %s): %s %s %s created=%t", one.key, one.server, one.wait, status.ClaimName, status.ClaimUID[:8], status.Phase, status.Created)
	claim := w.events.Of(status.ClaimUID)
	switch {
	case claim == nil || claim.Key() != one.key || claim.Name != status.ClaimName:
		w.blame(one, "acquire %v was answered with another claim: %+v", one.key, status)
	case (status.Phase == v1alpha1.PhaseBound) != (len(status.Addresses) > 0), status.Phase == v1alpha1.PhaseBound && claim.Status.BoundAt == nil:
		w.blame(one, "acquire %v was answered with addresses out of turn: %+v", one.key, status)
	case status.Phase == v1alpha1.PhaseFailed:
		w.blame(one, "acquire %v was answered with a failed claim: %+v", one.key, status)
	case status.Phase == v1alpha1.PhaseBound && claim.Status.ReleaseAt != nil && claim.Live() && !w.meanwhile(one, release):
		w.blame(one, "acquire %v left its claim to be released: %s", one.key, claim)
	case status.Created && claim.Status.Replaces == "" && w.full(one, one.fewest, w.runtimes[one.key.Runtime].perSession.most(judge.Lag)):
		w.blame(one, "acquire %v made a claim although its session was full", one.key)
	}
}

// full says whether a session that holds this has no room for what is acquired.
func (w *world) full(one *call, holds held, perSession int) bool {
	return holds.claims >= perSession || holds.instances >= instances[judge.SandboxOf(one.key.Handle)]
}

func (w *world) judgeRefusal(one *call, err error) {
	failed := func() bool {
		return w.events.Ever(func(s *seen) bool {
			return s.Key() == one.key && s.Status.Phase == v1alpha1.PhaseFailed && s.Status.Replaces != "" && s.Status.BoundAt == nil
		})
	}
	switch {
	case !one.hungUp.IsZero():
	case v1alpha1.IsMaxPerSession(err) && one.most.claims >= w.runtimes[one.key.Runtime].perSession.least(judge.Lag):
	case v1alpha1.IsMaxInstances(err) && one.most.instances >= instances[judge.SandboxOf(one.key.Handle)]:
	case v1alpha1.IsSandboxEnded(err) && (one.must || one.wait > 0):
	case v1alpha1.IsSandboxFailed(err) && failed():
	case apierrors.IsServerTimeout(err): // the earlier claim is still going
	default:
		w.blame(one, "acquire %v was refused: %v (its session held %+v at most)", one.key, err, one.most)
	}
}

// judgeTouch: a use is on record, nearly enough, and withdraws a release.
func (w *world) judgeTouch(one *call, answer *v1alpha1.SandboxTouch, err error) {
	w.events.CatchUp(w.ctx)
	w.calls.end(one)
	if err != nil {
		w.say("touch %s at %d: %v", one.name, one.server, err)
		if w.stands(one.uid) {
			w.blame(one, "touching %s was refused: %v", one.name, err)
		}
		return
	}
	w.say("touch %s at %d: %s, last used %v", one.name, one.server, answer.Status.Phase, answer.Status.LastUsedAt)
	idle := w.runtimes[one.key.Runtime].idle
	if used := answer.Status.LastUsedAt; used == nil || used.Add(idle/2).Before(one.asked) {
		w.blame(one, "touching %s left it used at %v", one.name, used)
	}
	if s := w.events.Of(one.uid); s.Status.ReleaseAt != nil && s.Live() && !w.meanwhile(one, release) {
		w.blame(one, "touching %s left it to be released: %s", one.name, s)
	}
}

// meanwhile says whether a call of this kind about the same session ran at the same time.
func (w *world) meanwhile(one *call, kinds ...verb) bool {
	return w.calls.any(func(other *call) bool {
		for _, kind := range kinds {
			if other != one && other.verb == kind && other.key.Runtime == one.key.Runtime && other.key.Session == one.key.Session &&
				(other.ended.IsZero() || other.ended.After(one.began)) {
				return true
			}
		}
		return false
	})
}

// judgeRelease: what never had a sandbox is gone, what had one is to go, and a cancel lets all stay.
func (w *world) judgeRelease(one *call, before []*seen, err error) {
	w.events.CatchUp(w.ctx)
	w.calls.end(one)
	w.say("%s %v %s at %d: %v", one.verb, one.key, one.name, one.server, err)
	if err != nil {
		if one.name == "" || w.stands(one.uid) {
			w.blame(one, "%s of %v was refused: %v", one.verb, one.key, err)
		}
		return
	}
	if w.meanwhile(one, acquire, touch, release, cancel) {
		return
	}
	claims, _ := w.events.Now()
	for _, was := range before {
		is := claims[was.Name]
		if is == nil || is.UID != was.UID || !is.Live() {
			continue
		}
		switch {
		case one.verb == cancel && is.Status.ReleaseAt != nil:
			w.blame(one, "a cancel left a release: %s", is)
		case one.verb == release && is.Status.BoundAt == nil:
			w.blame(one, "a release left what never had a sandbox: %s", is)
		case one.verb == release && is.Status.ReleaseAt == nil:
			w.blame(one, "a release left a claim: %s", is)
		}
	}
}
