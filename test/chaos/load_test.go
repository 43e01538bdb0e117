package chaos

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

const (
	// pace is how long an agent that was served pauses.
	pace = 100 * time.Millisecond
	// betweenSessions is how long one that released its session pauses.
	betweenSessions = 300 * time.Millisecond
	// touchEvery is how many acquires of a standing sandbox there are to a touch of it.
	touchEvery = 10
)

// load is the agents: those that keep a sandbox and ask for it all the time, and those that take one after the other.
type load struct {
	*account
	probes  *probes
	ctx     context.Context
	keepers []*keeper
	running sync.WaitGroup

	// resting is locked by whoever wants no new sessions, and held for reading by each session.
	resting    sync.RWMutex
	complaints sync.Map     // by key: what was last said
	sessions   atomic.Int64 // how many there were
	over       atomic.Bool  // no more of anything
}

// keeper is an agent with a sandbox that stands. Everything else may come and go, but not this.
type keeper struct {
	*caller
	index int
	key   judge.Key
	claim *v1alpha1.SandboxAcquireStatus // as it was first Bound
	bound atomic.Bool                    // so said the last answer
}

// keep acquires a sandbox that stays.
func (l *load) keep(c *caller, session, handle string) error {
	k := &keeper{caller: c, index: len(l.keepers), key: judge.Key{Runtime: c.runtime, Session: session, Handle: handle}}
	claim, err := l.obtain(l.ctx, c, k.key)
	if err != nil {
		return fmt.Errorf("acquiring %v: %w", k.key, err)
	}
	k.claim = claim
	l.keepers = append(l.keepers, k)
	return nil
}

// standing are the claims that stay, by their UIDs.
func (l *load) standing() map[types.UID]*keeper {
	out := map[types.UID]*keeper{}
	for _, k := range l.keepers {
		out[k.claim.ClaimUID] = k
	}
	return out
}

// begin lets the agents run until ctx ends: each keeper, and so many takers of each runtime.
func (l *load) begin(takers map[*caller]int) {
	for _, k := range l.keepers {
		l.running.Go(func() { l.use(k) })
	}
	for c, count := range takers {
		for range count {
			l.running.Go(func() { l.take(c) })
		}
	}
}

// use acquires a sandbox that stands, over and over, and touches it now and then.
func (l *load) use(k *keeper) {
	for turn := 1; l.ctx.Err() == nil && !l.over.Load(); turn++ {
		began := time.Now()
		answer, err := k.acquire(l.ctx, k.key, 0)
		if l.ctx.Err() != nil {
			return
		}
		what := l.heard(k, answer, err)
		k.bound.Store(what == served)
		l.probes.add(probe{agent: k.index, began: began, ended: time.Now(), outcome: what})
		if what == served && turn%touchEvery == 0 {
			if err := k.touch(l.ctx, k.claim); judged(err) == refused {
				l.Broke(judge.Wrong, "touch", "touching %s was refused: %v", k.claim.ClaimName, err)
			}
		}
		l.pause(map[bool]time.Duration{true: pace, false: askAgain}[what == served])
	}
}

// heard holds the answer of an acquire of a standing sandbox against what it is.
func (l *load) heard(k *keeper, answer *v1alpha1.SandboxAcquireStatus, err error) outcome {
	what := judged(err)
	switch {
	case what == refused:
		l.Broke(judge.Wrong, "refused "+k.key.Session, "acquire of %v was refused: %v", k.key, err)
	case err != nil:
		l.complain(k.key, err)
	case answer.ClaimUID != k.claim.ClaimUID:
		l.Broke(judge.Lost, string(k.claim.ClaimUID), "acquire of %v gives claim %s in place of %s", k.key, answer.ClaimUID, k.claim.ClaimUID)
	case answer.Phase != v1alpha1.PhaseBound:
		return unserved
	}
	return what
}

// take takes one sandbox after the other, each in a session of its own.
func (l *load) take(c *caller) {
	for l.ctx.Err() == nil && !l.over.Load() {
		l.resting.RLock()
		l.session(c)
		l.resting.RUnlock()
		l.pause(betweenSessions)
	}
}

// session acquires a sandbox, touches it, and releases it.
func (l *load) session(c *caller) {
	key := judge.Key{Runtime: c.runtime, Session: fmt.Sprintf("session-%d", l.sessions.Add(1)), Handle: fakeHandle}
	claim, err := l.obtain(l.ctx, c, key)
	if err != nil {
		return // The end of the load, or what was told already.
	}
	if err := c.touch(l.ctx, claim); judged(err) == refused {
		l.Broke(judge.Wrong, "touch", "touching %s was refused: %v", claim.ClaimName, err)
	}
	_ = l.giveBack(l.ctx, c, key) // As above.
}

// obtain asks until a sandbox is Bound.
func (l *load) obtain(ctx context.Context, c *caller, key judge.Key) (*v1alpha1.SandboxAcquireStatus, error) {
	for {
		answer, err := c.acquire(ctx, key, patience)
		what := judged(err)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case what == refused:
			l.Broke(judge.Wrong, "refused "+key.Session, "acquire of %v was refused: %v", key, err)
			return nil, err
		case err != nil:
			l.cutOff(key)
			l.complain(key, err)
		case answer.Phase == v1alpha1.PhaseBound:
			return answer, nil
		}
		l.pause(askAgain)
	}
}

// complain says why an acquire failed, unless that was what was last said of it.
func (l *load) complain(key judge.Key, err error) {
	if before, _ := l.complaints.Swap(key, err.Error()); before != err.Error() {
		l.Say("acquire of %v: %v", key, err)
	}
}

// giveBack releases a session, and asks for that until it is heard.
func (l *load) giveBack(ctx context.Context, c *caller, key judge.Key) error {
	l.release(key)
	for {
		err := c.release(ctx, key.Session)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case judged(err) == refused:
			l.Broke(judge.Wrong, "refused "+key.Session, "release of %v was refused: %v", key, err)
			return err
		}
		l.pause(askAgain)
	}
}

// pause is an agent's own, not a wait for anything.
func (l *load) pause(lasts time.Duration) {
	select {
	case <-l.ctx.Done():
	case <-time.After(lasts):
	}
}

// rest lets the sessions that run come to their end, and no other begin.
func (l *load) rest() { l.resting.Lock() }

// goOn lets sessions begin again.
func (l *load) goOn() { l.resting.Unlock() }

// finish ends the agents, each when it has done what it is about.
func (l *load) finish() {
	l.over.Store(true)
	l.running.Wait()
}
