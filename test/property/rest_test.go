package property

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

const (
	// restTimeout is for all that is due to be done, by the machine's clock.
	restTimeout = 90 * time.Second
	// stillness is how long time stands still before what is due: a freed place is taken because it is free, and not because
	// it is looked for now and then.
	stillness = 3 * time.Second
	// unadmitted is said of a claim that may be admitted and is not.
	unadmitted = " may be admitted"
	// leaseSlack is how much later than the test a leader may have seen a wait lease first.
	leaseSlack = 10 * time.Second
)

// fataler ends a run.
type fataler interface{ Fatalf(string, ...any) }

// settle waits until all that is due is done, and fails if that takes too long or a promise is broken meanwhile.
func (w *world) settle(rt fataler, when string) {
	began := time.Now()
	w.clock.still.Store(true)
	defer w.clock.still.Store(false)
	for quiet := 0; quiet < 2; {
		w.kept(rt)
		_, moved := w.events.Now()
		unrest := w.unrest(context.Background())
		if unrest == "" {
			quiet++
		} else {
			quiet = 0
		}
		if w.clock.still.Load() && time.Since(began) > stillness {
			w.say("time passes again: %s", unrest)
			w.clock.still.Store(false)
			if strings.HasSuffix(unrest, unadmitted) && w.clock.Since(w.events.leads()) > stillness+judge.Lag {
				w.events.wrongly("a place stayed free until time passed: %s", unrest)
			}
		}
		if time.Since(began) > restTimeout {
			w.say("NOT AT REST: %s", unrest)
			rt.Fatalf("%s, within %s: %s", when, restTimeout, unrest)
		}
		if quiet < 2 {
			select {
			case <-moved:
			case <-time.After(judge.Look):
			}
		}
	}
	w.kept(rt)
}

// kept fails if a promise was broken.
func (w *world) kept(rt fataler) {
	if fault := w.events.firstFault(); fault != "" {
		rt.Fatalf("%s", fault)
	}
}

// unrest says what is due and not done yet; empty if nothing is.
func (w *world) unrest(ctx context.Context) string {
	if behind, err := w.events.Behind(ctx); err != nil || behind {
		return fmt.Sprintf("events are on their way (%v)", err)
	}
	claims, _ := w.events.Now()
	now := w.clock.Now()
	for _, s := range claims {
		if due := w.due(s, now); due != "" {
			return fmt.Sprintf("%s: %s: %s", s.Name, due, s)
		}
	}
	for name := range w.runtimes {
		if next := w.admissible(claims, name); next != nil {
			return next.String() + unadmitted
		}
	}
	for _, one := range w.calls.underWay() {
		if why := w.overdue(one, claims, now); why != "" {
			return fmt.Sprintf("an acquire of %v still waits: %s", one.key, why)
		}
	}
	if left := w.left(ctx, claims); left != "" {
		return left
	}
	return atWork()
}

// due says what a claim should have become by now.
func (w *world) due(s *seen, now time.Time) string {
	status, runtime := &s.Status, w.runtimes[s.RuntimeName()]
	over := func(since *metav1.MicroTime, lasts time.Duration) bool {
		return since != nil && !now.Before(since.Add(lasts))
	}
	failed := status.Phase == v1alpha1.PhaseFailed
	switch {
	case s.DeletionTimestamp != nil:
		return "is to go"
	case !failed && over(status.ReleaseAt, 0):
		return "is released"
	case failed && over(status.LastUsedAt, runtime.patience()):
		return "failed long ago"
	case failed:
		return ""
	case status.Phase == "":
		return "has no phase"
	case s.Spec.ClassRef.Name == missingClass:
		return "has no class and has not failed"
	case status.Phase == v1alpha1.PhaseBound && over(status.LastUsedAt, runtime.idle):
		return "is idle"
	case status.Phase != v1alpha1.PhaseBound && over(status.LastUsedAt, runtime.patience()):
		return "has waited for too long"
	case s.Waits() && status.Wait != nil && now.After(w.leaseEnds(s)):
		return "is waited for by nobody"
	case s.Admitted() && s.Spec.ClassRef.Name == stuckClass && framework.Reason(s.SandboxClaim) != v1alpha1.ReasonUnschedulable:
		return "cannot be placed and does not say so"
	case s.Admitted() && s.Spec.ClassRef.Name == usualClass && status.Phase != v1alpha1.PhaseBound:
		return "is not Bound"
	}
	return ""
}

// leaseEnds is when a leader that counts from when it first saw the wait must have ended it.
func (w *world) leaseEnds(s *seen) time.Time {
	from := s.Leased
	if led := w.events.leads(); led.After(from) {
		from = led
	}
	return from.Add(time.Duration(s.Status.Wait.DurationSeconds)*time.Second + leaseSlack)
}

// admissible is the runtime's oldest waiting claim for which there is room.
func (w *world) admissible(claims map[string]*seen, runtime string) *seen {
	admitted := 0
	sessions, sandboxes := map[string]int{}, map[string]int{}
	var waiting []*seen
	for _, s := range claims {
		switch {
		case s.RuntimeName() != runtime:
		case s.Waits():
			waiting = append(waiting, s)
		case s.Live():
			admitted++
			sessions[s.Spec.SessionID]++
			sandboxes[s.Spec.SessionID+"/"+s.Sandbox()]++
		}
	}
	if admitted >= w.runtimes[runtime].concurrent.current() {
		return nil
	}
	slices.SortFunc(waiting, judge.ByAge)
	for _, s := range waiting {
		if sessions[s.Spec.SessionID] < w.runtimes[runtime].perSession.current() &&
			(s.Spec.MaxInstances == nil || sandboxes[s.Spec.SessionID+"/"+s.Sandbox()] < int(*s.Spec.MaxInstances)) {
			return s
		}
	}
	return nil
}

// overdue says why an acquire should have been answered by now.
func (w *world) overdue(one *call, claims map[string]*seen, now time.Time) string {
	if one.verb != acquire {
		return "it is a " + string(one.verb) // nothing else waits
	}
	if !now.Before(one.asked.Add(one.wait)) {
		return "its wait is over"
	}
	for _, s := range claims {
		switch {
		case s.Key() != one.key || !s.ByAcquire():
		case s.Status.Phase == v1alpha1.PhaseBound:
			return "its claim is Bound"
		case s.Status.Phase == v1alpha1.PhaseFailed:
			return "its claim failed"
		case limited(s):
			return "its session has no room"
		}
	}
	return ""
}

// left says what stands in the host cluster without its claim.
func (w *world) left(ctx context.Context, claims map[string]*seen) string {
	left, err := judge.Left(ctx, w.Kube, w.namespace, claims)
	if err != nil {
		return err.Error()
	}
	if len(left) > 0 {
		return left[0] + " is left"
	}
	return ""
}
