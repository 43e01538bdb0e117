package property

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

type (
	// seen is a claim as the last event showed it.
	seen = judge.Claim
	// key is what an acquire asks for.
	key = judge.Key
)

// events sees every state of a namespace's claims, and checks each against what was called, beside what judge checks.
type events struct {
	*judge.Events
	*model

	mu  sync.Mutex
	led time.Time // since when the leader leads, by the test's clock
}

func newEvents(ctx context.Context, m *model, etcd *clientv3.Client, prefix string) (*events, error) {
	e := &events{model: m}
	e.Events = judge.New(judge.Options{Etcd: etcd, Prefix: prefix, Clock: m.clock, Limits: m.limits, Say: m.say,
		Changed: e.checkChanged, Gone: e.checkGone, Moved: e.checkCalls})
	return e, e.Watch(ctx)
}

// limits are what a runtime may have, as far as some server may know.
func (m *model) limits(runtime string) judge.Limits {
	may := m.runtimes[runtime]
	return judge.Limits{
		MostConcurrent: may.concurrent.most(judge.Lag), MostStanding: may.concurrent.most(3 * judge.Lag),
		MostPerSession: may.perSession.most(judge.Lag), LeastPerSession: may.perSession.least(judge.Lag),
	}
}

// wrong notes that a promise was broken. The first is what counts. Call it from within a check.
func (e *events) wrong(format string, args ...any) {
	told := fmt.Sprintf(format, args...)
	e.Break(judge.Wrong, told, "%s", told)
}

// wrongly is wrong, for whoever stands outside.
func (e *events) wrongly(format string, args ...any) {
	e.Change(func() { e.wrong(format, args...) })
}

func (e *events) firstFault() string {
	if broken := e.Broken(); len(broken) > 0 {
		return broken[0].Told
	}
	return ""
}

func (e *events) newLeader() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.led = e.clock.Now()
}

// leads is since when the leader leads.
func (e *events) leads() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.led
}
