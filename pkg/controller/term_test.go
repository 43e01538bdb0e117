package controller

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

// patience is for what another goroutine does by itself.
const patience = 30 * time.Second

// fenced is a term, and a client that it fences, of a server that counts what reaches it.
type fenced struct {
	*term
	t      *testing.T
	clock  *clocktesting.FakeClock
	client *http.Client
	url    string
	writes atomic.Int32
	reads  atomic.Int32
	// answer is what the server does with a write before it answers.
	answer func(*http.Request)
}

func newFenced(t *testing.T) *fenced {
	t.Helper()
	f := &fenced{t: t, clock: clocktesting.NewFakeClock(time.Now()), answer: func(*http.Request) {}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			f.reads.Add(1)
			return
		}
		f.writes.Add(1)
		f.answer(r)
	}))
	t.Cleanup(server.Close)
	f.term, f.url = newTerm(t.Context(), DefaultElection(), f.clock), server.URL
	t.Cleanup(func() { f.finish(errReleased) })
	var err error
	f.client, err = rest.HTTPClientFor(f.fence(&rest.Config{Host: server.URL}, "own"))
	require.NoError(t, err)
	return f
}

// send sends a request as a controller does, whose context is the term's.
func (f *fenced) send(method string) error {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.ctx, method, f.url, strings.NewReader("{}"))
	require.NoError(f.t, err)
	response, err := f.client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func TestFence_WritesAreSentWhileTheLeaseIsHeldAndNotElse(t *testing.T) {
	tests := map[string]struct {
		before func(*fenced)
		refuse error // nil: it is sent
	}{
		"before the Lease is held: not": {func(*fenced) {}, errNotHeld},
		"held: sent":                    {func(f *fenced) { f.renewed(f.clock.Now()) }, nil},
		"just in time: sent":            {func(f *fenced) { f.renewed(f.clock.Now()); f.clock.Step(defaultRenewDeadline - 1) }, nil},
		"paused past the deadline: not": {func(f *fenced) { f.renewed(f.clock.Now()); f.clock.Step(defaultRenewDeadline) }, errLeaseLost},
		"renewed in time: sent": {func(f *fenced) {
			f.renewed(f.clock.Now())
			f.clock.Step(9 * time.Second)
			f.renewed(f.clock.Now())
			f.clock.Step(9 * time.Second)
		}, nil},
		"woken and granted too late: not": {func(f *fenced) { sent := f.clock.Now(); f.clock.Step(time.Minute); f.renewed(sent) }, errLeaseLost},
		"renewed slowly, counted from when it was asked: not": {func(f *fenced) {
			sent := f.clock.Now()
			f.clock.Step(4 * time.Second)
			f.renewed(sent)
			f.clock.Step(6 * time.Second)
		}, errLeaseLost},
		"after a night's sleep, in which the monotonic clock stood still: not": {func(f *fenced) {
			f.renewed(f.clock.Now())
			f.clock.SetTime(f.clock.Now().Round(0).Add(8 * time.Hour))
		}, errLeaseLost},
		"held by another: not":                     {func(f *fenced) { f.renewed(f.clock.Now()); f.heldBy("other") }, errLeaseLost},
		"held by nobody after us: not":             {func(f *fenced) { f.renewed(f.clock.Now()); f.heldBy("") }, errLeaseLost},
		"held by another before us: sent":          {func(f *fenced) { f.heldBy("other"); f.renewed(f.clock.Now()) }, nil},
		"given up: not":                            {func(f *fenced) { f.renewed(f.clock.Now()); f.finish(errReleased) }, errReleased},
		"lost and granted again: not in this term": {func(f *fenced) { f.renewed(f.clock.Now()); f.heldBy("other"); f.renewed(f.clock.Now()) }, errLeaseLost},
		"lapsed and granted again: not in the same": {func(f *fenced) {
			f.renewed(f.clock.Now())
			f.clock.Step(time.Minute)
			f.check()
			f.renewed(f.clock.Now())
		}, errLeaseLost},
	}
	for name, tt := range tests {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			t.Run(name+", "+method, func(t *testing.T) {
				f := newFenced(t)
				before := fencedCount(t)
				tt.before(f)
				err := f.send(method)
				if tt.refuse == nil {
					require.NoError(t, err)
					assert.EqualValues(t, 1, f.writes.Load())
					return
				}
				require.Error(t, err)
				assert.ErrorIs(t, f.mayWrite(), tt.refuse)
				assert.Zero(t, f.writes.Load(), "nothing was sent")
				assert.InDelta(t, 1, fencedCount(t)-before, 0)
			})
		}
	}
}

