package measure

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestTimes_AtNearestRank(t *testing.T) {
	times := Times{5, 1, 4, 2, 3}
	for _, tc := range []struct {
		share float64
		want  time.Duration
	}{{0, 1}, {0.2, 1}, {0.5, 3}, {0.9, 5}, {0.99, 5}, {1, 5}} {
		if got := times.At(tc.share); got != tc.want {
			t.Errorf("At(%v) = %v, want %v", tc.share, got, tc.want)
		}
	}
	if !slices.Equal(times, Times{5, 1, 4, 2, 3}) {
		t.Errorf("At changed the order: %v", times)
	}
	if got := times.Mean(); got != 3 {
		t.Errorf("Mean = %v, want 3", got)
	}
	if none := (Times{}); none.At(0.5) != 0 || none.Mean() != 0 {
		t.Error("no times have a time")
	}
}

func TestInTurns_EachIsFirstAsOften(t *testing.T) {
	var order []string
	path := func(name string, took time.Duration) Path {
		return Path{Name: name, Take: func(context.Context, int) (time.Duration, error) {
			order = append(order, name)
			return took, nil
		}}
	}
	got, err := InTurns(t.Context(), 1, 3, path("a", 1), path("b", 2))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "b", "a", "a", "b", "b", "a"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if !slices.Equal(got[0], Times{1, 1, 1}) || !slices.Equal(got[1], Times{2, 2, 2}) {
		t.Errorf("times %v: the warm-up is left out and each path keeps its own", got)
	}
}

func TestInTurns_ErrorNamesThePath(t *testing.T) {
	refused := errors.New("refused")
	_, err := InTurns(t.Context(), 0, 1, Timed("the floor", func(context.Context, int) error { return refused }))
	if !errors.Is(err, refused) || err.Error() != "the floor, turn 0: refused" {
		t.Errorf("got %v", err)
	}
}

func TestClosed_CallersCallAgain(t *testing.T) {
	var calls atomic.Int64
	var busy, most atomic.Int64
	load, err := Closed(t.Context(), 4, 0, 50*time.Millisecond, func(context.Context, int) error {
		now := busy.Add(1)
		defer busy.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		calls.Add(1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(len(load.Times)); n == 0 || n > calls.Load() || load.PerSecond() <= 0 {
		t.Errorf("%d times of %d calls, %v a second", n, calls.Load(), load.PerSecond())
	}
	if most.Load() > 4 {
		t.Errorf("%d callers at once, want 4 at most", most.Load())
	}
}

func TestClosed_EndsWithTheFirstFailure(t *testing.T) {
	refused := errors.New("refused")
	_, err := Closed(t.Context(), 3, 0, time.Hour, func(_ context.Context, caller int) error {
		if caller == 1 {
			return refused
		}
		return nil
	})
	if !errors.Is(err, refused) {
		t.Errorf("got %v, want the failure", err)
	}
}

func TestOpen_DoesNotWaitForEarlierCalls(t *testing.T) {
	all := make(chan struct{})
	var begun atomic.Int64
	load, err := Open(t.Context(), AtOnce(5), func(context.Context, int) error {
		if begun.Add(1) == 5 {
			close(all)
		}
		<-all // none ends before all have begun
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(load.Times) != 5 || load.Times.At(1) <= 0 || load.Took < load.Times.At(1) {
		t.Errorf("got %+v", load)
	}
}

func TestOpen_TimeCountsFromWhenTheCallWasDue(t *testing.T) {
	load, err := Open(t.Context(), []time.Duration{0, -time.Hour}, func(context.Context, int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if load.Times[1] < time.Hour {
		t.Errorf("a call that was due an hour ago took %v", load.Times[1])
	}
}

func TestOpen_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, []time.Duration{time.Hour}, func(context.Context, int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want its end", err)
	}
}

func TestPoisson(t *testing.T) {
	arrivals := Poisson(1, 100, 100*time.Second)
	if n := len(arrivals); n < 9500 || n > 10500 {
		t.Errorf("%d arrivals at 100 a second in 100 s", n)
	}
	if !slices.IsSorted(arrivals) || arrivals[len(arrivals)-1] >= 100*time.Second {
		t.Error("arrivals are not in order, or late")
	}
	if !slices.Equal(arrivals, Poisson(1, 100, 100*time.Second)) || slices.Equal(arrivals, Poisson(2, 100, 100*time.Second)) {
		t.Error("a seed gives its own arrivals, and the same again")
	}
	var squares, sum float64
	for i := 1; i < len(arrivals); i++ {
		gap := (arrivals[i] - arrivals[i-1]).Seconds()
		sum, squares = sum+gap, squares+gap*gap
	}
	mean := sum / float64(len(arrivals)-1)
	if spread := squares/float64(len(arrivals)-1) - mean*mean; spread < 0.8*mean*mean || spread > 1.2*mean*mean {
		t.Errorf("gaps of mean %v have variance %v: those of independent calls have the square of the mean", mean, spread)
	}
}
