package store

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/component-base/metrics/testutil"

	"github.com/altairalabs/omnia-sandboxes/pkg/etcd"
)

func TestLook_SeveralReplicas_AdvanceOnceInAnInterval(t *testing.T) {
	w := newWorld(t)
	a, b := w.open(), w.open()
	for round := int64(2); round < 6; round++ {
		require.NoError(t, a.look(t.Context()))
		require.NoError(t, b.look(t.Context()))
		stored, recorded := w.marks()
		assert.Equal(t, round, stored.Generation)
		assert.Equal(t, stored, recorded)
	}
	require.NoError(t, b.look(t.Context()), "a is gone")
	assert.Equal(t, int64(6), w.recorded().Generation)
}

func TestLook_CrashedBetweenTheTwoWrites_TheConfigMapFollows(t *testing.T) {
	w := newWorld(t)
	k := w.open()
	ahead := k.known()
	ahead.Generation += 5
	w.store(encode(ahead))
	require.NoError(t, k.look(t.Context()))
	assert.Equal(t, ahead, w.recorded())
}

func TestLook_ConfigMapGone_IsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	k := w.open()
	w.forget()
	require.NoError(t, k.look(t.Context()))
	assert.Equal(t, k.known(), w.recorded())
}

func TestLook_HostDoesNotAnswer_IsNoLoss(t *testing.T) {
	w := newWorld(t)
	k := w.open()
	failed := counted(t, "host")
	w.hostFails.Store(1)
	require.ErrorContains(t, k.look(t.Context()), "the host does not answer")
	assert.Equal(t, failed+1, counted(t, "host"))
	require.NoError(t, k.look(t.Context()))
}

func counted(t *testing.T, party string) float64 {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(failures.WithLabelValues(party))
	require.NoError(t, err)
	return value
}

func TestLook_HostDoesNotAnswer_ALostStoreIsNoticed(t *testing.T) {
	w := newWorld(t)
	k := w.open()
	w.empty()
	w.hostFails.Store(1)
	isLost(t, k.look(t.Context()), ReasonEmpty)
}

// keep runs a keeper and gives its end, once it waits for its time.
func (w *world) keep(ctx context.Context, k *Keeper) <-chan error {
	w.t.Helper()
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	require.Eventually(w.t, w.clock.HasWaiters, patience, time.Millisecond)
	return done
}

func TestRun_LooksOnceInAnInterval_AndEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	k := w.open()
	ctx, cancel := context.WithCancel(t.Context())
	done := w.keep(ctx, k)
	written := w.client.Watch(t.Context(), w.key)
	for generation := int64(2); generation < 5; generation++ {
		w.clock.Step(DefaultInterval)
		require.Len(t, (<-written).Events, 1)
		assert.Equal(t, generation, w.stored().Generation)
	}
	cancel()
	require.NoError(t, <-done)
	require.Error(t, k.Confirm(t.Context()), "who no longer keeps it confirms nothing")
}

func TestRun_AnotherStoreWhileServing_Ends(t *testing.T) {
	tests := map[string]struct {
		lose   func(*world, Mark)
		reason Reason
	}{
		"emptied":                        {func(w *world, _ Mark) { w.empty() }, ReasonEmpty},
		"emptied, and the ConfigMap too": {func(w *world, _ Mark) { w.empty(); w.forget() }, ReasonEmpty},
		"another's":                      {func(w *world, _ Mark) { w.store(encode(Mark{ID: "other", Generation: 99})) }, ReasonForeign},
		"set back":                       {func(w *world, m Mark) { m.Generation--; w.store(encode(m)) }, ReasonOlder},
		"set back, and the ConfigMap too": {func(w *world, m Mark) {
			m.Generation--
			w.store(encode(m))
			w.record(encode(m))
		}, ReasonOlder},
		"accepted by another replica": {func(w *world, m Mark) {
			w.store(encode(Mark{ID: "new", Generation: 1, Replaces: m.ID}))
		}, ReasonForeign},
		"another accepted elsewhere": {func(w *world, _ Mark) { w.record(encode(Mark{ID: "new", Generation: 1})) }, ReasonForeign},
		"served by another elsewhere, further on": {func(w *world, m Mark) {
			m.Generation += 7
			w.record(encode(m))
		}, ReasonOlder},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k := w.open()
			require.NoError(t, k.look(t.Context()))
			done := w.keep(t.Context(), k)
			tt.lose(w, k.known())
			w.clock.Step(DefaultInterval)
			err := <-done
			isLost(t, err, tt.reason)
			assert.Equal(t, []string{"Warning " + string(tt.reason) + ": " + err.Error()}, w.events())
		})
	}
}

func TestConfirm(t *testing.T) {
	w := newWorld(t)
	k, other := w.open(), w.open()
	require.NoError(t, k.Confirm(t.Context()))
	require.NoError(t, other.look(t.Context()))
	require.NoError(t, k.Confirm(t.Context()), "another advances it")
	seen := k.known()
	assert.Equal(t, int64(2), seen.Generation)

	done := w.keep(t.Context(), k)
	w.store(encode(Mark{ID: seen.ID, Generation: 1}))
	err := k.Confirm(t.Context())
	isLost(t, err, ReasonOlder)
	assert.Equal(t, err, <-done, "nobody waits for the next look")
	w.store(encode(seen))
	assert.Equal(t, err, k.Confirm(t.Context()), "what was served meanwhile is not known: it stays lost")
}

func TestConfirm_EtcdDoesNotAnswer_IsNoLoss(t *testing.T) {
	dir, err := os.MkdirTemp("", "etcd") //nolint:usetesting // t.TempDir has the test's name in it, and no room for a socket
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	config := etcd.Config{Dir: dir, QuotaBytes: 1 << 30}
	first, err := etcd.Start(t.Context(), config)
	require.NoError(t, err)
	w := worldOn(t, first.Endpoint())
	k := w.open()

	first.Stop()
	failed := counted(t, "etcd")
	hasty, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.ErrorContains(t, k.Confirm(hasty), "reading the store's mark from etcd")
	require.Error(t, k.look(hasty))
	assert.Equal(t, failed+2, counted(t, "etcd"))
	require.NoError(t, k.lost.Err())

	again, err := etcd.Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(again.Stop)
	require.Eventually(t, func() bool { return k.Confirm(t.Context()) == nil }, patience, 10*time.Millisecond)
	require.NoError(t, k.look(t.Context()))
}