func fencedCount(t *testing.T) float64 {
	t.Helper()
	count, err := testutil.GetCounterMetricValue(fencedWrites.WithLabelValues("own"))
	require.NoError(t, err)
	return count
}

func TestFence_ReadsAreSentUntilTheTermIsOver(t *testing.T) {
	f := newFenced(t)
	require.NoError(t, f.send(http.MethodGet), "caches are filled before the Lease is held")
	f.finish(errLeaseLost)
	require.Error(t, f.send(http.MethodGet))
	assert.EqualValues(t, 1, f.reads.Load())
}

// What is left of a term's goroutines may have contexts of their own.
func TestFence_AfterItsTerm_RefusesWhoeverIsLeft(t *testing.T) {
	f := newFenced(t)
	f.renewed(f.clock.Now())
	f.finish(errLeaseLost)
	for _, method := range []string{http.MethodGet, http.MethodPatch} {
		request, err := http.NewRequestWithContext(t.Context(), method, f.url, http.NoBody)
		require.NoError(t, err)
		response, err := f.client.Do(request)
		if response != nil {
			_ = response.Body.Close()
		}
		require.ErrorIs(t, err, errLeaseLost)
	}
	assert.Zero(t, f.reads.Load()+f.writes.Load())
}

func TestTerm_LostUnderAWrite_TheWriteIsCalledOff(t *testing.T) {
	f := newFenced(t)
	arrived := make(chan struct{})
	f.answer = func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not hear that nobody waits for the answer
		close(arrived)
		<-r.Context().Done()
	}
	f.renewed(f.clock.Now())
	sent := make(chan error, 1)
	go func() { sent <- f.send(http.MethodPatch) }()
	<-arrived
	f.heldBy("other")
	select {
	case err := <-sent:
		assert.ErrorIs(t, err, errLeaseLost)
	case <-time.After(patience):
		t.Fatal("the write is still waited for")
	}
	assert.ErrorIs(t, context.Cause(f.ctx), errLeaseLost)
}

func TestTerm_EndsByItself(t *testing.T) {
	tests := map[string]struct {
		before func(*fenced)
		after  time.Duration
		why    error
	}{
		"not renewed in time":             {func(f *fenced) { f.renewed(f.clock.Now()) }, defaultRenewDeadline, errLeaseLost},
		"the host gone while another led": {func(*fenced) {}, defaultSilence(), errHostGone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFenced(t)
			tt.before(f)
			f.heard(f.clock.Now())
			require.Eventually(t, f.clock.HasWaiters, patience, time.Millisecond)
			f.clock.Step(tt.after - time.Nanosecond)
			require.NoError(t, f.ctx.Err())
			f.clock.Step(time.Nanosecond)
			select {
			case <-f.ctx.Done():
				assert.ErrorIs(t, context.Cause(f.ctx), tt.why)
			case <-time.After(patience):
				t.Fatal("the term goes on")
			}
		})
	}
}

func TestTerm_GoesOnWhileItIsRenewed(t *testing.T) {
	f := newFenced(t)
	for range 10 {
		f.renewed(f.clock.Now())
		f.heard(f.clock.Now())
		require.Eventually(t, f.clock.HasWaiters, patience, time.Millisecond)
		f.clock.Step(defaultRenewDeadline - time.Second)
		require.NoError(t, f.mayWrite())
	}
	assert.NoError(t, f.ctx.Err())
}

func defaultSilence() time.Duration {
	election := DefaultElection()
	return election.silence()
}
