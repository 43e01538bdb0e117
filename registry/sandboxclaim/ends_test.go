package sandboxclaim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

// A Bound claim may end between an acquire's look at it and the write that says that it is in use.
func TestAcquireOfAClaimThatEndsUnderIt(t *testing.T) {
	for name, end := range map[string]func(w *world, name string){
		"reaped: created again": func(w *world, name string) { require.NoError(w.t, w.writes.delete(w.agent(), w.get(name))) },
		"failed: replaced": func(w *world, name string) {
			w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonSandboxNeverReady, "too long")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			name := ClaimName("my-agent", "s", "shell/default")
			w.hold("s", "shell/default")
			bound := w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
			w.set(name, func(s *sandbox.SandboxClaimStatus) { s.LastUsedAt = at(w.clock.Now().Add(-time.Hour)) })
			once := true
			w.writes.status.BeginUpdate = func(context.Context, runtime.Object, runtime.Object, *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
				if once {
					once = false
					end(w, name)
				}
				return func(context.Context, bool) {}, nil
			}
			got, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
			require.NoError(t, err)
			assert.True(t, got.Created)
			assert.NotEqual(t, bound.UID, got.ClaimUID)
		})
	}
}

// Whoever finds no place to wait asks again and again, and keeps the claim's place in the queue.
func TestAcquireAtMaxWaitersThatAsksAgainIsBelievedToWait(t *testing.T) {
	w := newWorld(t, 0)
	name := ClaimName("my-agent", "s", "shell/default")
	writes := 0
	var seen time.Time
	lease := (*sandbox.WaitLease)(nil)
	for range 60 {
		_, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 25))
		require.NoError(t, err)
		claim := w.get(name)
		if lease == nil || !lease.RenewTime.Equal(&claim.Status.Wait.RenewTime) {
			writes, seen, lease = writes+1, w.clock.Now(), claim.Status.Wait
		}
		due, _ := lifecycle.Withdraw(versionedClaim(claim), seen, w.clock.Now())
		require.False(t, due, "withdrawn while somebody asks every second")
		w.clock.Step(time.Second)
	}
	assert.Less(t, writes, 5, "not a write each time")
}

// A conversation that ends while an acquire waits has ended: its sandbox is not in use for being bound in the end.
func TestAcquireThatWaitedLeavesALaterRelease(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	w.set(name, func(s *sandbox.SandboxClaimStatus) { s.ReleaseAt = at(w.clock.Now().Add(time.Minute)) })
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	got, err := w.result(out)
	require.NoError(t, err)
	assert.Equal(t, sandbox.PhaseBound, got.Phase)
	assert.NotNil(t, w.get(name).Status.ReleaseAt)
}
