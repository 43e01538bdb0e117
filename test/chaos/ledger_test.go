package chaos

import (
	"sync"
	"time"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

// ledger is what was asked for, by which a claim may go.
type ledger struct {
	mu       sync.Mutex
	released map[string]bool         // by runtime and session: somebody asked for its end
	cut      map[judge.Key]time.Time // when an acquire last ended without an answer
	givenUp  []givenUp
}

// givenUp is a claim that went while it waited.
type givenUp struct {
	claim *judge.Claim
	at    time.Time
}

func newLedger() *ledger {
	return &ledger{released: map[string]bool{}, cut: map[judge.Key]time.Time{}}
}

func (l *ledger) release(key judge.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released[key.Runtime+"/"+key.Session] = true
}

func (l *ledger) wasReleased(key judge.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.released[key.Runtime+"/"+key.Session]
}

func (l *ledger) cutOff(key judge.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[key] = time.Now()
}

func (l *ledger) giveUp(claim *judge.Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.givenUp = append(l.givenUp, givenUp{claim, time.Now()})
}

// withoutCause are the claims that went while they waited although their callers were not cut off. Ask when no call is under
// way: a server may hear of a broken connection before the caller does.
func (l *ledger) withoutCause() []*judge.Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*judge.Claim
	for _, one := range l.givenUp {
		if l.cut[one.claim.Key()].Before(one.at.Add(-judge.Lag)) {
			out = append(out, one.claim)
		}
	}
	l.givenUp = nil
	return out
}

// account holds what becomes of claims against what was asked for.
type account struct {
	*ledger
	*judge.Events
}

func (a *account) changed(_, now *judge.Claim) {
	if now.Status.Phase == v1alpha1.PhaseFailed {
		a.Break(judge.Lost, string(now.UID), "claim %s failed: %s", now.Name, framework.Message(now.SandboxClaim))
	}
	if now.Status.ReleaseAt != nil && !a.wasReleased(now.Key()) {
		a.Break(judge.Lost, string(now.UID), "claim %s is to be released, and nobody asked for that: %s", now.Name, now)
	}
}

// gone: a claim goes because it was released, or because it waited and nobody waited for it.
func (a *account) gone(claim *judge.Claim) {
	status := &claim.Status
	switch {
	case a.wasReleased(claim.Key()):
	case status.Wait == nil || claim.Admitted() || status.Phase != "" && status.Phase != v1alpha1.PhaseQueued:
		a.lost(claim)
	case time.Now().Before(status.Wait.RenewTime.Add(time.Duration(status.Wait.DurationSeconds) * time.Second)):
		a.giveUp(claim) // Whether its caller hung up is known once the call has ended.
	}
}

func (a *account) lost(claim *judge.Claim) {
	a.Break(judge.Lost, string(claim.UID), "claim %s went without a cause: %s", claim.Name, claim)
}

// settle judges what could not be while calls were under way.
func (a *account) settle() {
	for _, claim := range a.withoutCause() {
		a.Change(func() { a.lost(claim) })
	}
}
