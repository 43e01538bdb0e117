package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

const touchTurns = 100

// playTouch measures a touch that has nothing to write, and one that has.
func playTouch(ctx context.Context, b *Bench) (out []report.Section, err error) {
	f, err := b.openField(ctx, unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	got, err := f.acquire(ctx, f.agent, "standing", f.place())
	if err != nil {
		return nil, err
	}
	touch := measure.Timed("touch", func(ctx context.Context, _ int) error { return f.touch(ctx, got.ClaimName) })
	within, err := measure.InTurns(ctx, 20, b.turns(touchTurns), touch,
		measure.Timed(theGet, func(ctx context.Context, _ int) error { return f.get(ctx, f.agent, got.ClaimName) }))
	if err != nil {
		return nil, err
	}
	// The floor makes the claim one that has long gone unused, so that the touch after it is written.
	long := idleTimeout/2 + time.Minute
	patch := func(ctx context.Context, _ int) error { return f.patchLastUse(ctx, got.ClaimName, long) }
	past, err := measure.InTurns(ctx, 20, b.turns(touchTurns),
		measure.Path{Name: "touch", Take: func(ctx context.Context, turn int) (time.Duration, error) {
			if err := patch(ctx, turn); err != nil {
				return 0, err
			}
			return touch.Take(ctx, turn)
		}},
		measure.Timed(thePatch, patch))
	if err != nil {
		return nil, err
	}
	return []report.Section{{
		ID: "touch", Title: "Touch",
		About: "By the aggregator. Within the throttle a touch has nothing to write, and its floor is a GET; past it, it is one write, and its floor is a merge patch of lastUsedAt in the claim's status.",
		Rows: append(beside("touch within the throttle", within[0], theGet, within[1], targets{p50: report.AtMost(1.2)}),
			beside("touch past the throttle", past[0], thePatch, past[1], targets{})...),
		Plots: []report.Plot{distribution("Touch",
			line{"within the throttle", within[0]}, line{theGet, within[1]}, line{"past the throttle", past[0]}, line{thePatch, past[1]})},
	}}, nil
}

const thePatch = "merge patch of the status"
