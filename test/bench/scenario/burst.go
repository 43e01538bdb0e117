package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

const (
	// shortBurst and fullBurst are how many sandboxes are asked for at once, in the short form and the long one.
	shortBurst, fullBurst = 100, 200
	// steadily is how long a steady load lasts in the short form.
	steadily = 5 * time.Second
	// arrivalsSeed makes the same arrivals in each run.
	arrivalsSeed = 37
)

func (b *Bench) burst() int {
	if b.full {
		return fullBurst
	}
	return shortBurst
}

// maker makes a sandbox of a name until it can be used, and removes it.
type maker struct {
	name         string
	make, remove func(ctx context.Context, name string) error
}

// makers are ours and the floor.
func (f *field) makers(where string) (ours, floor maker) {
	acquire := func(ctx context.Context, name string) error {
		_, err := f.acquire(ctx, f.agent, name, where)
		return err
	}
	bare := func(ctx context.Context, name string) error { return f.makeBare(ctx, name, where) }
	return maker{"acquire", acquire, f.end}, maker{theBare, bare, f.removeBare}
}

// arrive makes sandboxes as they arrive.
func (m maker) arrive(ctx context.Context, prefix string, arrivals []time.Duration) (measure.Load, error) {
	return measure.Open(ctx, arrivals, func(ctx context.Context, i int) error { return m.make(ctx, numbered(prefix, i)) })
}

// clear removes them all.
func (m maker) clear(ctx context.Context, prefix string, many int) error {
	_, err := measure.Open(ctx, measure.AtOnce(many), func(ctx context.Context, i int) error { return m.remove(ctx, numbered(prefix, i)) })
	return err
}

func numbered(prefix string, i int) string { return fmt.Sprintf("%s-%d", prefix, i) }

// loads measures many acquires at once, which gives the capacity, and steady loads of a part of it. The claims stay, as those
// of agents who go on; the bare sandboxes are removed before ours are made. It gives how many claims there are more.
func (f *field) loads(ctx context.Context) (sections []report.Section, claims int, err error) {
	ours, floor := f.makers(f.place())
	burst := f.burst()
	bareLoad, load, err := f.load(ctx, "burst", measure.AtOnce(burst), ours, floor)
	if err != nil {
		return nil, 0, err
	}
	what := fmt.Sprintf("%d acquires at once", burst)
	section := report.Section{ID: "burst", Title: what,
		About: "Each of another session, all at the same moment, by one ServiceAccount; the floor is as many bare sandboxes made at once by one. The rate is from the first call to the last answer.",
		Rows: append([]report.Row{perSecond(what, load.PerSecond(), theBare, bareLoad.PerSecond(), nil)},
			beside(what, load.Times, theBare, bareLoad.Times, targets{})...),
		Plots: []report.Plot{distribution(what, line{ours.name, load.Times}, line{theBare, bareLoad.Times})},
	}
	capacity := load.PerSecond()
	steady := report.Section{ID: "poisson", Title: "A steady load",
		About: fmt.Sprintf("Sandboxes are asked for at times that know nothing of each other (Poisson), at a part of the %.1f a second that %s came to. A call's time counts from when it was due.", capacity, what)}
	claims = burst
	for _, part := range []float64{0.5, 0.8} {
		arrivals := measure.Poisson(arrivalsSeed, part*capacity, f.long(steadily))
		bareLoad, load, err := f.load(ctx, fmt.Sprintf("steady%.0f", part*100), arrivals, ours, floor)
		if err != nil {
			return nil, 0, err
		}
		claims += len(arrivals)
		what := fmt.Sprintf("acquire of a new claim at %.0f %% of capacity, %.1f a second", part*100, part*capacity)
		steady.Rows = append(steady.Rows, beside(what, load.Times, theBare, bareLoad.Times, targets{})...)
		steady.Plots = append(steady.Plots, distribution(fmt.Sprintf("At %.0f %% of capacity", part*100), line{ours.name, load.Times}, line{theBare, bareLoad.Times}))
	}
	return []report.Section{section, steady}, claims, nil
}

// load has bare sandboxes, then ours, made as they arrive.
func (f *field) load(ctx context.Context, prefix string, arrivals []time.Duration, ours, floor maker) (bare, claims measure.Load, err error) {
	if bare, err = floor.arrive(ctx, "bare-"+prefix, arrivals); err != nil {
		return bare, claims, err
	}
	if err = floor.clear(ctx, "bare-"+prefix, len(arrivals)); err != nil {
		return bare, claims, err
	}
	claims, err = ours.arrive(ctx, prefix, arrivals)
	return bare, claims, err
}
