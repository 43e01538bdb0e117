package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Load is what many calls came to.
type Load struct {
	// Times are those of the calls that were counted.
	Times Times
	// Took is from the first of them to the end of the last.
	Took time.Duration
}

// Add puts another load to this one, as if the two had been one after the other.
func (l *Load) Add(other Load) {
	l.Times, l.Took = append(l.Times, other.Times...), l.Took+other.Took
}

// PerSecond is how many calls ended in a second; 0 if there were none.
func (l Load) PerSecond() float64 {
	if l.Took <= 0 {
		return 0
	}
	return float64(len(l.Times)) / l.Took.Seconds()
}

// Closed has as many callers as said call again as soon as they are answered, for so long after a warm-up. It ends with the
// first call that fails.
func Closed(ctx context.Context, callers int, warmUp, measured time.Duration, do func(ctx context.Context, caller int) error) (Load, error) {
	began := time.Now()
	counted, end := began.Add(warmUp), began.Add(warmUp+measured)
	each := make([]Times, callers)
	err := atOnce(ctx, callers, func(ctx context.Context, caller int) error {
		for ctx.Err() == nil {
			at := time.Now()
			if !at.Before(end) {
				return nil
			}
			if err := do(ctx, caller); err != nil {
				return err
			}
			if now := time.Now(); !at.Before(counted) && now.Before(end) {
				each[caller] = append(each[caller], now.Sub(at))
			}
		}
		return ctx.Err()
	})
	out := Load{Took: measured}
	for _, times := range each {
		out.Times = append(out.Times, times...)
	}
	return out, err
}

// Open makes a call at each of the given times after its begin, whether or not earlier ones have ended, and waits for all. A
// call's time counts from when it was due: what is late to be asked waits, too. It ends with the first call that fails.
func Open(ctx context.Context, arrivals []time.Duration, do func(ctx context.Context, call int) error) (Load, error) {
	out := Load{Times: make(Times, len(arrivals))}
	began := time.Now()
	err := atOnce(ctx, len(arrivals), func(ctx context.Context, call int) error {
		due := began.Add(arrivals[call])
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		err := do(ctx, call)
		out.Times[call] = time.Since(due)
		return err
	})
	out.Took = time.Since(began)
	return out, err
}

// Poisson gives the times at which calls arrive that know nothing of each other, so many a second on average, for so long.
// The same seed gives the same times.
func Poisson(seed uint64, perSecond float64, during time.Duration) []time.Duration {
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // arrivals are no secret, and are to be the same again
	var out []time.Duration
	for at := 0.0; ; {
		at += random.ExpFloat64() / perSecond
		arrival := time.Duration(at * float64(time.Second))
		if arrival >= during {
			return out
		}
		out = append(out, arrival)
	}
}

// AtOnce gives as many arrivals at the same time.
func AtOnce(calls int) []time.Duration { return make([]time.Duration, calls) }

// atOnce runs n things beside each other and gives the first error that is not only the others' end.
func atOnce(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := do(ctx, i); err != nil {
				cancel(fmt.Errorf("call %d: %w", i, err))
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}
