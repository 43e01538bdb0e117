package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

const (
	freshWarmUp    = 1
	freshFakeTurns = 20
	freshRealTurns = 3
	// together is how many new claims are asked for at once, so many times.
	together, togetherTurns = 20, 1

	theBare    = "bare Deployment+Service+NetworkPolicy"
	theBareEnd = "deletion of the bare three"
)

// freshTarget is what a new claim to Bound is to reach beside its bare objects.
var freshTarget = targets{p50: report.AtMost(1.2)}

// playFresh measures a claim's whole life beside that of its three objects: from the call to Bound, from release to nothing
// left, one at a time and many at once, where containers run and where none do.
func playFresh(ctx context.Context, b *Bench) (out []report.Section, err error) {
	f, err := b.openField(ctx, unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	if err := f.collected(ctx); err != nil {
		return nil, err
	}
	for _, p := range b.places() {
		lives := &lives{field: f, where: p.name}
		if err := lives.serial(ctx, p.turns(b)); err != nil {
			return out, err
		}
		out = append(out, lives.sections(p)...)
		if p.name == onReal && !b.full {
			continue // twenty containers at once are a minute and more
		}
		section, err := f.manyFresh(ctx, p)
		if err != nil {
			return out, err
		}
		out = append(out, section)
	}
	costs, err := f.costs(ctx)
	return append(out, costs), err
}

// collected waits until what belonged to a claim is collected once the claim has gone: the garbage collector learns of a new
// group late.
func (f *field) collected(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("what belonged to a deleted claim was not collected within two minutes"))
	defer cancel()
	if _, err := f.acquire(ctx, f.agent, "first", f.place()); err != nil {
		return err
	}
	return f.end(ctx, "first")
}

// lives are claims' lives and their bare counterparts', taken in turns.
type lives struct {
	*field
	where string

	made, bareMade   measure.Times
	ended, bareEnded measure.Times
	steps, bareSteps timeline
}

func (l *lives) serial(ctx context.Context, turns int) error {
	times, err := measure.InTurns(ctx, freshWarmUp, turns, measure.Path{Name: "a claim's life", Take: l.claim}, measure.Path{Name: "a bare sandbox's life", Take: l.bare})
	l.made, l.bareMade = times[0], times[1]
	return err
}

// claim lives one claim's life, and gives how long it took to be Bound.
func (l *lives) claim(ctx context.Context, turn int) (time.Duration, error) {
	session := fmt.Sprintf("%s-%d", l.where, turn)
	began := time.Now()
	got, err := l.acquire(ctx, l.agent, session, l.where)
	answered := time.Now()
	if err != nil {
		return 0, err
	}
	if err := l.end(ctx, session); err != nil {
		return 0, err
	}
	if turn >= freshWarmUp {
		l.ended = append(l.ended, time.Since(answered))
		steps := l.eyes.steps(got.ClaimName)
		steps[stepAnswered] = answered
		l.steps.add(began, steps)
	}
	return answered.Sub(began), nil
}

// bare does the same without a claim.
func (l *lives) bare(ctx context.Context, turn int) (time.Duration, error) {
	name := fmt.Sprintf("bare-%s-%d", l.where, turn)
	began := time.Now()
	if err := l.makeBare(ctx, name, l.where); err != nil {
		return 0, err
	}
	made := time.Now()
	if err := l.removeBare(ctx, name); err != nil {
		return 0, err
	}
	if turn >= freshWarmUp {
		l.bareEnded = append(l.bareEnded, time.Since(made))
		l.bareSteps.add(began, l.eyes.steps(name))
	}
	return made.Sub(began), nil
}

func (l *lives) sections(p place) []report.Section {
	life := report.Section{
		ID: "fresh-" + p.name, Title: "A new claim, one at a time, " + p.words,
		About: "From acquire to its Bound answer, and from release to nothing left (claim, Deployment, ReplicaSet, Pod, Service, EndpointSlice, NetworkPolicy); the floor is the same three objects, created one after the other by an ordinary ServiceAccount until the Deployment is ready and the Service routed, and their deletion until nothing is left.",
		Rows:  append(beside("acquire of a new claim", l.made, theBare, l.bareMade, freshTarget), beside("release to all gone", l.ended, theBareEnd, l.bareEnded, targets{})...),
		Plots: []report.Plot{
			distribution("A new claim to Bound, "+p.words, line{"acquire", l.made}, line{theBare, l.bareMade}),
			distribution("Release to all gone, "+p.words, line{"release", l.ended}, line{theBareEnd, l.bareEnded}),
		},
	}
	steps := report.Section{
		ID: "steps-" + p.name, Title: "A new claim step by step, " + p.words,
		About: "The median time since the call at which a watch of the benchmark's own showed each step, in the order in which they came, and how long after the step before it.",
		Rows:  stepRows(&l.steps, &l.bareSteps),
	}
	return []report.Section{life, steps}
}

// manyFresh measures new claims that are asked for at once.
func (f *field) manyFresh(ctx context.Context, p place) (report.Section, error) {
	var ours, floor measure.Load
	round := 0
	measured := func(m maker, into *measure.Load) func(context.Context, int) error {
		return func(ctx context.Context, _ int) error {
			round++
			prefix := fmt.Sprintf("m%d", round)
			load, err := m.arrive(ctx, prefix, measure.AtOnce(together))
			if err != nil {
				return err
			}
			into.Add(load)
			return m.clear(ctx, prefix, together)
		}
	}
	claims, bare := f.makers(p.name)
	if _, err := measure.InTurns(ctx, 0, f.turns(togetherTurns),
		measure.Timed("claims at once", measured(claims, &ours)), measure.Timed("bare sandboxes at once", measured(bare, &floor))); err != nil {
		return report.Section{}, err
	}
	what := fmt.Sprintf("acquire of a new claim, %d at once", together)
	return report.Section{
		ID: "fresh-parallel-" + p.name, Title: fmt.Sprintf("%d new claims at once, %s", together, p.words),
		Rows:  append([]report.Row{perSecond(what, ours.PerSecond(), theBare, floor.PerSecond(), nil)}, beside(what, ours.Times, theBare, floor.Times, freshTarget)...),
		Plots: []report.Plot{distribution(fmt.Sprintf("%d at once, %s", together, p.words), line{"acquire", ours.Times}, line{theBare, floor.Times})},
	}, nil
}
