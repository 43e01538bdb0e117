package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/meter"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

const (
	standingTurns      = 60
	standingFreshTurns = 8
	standingIdle       = 6 * time.Second
	// tellEvery is after how many claims it is told that so many more stand: thousands take many minutes.
	tellEvery = 500

	// heapTarget is half of what a standing claim took of the leader's heap, in KiB, when that was first measured (58.4).
	heapTarget = 29.2
)

// sizes are how many claims stand when the serial ones are measured again. The first is what the others are held against. The
// loads bring most of the short form's second.
func (b *Bench) sizes() []int {
	if len(b.given) > 0 {
		return b.given
	}
	if b.full {
		return []int{100, 1000, 5000}
	}
	return []int{100, 300}
}

// atSize is what was measured with so many claims standing.
type atSize struct {
	claims                                                int
	acquire, get, touch, fresh, bare, released, bareEnded measure.Times
	started                                               started
	heap                                                  int64
	goroutines                                            int
}

// playStanding measures the serial ones again and again with ever more claims of one runtime standing, and what those cost by
// standing. Where it comes to an end too early, it tells of the sizes that it came to.
func playStanding(ctx context.Context, b *Bench) (_ []report.Section, err error) {
	f, err := b.openField(ctx, unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	// A server of its own begins anew: what earlier scenarios did stands in the last one's watch history for a while.
	server := b.Servers.List[0]
	if err := errors.Join(server.Stop(), server.Start(ctx)); err != nil {
		return nil, err
	}
	costs := report.Section{ID: "standing-costs", Title: "What claims cost by standing",
		About: "Bound claims of one runtime that nobody uses. The heap is what is alive after a collection; what a claim takes is the growth from the first size to the last, shared out."}
	var sizes []atSize
	var loads []report.Section
	standing := 0
	for _, size := range b.sizes() {
		if standing, err = f.fill(ctx, standing, size); err != nil {
			break
		}
		var at *atSize
		if at, err = f.at(ctx, standing, &costs); err != nil {
			break
		}
		if sizes = append(sizes, *at); len(sizes) > 1 {
			continue
		}
		b.say("           %d at once, then steadily", b.burst())
		var more int
		if loads, more, err = f.loads(ctx); err != nil {
			break
		}
		standing += more
	}
	if len(sizes) == 0 {
		return nil, err
	}
	if len(sizes) > 1 {
		memoryRows(sizes, &costs)
	}
	return append(loads, sizeSection(sizes), costs, startSection(sizes)), err
}

// at measures with so many claims standing.
func (f *field) at(ctx context.Context, claims int, costs *report.Section) (*atSize, error) {
	at := &atSize{claims: claims}
	for _, do := range []func(context.Context) error{
		func(ctx context.Context) error { return f.idle(ctx, at, costs) },
		func(ctx context.Context) error { return f.again(ctx, at) },
		func(ctx context.Context) error { return f.restart(ctx, at) },
	} {
		if err := do(ctx); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// fill makes claims until so many stand, and says how many do: more, if there were more.
func (f *field) fill(ctx context.Context, standing, size int) (int, error) {
	f.say("           filling up from %d claims to %d", standing, size)
	var made atomic.Int64
	return max(standing, size), spread(ctx, fillers, size-standing, func(ctx context.Context, i int) error {
		_, err := f.acquire(ctx, f.agent, f.standingSession(standing+i), f.place())
		if n := made.Add(1); err == nil && n%tellEvery == 0 {
			f.say("           %d more", n)
		}
		return err
	})
}

func (f *field) standingSession(i int) string { return fmt.Sprintf("standing-%d", i) }

// again measures the serial ones.
func (f *field) again(ctx context.Context, at *atSize) error {
	session := f.standingSession(0)
	got, err := f.acquire(ctx, f.agent, session, f.place())
	if err != nil {
		return err
	}
	times, err := measure.InTurns(ctx, 10, f.turns(standingTurns),
		measure.Timed("acquire", func(ctx context.Context, _ int) error {
			_, err := f.acquire(ctx, f.agent, session, f.place())
			return err
		}),
		measure.Timed(theGet, func(ctx context.Context, _ int) error { return f.get(ctx, f.agent, got.ClaimName) }),
		measure.Timed("touch", func(ctx context.Context, _ int) error { return f.touch(ctx, got.ClaimName) }))
	if err != nil {
		return err
	}
	at.acquire, at.get, at.touch = times[0], times[1], times[2]
	lives := &lives{field: f, where: f.place()}
	if err := lives.serial(ctx, f.turns(standingFreshTurns)); err != nil {
		return err
	}
	at.fresh, at.bare, at.released, at.bareEnded = lives.made, lives.bareMade, lives.ended, lives.bareEnded
	return nil
}

// idle measures what the claims cost while nobody uses them, and what it costs to look at each without anything to do.
func (f *field) idle(ctx context.Context, at *atSize, into *report.Section) error {
	ours, err := f.ours()
	if err != nil {
		return err
	}
	if err := meter.CollectGarbage(ctx, ours); err != nil {
		return err
	}
	reading, err := meter.Read(ctx, meter.FromREST(ourServer, ours))
	if err != nil {
		return err
	}
	_, at.heap = reading.Memory()
	at.goroutines = reading.Goroutines()
	idle, err := f.during(ctx, func() error { return pause(ctx, standingIdle) })
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d claims standing", at.claims)
	into.Rows = append(into.Rows,
		report.Row{What: what, Measure: "heap", Unit: report.MiB, Value: float64(at.heap) / (1 << 20)},
		report.Row{What: what, Measure: "goroutines", Value: float64(at.goroutines)})
	into.Rows = append(into.Rows, idleRows(what+", idle", idle[ourServer], report.AtMost(0))...)
	looked, err := f.during(ctx, func() error { return f.lookAtAll(ctx, at.claims) })
	if err != nil {
		return err
	}
	mean, count := looked[ourServer].Mean(reconcileSeconds, nil)
	into.Rows = append(into.Rows,
		report.Row{What: what + ", each looked at", Measure: "reconciles", Value: float64(count)},
		report.Row{What: what + ", each looked at", Measure: "mean reconcile", Unit: report.Milliseconds, Value: measure.Milliseconds(mean)},
		report.Row{What: what + ", each looked at", Measure: "writes", Value: float64(looked[ourServer].IdleWrites()), Target: report.AtMost(0)})
	return nil
}

// lookAtAll has the controller look at every claim of the runtime: how long they may go unused is changed a little. It waits
// until all were looked at.
func (f *field) lookAtAll(ctx context.Context, claims int) error {
	ours, err := f.ours()
	if err != nil {
		return err
	}
	source := meter.FromREST(ourServer, ours)
	before, err := meter.Read(ctx, source)
	if err != nil {
		return err
	}
	f.nudged++
	patch := fmt.Sprintf(`{"spec":{"sandbox":{"idleTimeout":%q}}}`, (idleTimeout + time.Duration(f.nudged)*time.Second).String())
	runtime := framework.MakeRuntime(f.runtime, f.namespace).Obj()
	if err := f.Client.Patch(ctx, runtime, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("changing the AgentRuntime: %w", err)
	}
	for {
		now, err := meter.Read(ctx, source)
		if err != nil {
			return err
		}
		change, err := meter.Between(before, now)
		if err != nil {
			return err
		}
		if _, count := change.Mean(reconcileSeconds, nil); count >= claims {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// memoryRows tell what one more standing claim takes.
func memoryRows(sizes []atSize, into *report.Section) {
	first, last := sizes[0], sizes[len(sizes)-1]
	claims := float64(last.claims - first.claims)
	into.Rows = append(into.Rows,
		report.Row{What: "one more claim standing", Measure: "heap", Unit: report.KiB, Value: float64(last.heap-first.heap) / 1024 / claims, Target: report.AtMost(heapTarget)},
		report.Row{What: "one more claim standing", Measure: "goroutines", Value: float64(last.goroutines-first.goroutines) / claims, Target: report.AtMost(0.05)})
}

// sizeSection holds each size against the first.
func sizeSection(sizes []atSize) report.Section {
	section := report.Section{ID: "standing", Title: "With many claims standing",
		About: fmt.Sprintf("The serial ones, measured again with ever more Bound claims of the same runtime in the same namespace; the floor is the same with %d. What the cluster's own paths took beside them stands below each: they grow slower, too.", sizes[0].claims)}
	for _, thing := range []struct {
		name   string
		of     func(atSize) measure.Times
		target *report.Target
	}{
		{"acquire of a Bound claim", func(a atSize) measure.Times { return a.acquire }, report.AtMost(1.2)},
		{theGet, func(a atSize) measure.Times { return a.get }, nil},
		{"touch within the throttle", func(a atSize) measure.Times { return a.touch }, report.AtMost(1.2)},
		{"acquire of a new claim", func(a atSize) measure.Times { return a.fresh }, report.AtMost(1.2)},
		{theBare, func(a atSize) measure.Times { return a.bare }, nil},
		{"release to all gone", func(a atSize) measure.Times { return a.released }, report.AtMost(1.2)},
		{theBareEnd, func(a atSize) measure.Times { return a.bareEnded }, nil},
	} {
		plot := report.Plot{Kind: report.Lines, Title: thing.name, XLabel: "claims standing", YLabel: "ms", Series: []report.Series{{Name: "p50"}, {Name: "p90"}}}
		for _, at := range sizes {
			times := thing.of(at)
			for i, share := range []float64{0.5, 0.9} {
				plot.Series[i].X = append(plot.Series[i].X, float64(at.claims))
				plot.Series[i].Y = append(plot.Series[i].Y, measure.Milliseconds(times.At(share)))
			}
		}
		section.Rows = append(section.Rows, againstFirst(thing.name, sizes, thing.of, thing.target)...)
		section.Plots = append(section.Plots, plot)
	}
	return section
}

// againstFirst gives a row for each size at which something was measured, held against the first.
func againstFirst(name string, sizes []atSize, of func(atSize) measure.Times, target *report.Target) []report.Row {
	first := sizes[0]
	var rows []report.Row
	for _, at := range sizes {
		times := of(at)
		if len(times) == 0 {
			continue // the short form leaves it out
		}
		row := report.Row{What: fmt.Sprintf("%s, %d standing", name, at.claims), Measure: "p50", Unit: report.Milliseconds,
			Value: measure.Milliseconds(times.At(0.5)), Samples: len(times)}
		if at.claims != first.claims {
			row.Floor, row.FloorName = ptr.To(measure.Milliseconds(of(first).At(0.5))), fmt.Sprintf("itself at %d", first.claims)
			row.Target = target
		}
		rows = append(rows, row)
	}
	return rows
}
