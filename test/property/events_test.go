package property

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// seen is a claim as the last event showed it.
type seen struct {
	*v1alpha1.SandboxClaim
	// created and revision are etcd's, of the claim's first and last write.
	created, revision int64
	// appeared is when it was first seen, and changed when it was last, by the machine's clock.
	appeared, changed time.Time
	// leased is when its wait lease was first seen as it stands, by the test's clock.
	leased time.Time
	// free is the revision since which its session's limits have left it room; 0 while they leave none.
	free int64
}

func (s *seen) admitted() bool { return s.Status.Class != nil && s.Status.SandboxName != "" }

// live says whether it counts against limits.
func (s *seen) live() bool {
	return s.DeletionTimestamp == nil && s.Status.Phase != v1alpha1.PhaseFailed && s.Status.Phase != v1alpha1.PhaseCompleted
}

func (s *seen) waits() bool { return s.live() && !s.admitted() }

func (s *seen) byAcquire() bool { return v1alpha1.WrittenByAcquire(s.Status.Conditions) }

func (s *seen) key() key { return key{s.RuntimeName(), s.Spec.SessionID, s.Spec.Handle} }

func (s *seen) sandbox() string { return sandboxOf(s.Spec.Handle) }

func sandboxOf(handle string) string {
	name, _, _ := strings.Cut(handle, "/")
	return name
}

// key is what an acquire asks for.
type key struct{ runtime, session, handle string }

// events holds a namespace's claims as etcd has them, sees every state of theirs in order, and checks each against what
// may be. It reads etcd, and not a server, so that it misses nothing while servers come and go.
type events struct {
	*model
	etcd   *clientv3.Client
	prefix string

	mu       sync.Mutex
	claims   map[string]*seen
	all      map[types.UID]*seen // also those that are gone, as they last stood
	gone     map[types.UID]time.Time
	led      time.Time // since when the leader leads, by the test's clock
	fault    string
	moved    chan struct{} // closed, and made anew, with each event
	watching sync.WaitGroup
}

func newEvents(ctx context.Context, m *model, etcd *clientv3.Client, prefix string) *events {
	e := &events{model: m, etcd: etcd, prefix: prefix, claims: map[string]*seen{}, all: map[types.UID]*seen{}, gone: map[types.UID]time.Time{}, moved: make(chan struct{})}
	watch := etcd.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithCreatedNotify())
	<-watch // it watches
	e.watching.Go(func() {
		for answer := range watch {
			if err := answer.Err(); err != nil {
				e.add(func() { e.wrong("watching etcd: %v", err) })
				return
			}
			for _, event := range answer.Events {
				e.add(func() { e.take(event) })
			}
		}
	})
	return e
}

// add changes what is known and wakes whoever waits for it.
func (e *events) add(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
	close(e.moved)
	e.moved = make(chan struct{})
}

// wrong notes that a promise was broken. The first is what counts.
func (e *events) wrong(format string, args ...any) {
	told := fmt.Sprintf(format, args...)
	e.say("BROKEN: %s", told)
	if e.fault == "" {
		e.fault = told
	}
}

// wrongly is wrong, for whoever stands outside.
func (e *events) wrongly(format string, args ...any) {
	e.add(func() { e.wrong(format, args...) })
}

func (e *events) firstFault() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fault
}

// take takes one event of etcd.
func (e *events) take(event *clientv3.Event) {
	name := strings.TrimPrefix(string(event.Kv.Key), e.prefix)
	before := e.claims[name]
	if event.Type == clientv3.EventTypeDelete {
		delete(e.claims, name)
		if before == nil {
			e.wrong("claim %s went and was never seen", name)
			return
		}
		e.gone[before.UID] = time.Now()
		e.say("   %s is gone; %s", name, told(before))
		e.checkGone(before)
		e.checkCalls()
		e.checkRoom(event.Kv.ModRevision)
		return
	}
	claim := &v1alpha1.SandboxClaim{}
	if err := json.Unmarshal(event.Kv.Value, claim); err != nil {
		e.wrong("reading claim %s: %v", name, err)
		return
	}
	now := &seen{SandboxClaim: claim, created: event.Kv.CreateRevision, revision: event.Kv.ModRevision, appeared: time.Now(), changed: time.Now(), leased: e.clock.Now()}
	if before != nil {
		now.appeared, now.free = before.appeared, before.free
		if before.Status.Wait != nil && claim.Status.Wait != nil && *before.Status.Wait == *claim.Status.Wait {
			now.leased = before.leased
		}
	}
	e.claims[name], e.all[claim.UID] = now, now
	if before == nil || told(before) != told(now) {
		e.say("   %s: %s", name, told(now))
	}
	e.checkState(before, now)
	e.checkCalls()
	e.checkRoom(now.revision)
}

// told is a claim in a line.
func told(s *seen) string {
	at := func(label string, t interface{ Format(string) string }, set bool) string {
		if !set {
			return ""
		}
		return " " + label + "=" + t.Format("15:04:05.000")
	}
	status := &s.Status
	out := fmt.Sprintf("%s/%s/%s %s %s(%s)", s.RuntimeName(), s.Spec.SessionID, s.Spec.Handle, s.UID[:8], status.Phase, framework.Reason(s.SandboxClaim))
	if s.admitted() {
		out += " admitted"
	}
	out += at("queuedAt", status.QueuedAt, status.QueuedAt != nil) + at("boundAt", status.BoundAt, status.BoundAt != nil) +
		at("lastUsedAt", status.LastUsedAt, status.LastUsedAt != nil) + at("releaseAt", status.ReleaseAt, status.ReleaseAt != nil)
	if status.Wait != nil {
		out += fmt.Sprintf(" wait=%s+%ds", status.Wait.RenewTime.Format("15:04:05.000"), status.Wait.DurationSeconds)
	}
	if status.Replaces != "" {
		out += " replaces=" + string(status.Replaces[:8])
	}
	if s.DeletionTimestamp != nil {
		out += " terminating"
	}
	return out
}

func (e *events) newLeader() { e.add(func() { e.led = e.clock.Now() }) }

// now is what is known, for whoever only reads it, and a channel that is closed when that changes.
func (e *events) now() (map[string]*seen, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.claims), e.moved
}

// of gives a claim by its UID, also one that is gone, as it last stood.
func (e *events) of(uid types.UID) *seen {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[uid]
}

// behind says whether etcd holds what no event has shown yet.
func (e *events) behind(ctx context.Context) (bool, error) {
	answer, err := e.etcd.Get(ctx, e.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return true, fmt.Errorf("listing etcd: %w", err)
	}
	claims, _ := e.now()
	for _, kv := range answer.Kvs {
		name := strings.TrimPrefix(string(kv.Key), e.prefix)
		if claims[name] == nil || claims[name].revision < kv.ModRevision {
			return true, nil
		}
		delete(claims, name)
	}
	return len(claims) > 0, nil
}

// leads is since when the leader leads.
func (e *events) leads() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.led
}

// wentBy says whether a claim had gone by then.
func (e *events) wentBy(uid types.UID, then time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	went, gone := e.gone[uid]
	return gone && went.Before(then)
}
