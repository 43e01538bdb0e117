package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

const (
	// queueLength is how many claims are Queued, and queueWaited on how many of them, the oldest, an acquire waits.
	queueLength, queueWaited = 1000, 100
	// queueTurns is how often a slot is freed.
	queueTurns = 7
	// queueIdle is how long the queue is left alone to see what it costs.
	queueIdle = 11 * time.Second
)

// queued is a queue behind one slot.
type queued struct {
	*field
	place string

	admitted, bound, fresh measure.Times
}

// playQueue measures how soon a freed slot is the next waiter's.
func playQueue(ctx context.Context, b *Bench) (out []report.Section, err error) {
	f, err := b.openField(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	q := &queued{field: f, place: f.place()}
	if _, err := f.acquire(ctx, f.agent, q.session(0), q.place); err != nil {
		return nil, err
	}
	if err := q.fill(ctx); err != nil {
		return nil, err
	}
	waiting, hangUp := context.WithCancel(ctx)
	defer hangUp()
	answers := q.wait(waiting)
	idle, err := f.during(ctx, func() error { return pause(ctx, queueIdle) })
	if err != nil {
		return nil, err
	}
	moved, err := f.during(ctx, func() error { return q.advance(ctx, answers) })
	if err != nil {
		return nil, err
	}
	return []report.Section{q.section(idle, moved)}, nil
}

func (q *queued) session(i int) string { return fmt.Sprintf("q-%d", i) }

// fill makes the claims that queue: the oldest one by one, since their order matters, and the others at once.
func (q *queued) fill(ctx context.Context) error {
	make := func(ctx context.Context, i int) error {
		body := framework.MakeAcquire(q.runtime, q.session(i), handleOf(q.place))
		body.Spec.WaitSeconds = ptr.To[int32](0) // it is queued, and nobody waits
		_, err := q.agent.SandboxV1alpha1().SandboxClaims(q.namespace).Acquire(ctx, v1alpha1.AnyClaim, body, metav1.CreateOptions{})
		return err
	}
	for i := range queueWaited {
		if err := make(ctx, i+1); err != nil {
			return err
		}
	}
	if err := spread(ctx, fillers, queueLength-queueWaited, func(ctx context.Context, i int) error { return make(ctx, queueWaited+i+1) }); err != nil {
		return err
	}
	return q.eyes.awaitAll(ctx, queueLength, func(s *seen) bool { return s.claim != nil && s.claim.Status.Phase == v1alpha1.PhaseQueued })
}

// answer is what a waiting acquire came back with, and when.
type answer struct {
	claim string
	at    time.Time
	err   error
}

// wait has an acquire wait on each of the oldest claims.
func (q *queued) wait(ctx context.Context) []chan answer {
	out := make([]chan answer, queueWaited)
	for i := range out {
		out[i] = make(chan answer, 1)
		go func() {
			got, err := q.acquire(ctx, q.agent, q.session(i+1), q.place)
			a := answer{at: time.Now(), err: err}
			if err == nil {
				a.claim = got.ClaimName
			}
			out[i] <- a
		}()
	}
	return out
}

// advance frees the slot again and again, and takes how long the next waiter has to wait for it. A bare sandbox made and removed
// between is the floor of what the pod's own start takes.
func (q *queued) advance(ctx context.Context, answers []chan answer) error {
	holder, err := q.holder(ctx)
	if err != nil {
		return err
	}
	for turn := range queueTurns {
		if _, err := q.release(ctx, q.session(turn)); err != nil {
			return err
		}
		if err := q.eyes.await(ctx, holder, func(s *seen) bool { return !s.freed.IsZero() }); err != nil {
			return err
		}
		freed := q.eyes.look(holder).freed
		select {
		case next := <-answers[turn]:
			if next.err != nil {
				return next.err
			}
			q.bound = append(q.bound, next.at.Sub(freed))
			if err := q.eyes.await(ctx, next.claim, func(s *seen) bool { return !s.steps[stepAdmitted].IsZero() }); err != nil {
				return err
			}
			q.admitted = append(q.admitted, q.eyes.look(next.claim).steps[stepAdmitted].Sub(freed))
			holder = next.claim
		case <-ctx.Done():
			return ctx.Err()
		}
		name := fmt.Sprintf("bare-%d", turn)
		began := time.Now()
		if err := q.makeBare(ctx, name, q.place); err != nil {
			return err
		}
		q.fresh = append(q.fresh, time.Since(began))
		if err := q.removeBare(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// holder is the claim that has the slot.
func (q *queued) holder(ctx context.Context) (string, error) {
	got, err := q.acquire(ctx, q.agent, q.session(0), q.place)
	if err != nil {
		return "", err
	}
	return got.ClaimName, nil
}

func (q *queued) section(idle, moved spent) report.Section {
	what := fmt.Sprintf("freed slot, %d Queued, %d waited on", queueLength, queueWaited)
	section := report.Section{ID: "queue", Title: fmt.Sprintf("A freed slot with %d claims Queued", queueLength),
		About: fmt.Sprintf("A runtime that may have one sandbox, %d claims that queue for it, acquires that wait on the %d oldest. From the moment at which the last holder's Deployment was seen to be gone.", queueLength, queueWaited),
		Rows:  beside(what+": to the next Bound", q.bound, theBare, q.fresh, targets{}),
		Plots: []report.Plot{distribution(what, line{"next admitted", q.admitted}, line{"next Bound", q.bound}, line{theBare, q.fresh})},
	}
	admitted := alone(what+": to the next admitted", q.admitted)
	if change := moved[ourServer]; change != nil {
		mean, count := change.Mean(reconcileSeconds, nil)
		admitted[0].Floor, admitted[0].FloorName = ptr.To(measure.Milliseconds(mean)), fmt.Sprintf("one reconcile (mean of %d)", count)
	}
	section.Rows = append(admitted, section.Rows...)
	if change := idle[ourServer]; change != nil {
		section.Rows = append(section.Rows, idleRows(what+", left alone", change, nil)...)
	}
	return section
}
