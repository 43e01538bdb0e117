package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

const (
	boundTurns = 200
	// slice is how long many callers call before the floor has its turn, after a warm-up that is left out.
	slice, sliceWarmUp = 500 * time.Millisecond, 200 * time.Millisecond
	slicesEach         = 2

	theGet = "GET of the claim"
)

// boundTargets are what an acquire of a Bound claim is to reach beside a GET of it.
var boundTargets = targets{p50: report.AtMost(1.3), p99: report.AtMost(1.5)}

// way is how a caller comes to the server.
type way struct {
	name  string
	agent versioned.Interface
}

// ways are by the aggregator and, where there is one, straight.
func (f *field) ways() ([]way, error) {
	out := []way{{"aggregated", f.agent}}
	direct, err := f.direct()
	if direct != nil {
		out = append(out, way{"direct", direct})
	}
	return out, err
}

// playBound measures an acquire that finds its sandbox Bound, which is what most of an agent's acquires do.
func playBound(ctx context.Context, b *Bench) (out []report.Section, err error) {
	f, err := b.openField(ctx, unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	const session = "standing"
	got, err := f.acquire(ctx, f.agent, session, f.place())
	if err != nil {
		return nil, err
	}
	ways, err := f.ways()
	if err != nil {
		return nil, err
	}
	serial := report.Section{ID: "bound", Title: "Acquire of a Bound claim, serial",
		About: "One caller, the runtime's own ServiceAccount, which acquires the same session's sandbox again and again; the floor is the same caller's GET of the same claim."}
	many := report.Section{ID: "bound-throughput", Title: "Acquire of a Bound claim, many callers",
		About: fmt.Sprintf("Each caller calls again as soon as it is answered; acquire and GET take turns of %s.", b.long(slice))}
	for _, way := range ways {
		acquire := func(ctx context.Context, _ int) error {
			_, err := f.acquire(ctx, way.agent, session, f.place())
			return err
		}
		get := func(ctx context.Context, _ int) error { return f.get(ctx, way.agent, got.ClaimName) }
		times, err := measure.InTurns(ctx, 20, b.turns(boundTurns), measure.Timed("acquire", acquire), measure.Timed(theGet, get))
		if err != nil {
			return nil, err
		}
		serial.Rows = append(serial.Rows, beside("acquire, "+way.name, times[0], theGet, times[1], boundTargets)...)
		serial.Plots = append(serial.Plots, distribution("One caller, "+way.name, line{"acquire", times[0]}, line{theGet, times[1]}))
		if err := manyCallers(ctx, b, way.name, acquire, get, &many); err != nil {
			return nil, err
		}
	}
	return []report.Section{serial, many}, nil
}

// call is one call of one caller.
type call func(ctx context.Context, caller int) error

// manyCallers adds the figures of ever more callers on one way.
func manyCallers(ctx context.Context, b *Bench, way string, acquire, get call, into *report.Section) error {
	plot := report.Plot{Kind: report.Lines, Title: "Throughput, " + way, XLabel: "callers", YLabel: "answers a second", Series: []report.Series{{Name: "acquire"}, {Name: theGet}}}
	for _, callers := range []int{1, 8, 32, 128} {
		loads, err := closedInTurns(ctx, b, callers, acquire, get)
		if err != nil {
			return err
		}
		for i, load := range loads {
			plot.Series[i].X = append(plot.Series[i].X, float64(callers))
			plot.Series[i].Y = append(plot.Series[i].Y, load.PerSecond())
		}
		what := fmt.Sprintf("acquire, %s, %s", way, callersOf(callers))
		into.Rows = append(into.Rows, perSecond(what, loads[0].PerSecond(), theGet, loads[1].PerSecond(), report.AtLeast(0.7)))
		into.Rows = append(into.Rows, beside(what, loads[0].Times, theGet, loads[1].Times, targets{})...)
	}
	into.Plots = append(into.Plots, plot)
	return nil
}

// closedInTurns has callers do one thing, then the other, in slices that take turns.
func closedInTurns(ctx context.Context, b *Bench, callers int, calls ...call) ([]measure.Load, error) {
	out := make([]measure.Load, len(calls))
	for turn := range slicesEach {
		for i := range calls {
			at := (turn + i) % len(calls)
			load, err := measure.Closed(ctx, callers, sliceWarmUp, b.long(slice), calls[at])
			if err != nil {
				return out, err
			}
			out[at].Add(load)
		}
	}
	return out, nil
}
