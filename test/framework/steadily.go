package framework

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Tally is what became of calls at a rate.
type Tally struct {
	// Count is how many were made, and Longest how long the longest took.
	Count   int
	Longest time.Duration
	// Failures say when which failed, and of what.
	Failures []string
}

// Steadily makes so many calls a second, each at its time, whether or not those before have come back, until the function
// that it gives is called. That waits for those under way. do is given how many calls were made before.
func Steadily(t testing.TB, perSecond int, do func(ctx context.Context, before int) error) (stop func() Tally) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var (
		mu    sync.Mutex
		tally Tally
		calls sync.WaitGroup
		once  sync.Once
	)
	call := func(before int) {
		began := time.Now()
		err := do(t.Context(), before)
		mu.Lock()
		defer mu.Unlock()
		tally.Count++
		tally.Longest = max(tally.Longest, time.Since(began))
		if err != nil {
			tally.Failures = append(tally.Failures, fmt.Sprintf("call %d, begun at %s: %v", before, began.Format(time.StampMilli), err))
		}
	}
	began := time.Now()
	calls.Go(func() {
		for before := 0; ; before++ {
			select {
			case <-time.After(time.Until(began.Add(time.Duration(before) * time.Second / time.Duration(perSecond)))):
				calls.Go(func() { call(before) })
			case <-ctx.Done():
				return
			}
		}
	})
	end := func() { once.Do(cancel); calls.Wait() }
	t.Cleanup(end)
	return func() Tally {
		end()
		return tally
	}
}

// Requests counts what a client's transport sends, and what of it was refused, broke, or was answered by an error.
type Requests struct {
	sent, failed atomic.Int64

	mu  sync.Mutex
	why map[string]int
}

// Count is a transport that counts: rest.Config's Wrap takes it.
func (r *Requests) Count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.sent.Add(1)
		answer, err := next.RoundTrip(request)
		switch {
		case err != nil:
			r.note(err.Error())
		case answer.StatusCode >= http.StatusBadRequest:
			r.note(answer.Status)
		}
		return answer, err
	})
}

func (r *Requests) note(why string) {
	r.failed.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == nil {
		r.why = map[string]int{}
	}
	r.why[why]++
}

// String says how many were sent, and how many failed of what.
func (r *Requests) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d requests, of which failed %d %v", r.sent.Load(), r.failed.Load(), r.why)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
