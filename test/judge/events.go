package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// rewatch is how soon a watch that broke is begun again.
const rewatch = 100 * time.Millisecond

// Options say whose claims are judged, and by what.
type Options struct {
	// Etcd holds the claims, below Prefix: those of one namespace.
	Etcd   *clientv3.Client
	Prefix string
	// Clock is what the servers go by.
	Clock clock.PassiveClock
	// Limits are what a runtime may have just now.
	Limits func(runtime string) Limits
	// Say is told what happens.
	Say func(format string, args ...any)

	// Changed and Gone are told of each change of a claim (before is nil for a new one) and of each claim that went, and
	// check what needs to be known of the calls. Moved, which may be nil, is called after each event.
	// While they run nothing else changes: they call Break and Claims, and nothing else of Events.
	Changed func(before, now *Claim)
	Gone    func(*Claim)
	Moved   func()
}

// Limits are what a runtime may have at most. A limit that was changed has two values for a while: some server may not
// know the new one yet.
type Limits struct {
	MostConcurrent, MostPerSession, LeastPerSession int
	// MostStanding is how many sandboxes may stand, which were admitted by an earlier limit at worst.
	MostStanding int
}

// Kind is what a broken promise costs.
type Kind string

// What a broken promise costs.
const (
	// Lost is a claim, or a pod of one, that went without a cause.
	Lost Kind = "lost"
	// Leaked is what stands without its claim.
	Leaked Kind = "leaked"
	// Doubled is a second one where there may be one.
	Doubled Kind = "doubled"
	// Wrong is any other promise that was not kept.
	Wrong Kind = "wrong"
)

// Broken is a promise that was broken.
type Broken struct {
	Kind Kind
	// Subject is what it was broken to; each counts once.
	Subject string
	Told    string
}

// Events holds a namespace's claims as etcd has them, sees every state of theirs in order, and checks each against what
// may be. It reads etcd, and not a server, so that it misses nothing while servers come and go; and goes on where it was
// when etcd comes and goes.
type Events struct {
	Options

	mu       sync.Mutex
	claims   map[string]*Claim
	all      map[types.UID]*Claim // also those that are gone, as they last stood
	gone     map[types.UID]time.Time
	broken   []Broken
	counted  sets.Set[string]
	moved    chan struct{} // closed, and made anew, with each event
	watching sync.WaitGroup
}

// New gives a judge that watches nothing yet.
func New(options Options) *Events {
	return &Events{Options: options, claims: map[string]*Claim{}, all: map[types.UID]*Claim{}, gone: map[types.UID]time.Time{},
		counted: sets.New[string](), moved: make(chan struct{})}
}

// Watch watches until ctx ends. There must be no claims yet.
func (e *Events) Watch(ctx context.Context) error {
	none, err := e.Etcd.Get(ctx, e.Prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("listing etcd: %w", err)
	}
	if len(none.Kvs) > 0 {
		return fmt.Errorf("%d claims are there already, which nobody saw begin", len(none.Kvs))
	}
	e.watching.Go(func() { e.follow(ctx, none.Header.Revision+1) })
	return nil
}

// Wait waits until nothing is watched any more, once the context of Watch has ended.
func (e *Events) Wait() { e.watching.Wait() }

// follow takes every event from a revision on. etcd's members may come and go.
func (e *Events) follow(ctx context.Context, next int64) {
	for ctx.Err() == nil {
		watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		for answer := range e.Etcd.Watch(watching, e.Prefix, clientv3.WithPrefix(), clientv3.WithRev(next)) {
			if answer.CompactRevision > 0 {
				e.Change(func() {
					e.Break(Wrong, "watch", "watching etcd: what happened since revision %d was compacted away", next)
				})
				cancel()
				return
			}
			if answer.Err() != nil {
				break
			}
			for _, event := range answer.Events {
				e.Change(func() {
					e.take(change{
						name: strings.TrimPrefix(string(event.Kv.Key), e.Prefix), gone: event.Type == clientv3.EventTypeDelete,
						claim: event.Kv.Value, created: event.Kv.CreateRevision, revision: event.Kv.ModRevision,
					})
				})
				next = event.Kv.ModRevision + 1
			}
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(rewatch):
		}
	}
}

// Change changes what is known, and wakes whoever waits for it.
func (e *Events) Change(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
	close(e.moved)
	e.moved = make(chan struct{})
}

