package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/meter"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

const (
	// waitingCallers is how many acquires wait while others are measured.
	waitingCallers = 100
	// waitersRounds is how often they come and go, and waitersTurns how often a thing is measured while they wait, and then
	// while none does, after some that are left out: a hundred calls that begin or end at once are busy with themselves.
	waitersRounds, waitersTurns, waitersSettling = 2, 40, 10
)

// playWaiters measures what acquires that wait cost those who do not, and what each of them costs the server.
func playWaiters(ctx context.Context, b *Bench) (out []report.Section, err error) {
	f, err := b.openField(ctx, unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	got, err := f.acquire(ctx, f.agent, "standing", f.place())
	if err != nil {
		return nil, err
	}
	viewer, err := f.viewer(ctx)
	if err != nil {
		return nil, err
	}
	look := measure.Timed("list", func(ctx context.Context, _ int) error {
		_, err := viewer.SandboxV1alpha1().SandboxClaims(f.namespace).List(ctx, metav1.ListOptions{})
		return err
	})
	touch := measure.Timed("touch", func(ctx context.Context, _ int) error { return f.touch(ctx, got.ClaimName) })
	busy, idle := make([]measure.Times, 2), make([]measure.Times, 2)
	add := func(to []measure.Times) error {
		times, err := measure.InTurns(ctx, waitersSettling, waitersTurns, look, touch)
		for i := range times {
			to[i] = append(to[i], times[i]...)
		}
		return err
	}
	for range f.turns(waitersRounds) {
		leave, err := f.wait(ctx, waitingCallers)
		if err == nil {
			err = add(busy)
		}
		leave()
		if err == nil {
			err = add(idle)
		}
		if err != nil {
			return nil, err
		}
	}
	section := report.Section{ID: "waiters", Title: "While acquires wait",
		About: fmt.Sprintf("%d acquires of a sandbox that no node takes wait; beside them, a person who may only look lists the claims, and the same runtime touches another. The floor is the same while none waits.", waitingCallers),
		Rows: append(beside("a list by a person", busy[0], "while none waits", idle[0], targets{p50: report.AtMost(1.2)}),
			beside("a touch by the runtime whose acquires wait", busy[1], "while none waits", idle[1], targets{p50: report.AtMost(1.2)})...),
	}
	if b.Servers != nil {
		rows, err := f.costOfWaiting(ctx)
		if err != nil {
			return nil, err
		}
		section.Rows = append(section.Rows, rows...)
	}
	return []report.Section{section}, nil
}

// costOfWaiting is what a server holds for each acquire that waits.
func (f *field) costOfWaiting(ctx context.Context) ([]report.Row, error) {
	const few, many = 20, 100
	a, err := f.heldFor(ctx, few)
	if err != nil {
		return nil, err
	}
	b, err := f.heldFor(ctx, many)
	if err != nil {
		return nil, err
	}
	_, heapA := a.Memory()
	_, heapB := b.Memory()
	what := fmt.Sprintf("one more acquire that waits (%d against %d)", many, few)
	return []report.Row{
		{What: what, Measure: "goroutines", Value: float64(b.Goroutines()-a.Goroutines()) / (many - few), Note: "those of its HTTP request included, which every request has"},
		{What: what, Measure: "heap", Unit: report.KiB, Value: float64(heapB-heapA) / 1024 / (many - few), Note: "those of its HTTP request included"},
	}, nil
}

func (f *field) heldFor(ctx context.Context, callers int) (*meter.Reading, error) {
	leave, err := f.wait(ctx, callers)
	defer leave()
	if err != nil {
		return nil, err
	}
	ours, err := f.ours()
	if err != nil {
		return nil, err
	}
	if err := meter.CollectGarbage(ctx, ours); err != nil {
		return nil, err
	}
	return meter.Read(ctx, meter.FromREST(ourServer, ours))
}

// wait lets acquires wait for a sandbox that never comes, until the function that it gives is called. It gives an error if
// one of them does not wait.
func (f *field) wait(ctx context.Context, callers int) (leave func(), err error) {
	waiting, hangUp := context.WithCancel(ctx)
	var all sync.WaitGroup
	ended := make(chan error, callers)
	for range callers {
		all.Go(func() {
			_, err := f.agent.SandboxV1alpha1().SandboxClaims(f.namespace).Acquire(waiting, v1alpha1.AnyClaim,
				framework.MakeAcquire(f.runtime, "waiting", handleOf(onNoNode)), metav1.CreateOptions{})
			ended <- err
		})
	}
	leave = func() {
		hangUp()
		all.Wait()
	}
	for {
		seats, err := f.Seats(ctx)
		if err != nil || seats["sandbox-acquire"] >= callers {
			return leave, err
		}
		select {
		case err := <-ended:
			return leave, fmt.Errorf("an acquire ended before all waited: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// viewer is a person who has Kubernetes' own role view in the namespace. An administrator's requests are exempt from
// Priority and Fairness, and would prove nothing.
func (f *field) viewer(ctx context.Context) (versioned.Interface, error) {
	const name = "viewer"
	for _, object := range []framework.Object{
		serviceAccount(f.namespace, name),
		bound(f.namespace, name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}),
	} {
		if err := f.Client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("making %T: %w", object, err)
		}
	}
	config, err := f.AsServiceAccount(ctx, f.namespace, name)
	if err != nil {
		return nil, err
	}
	return versioned.NewForConfig(config)
}
