package scenario

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/altairalabs/omnia-sandboxes/test/meter"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

const (
	// fillers are the callers that make many claims.
	fillers = 32

	reconcileSeconds = "sandbox_omnia_reconcile_duration_seconds"

	percentOfCore report.Unit = "% of a core"
)

// idleRows tell what a server does while nobody asks anything of it; writes are held against their target.
func idleRows(what string, change *meter.Change, writes *report.Target) []report.Row {
	_, reconciles := change.Mean(reconcileSeconds, nil)
	return []report.Row{
		{What: what, Measure: "processor time", Unit: percentOfCore, Value: 100 * change.CPU().Seconds() / change.Took().Seconds()},
		{What: what, Measure: "reconciles", Unit: report.PerSecond, Value: float64(reconciles) / change.Took().Seconds()},
		{What: what, Measure: "writes", Unit: report.PerSecond, Value: float64(change.IdleWrites()) / change.Took().Seconds(), Target: writes},
	}
}

// pause lets time pass in which nothing is asked: what is measured is how a server idles.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// spread does n things with so many workers, and ends with the first that fails.
func spread(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