// Break notes that a promise was broken. Call it from within a check or a Change.
func (e *Events) Break(kind Kind, subject, format string, args ...any) {
	told := fmt.Sprintf(format, args...)
	if id := string(kind) + " " + subject; !e.counted.Has(id) {
		e.counted.Insert(id)
		e.Say("BROKEN: %s", told)
		e.broken = append(e.broken, Broken{Kind: kind, Subject: subject, Told: told})
	}
}

// Broke is Break, for whoever stands outside.
func (e *Events) Broke(kind Kind, subject, format string, args ...any) {
	e.Change(func() { e.Break(kind, subject, format, args...) })
}

// Broken are the promises that were broken, in their order.
func (e *Events) Broken() []Broken {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.broken)
}

// Claims are the claims that there are, by name. Call it from within a check or a Change.
func (e *Events) Claims() map[string]*Claim { return e.claims }

// Now is what is known, for whoever only reads it, and a channel that is closed when that changes.
func (e *Events) Now() (map[string]*Claim, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.claims), e.moved
}

// Of gives a claim by its UID, also one that is gone, as it last stood.
func (e *Events) Of(uid types.UID) *Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[uid]
}

// Ever says whether there is, or was, a claim that last stood like this.
func (e *Events) Ever(is func(*Claim) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, claim := range e.all {
		if is(claim) {
			return true
		}
	}
	return false
}

// WentBy says whether a claim had gone by then.
func (e *Events) WentBy(uid types.UID, then time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	went, gone := e.gone[uid]
	return gone && went.Before(then)
}

// change is one event of etcd.
type change struct {
	name              string
	gone              bool
	claim             []byte
	created, revision int64
}

func (e *Events) take(c change) {
	if c.gone {
		e.takeGone(c.name)
	} else {
		e.takeChanged(c)
	}
	if e.Moved != nil {
		e.Moved()
	}
	e.checkRoom(c.revision)
}

func (e *Events) takeGone(name string) {
	before := e.claims[name]
	delete(e.claims, name)
	if before == nil {
		e.Break(Wrong, name, "claim %s went and was never seen", name)
		return
	}
	e.gone[before.UID] = time.Now()
	e.Say("   %s is gone; %s", name, before)
	e.Gone(before)
}

func (e *Events) takeChanged(c change) {
	claim := &v1alpha1.SandboxClaim{}
	if err := json.Unmarshal(c.claim, claim); err != nil {
		e.Break(Wrong, c.name, "reading claim %s: %v", c.name, err)
		return
	}
	before := e.claims[c.name]
	now := &Claim{SandboxClaim: claim, created: c.created, revision: c.revision, Appeared: time.Now(), Changed: time.Now(), Leased: e.Clock.Now()}
	if before != nil {
		now.Appeared, now.free = before.Appeared, before.free
		if before.Status.Wait != nil && claim.Status.Wait != nil && *before.Status.Wait == *claim.Status.Wait {
			now.Leased = before.Leased
		}
	}
	e.claims[c.name], e.all[claim.UID] = now, now
	if before == nil || before.String() != now.String() {
		e.Say("   %s: %s", c.name, now)
	}
	e.checkState(before, now)
	e.Changed(before, now)
}

// Behind says whether etcd holds what no event has shown yet, or does not hold what an event had shown before it was asked.
func (e *Events) Behind(ctx context.Context) (bool, error) {
	before, _ := e.Now()
	answer, err := e.Etcd.Get(ctx, e.Prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return true, fmt.Errorf("listing etcd: %w", err)
	}
	after, _ := e.Now()
	for _, kv := range answer.Kvs {
		name := strings.TrimPrefix(string(kv.Key), e.Prefix)
		if was := before[name]; was != nil && was.revision > kv.ModRevision {
			return true, nil
		}
		if is := after[name]; is == nil || is.revision < kv.ModRevision {
			return true, nil
		}
		delete(before, name)
	}
	for name := range before { // It was there, and is not: the event of its end is on its way, or has come.
		if after[name] == before[name] {
			return true, nil
		}
	}
	return false, nil
}

// CatchUp waits, for Lag at most, until the events show at least what etcd holds now.
func (e *Events) CatchUp(ctx context.Context) {
	for end := time.Now().Add(Lag); time.Now().Before(end) && ctx.Err() == nil; {
		_, moved := e.Now()
		if behind, err := e.Behind(ctx); err == nil && !behind {
			return
		}
		select {
		case <-moved:
		case <-time.After(Look):
		}
	}
}
