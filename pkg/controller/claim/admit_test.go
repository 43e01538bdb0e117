package claim

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/metrics"
)

// queuedClaim is the nth claim of the runtime, n seconds younger than the first, each of a session of its own.
func queuedClaim(n int) *v1alpha1.SandboxClaim {
	claim := newClaim()
	claim.Name, claim.UID = fmt.Sprintf("c%d", n), types.UID(fmt.Sprintf("uid-c%d", n))
	claim.Spec.SessionID = fmt.Sprintf("s%d", n)
	claim.Status.QueuedAt = &metav1.MicroTime{Time: began.Add(time.Duration(n) * time.Second)}
	return claim
}

// crowd is a world with a ceiling and claims c1 to cN.
func crowd(t *testing.T, ceiling int32, claims int) *world {
	w := newWorld(t, queuedClaim(1))
	w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxConcurrent = ptr.To(ceiling) })
	for n := 2; n <= claims; n++ {
		require.NoError(t, w.claims.Create(t.Context(), queuedClaim(n)))
	}
	return w
}

func (w *world) phases(claims int) []string {
	w.Helper()
	var out []string
	for n := 1; n <= claims; n++ {
		status := w.claimOf(fmt.Sprintf("c%d", n)).Status
		out = append(out, string(status.Phase))
	}
	return out
}

func TestCeiling(t *testing.T) {
	w := crowd(t, 2, 4)
	for _, name := range []string{"c4", "c2", "c3", "c1"} { // in whatever order they are looked at
		_, result, err := w.reconcileOf(name)
		require.NoError(t, err)
		if name == "c4" || name == "c3" {
			assert.Equal(t, 30*time.Minute, result.RequeueAfter, "until it has waited for too long: that a place is free, others tell it")
		}
	}
	assert.Equal(t, []string{"Pending", "Pending", "Queued", "Queued"}, w.phases(4))
	waits := w.claimOf("c3")
	assert.Equal(t, v1alpha1.ReasonCeilingReached, v1alpha1.ReadyCondition(waits.Status.Conditions).Reason)
	assert.NotNil(t, waits.Status.LastUsedAt, "its time in the queue is measured")
	assert.Nil(t, waits.Status.Class)

	t.Run("a second look changes nothing", func(t *testing.T) {
		did, _, err := w.reconcileOf("c3")
		require.NoError(t, err)
		assert.Empty(t, did)
	})
	t.Run("a deleted claim's slot is held until its Deployment is gone", func(t *testing.T) {
		require.NoError(t, w.claims.Delete(t.Context(), w.claimOf("c1")))
		_, _, err := w.reconcileOf("c3")
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.PhaseQueued, w.claimOf("c3").Status.Phase)

		deployment := &appsv1.Deployment{}
		require.NoError(t, w.host.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "c1-sandbox"}, deployment))
		require.NoError(t, w.host.Delete(t.Context(), deployment))
		assert.Equal(t, requestFor(namespace, "c3"), w.r.nextAfterDeployment(t.Context(), deployment), "the oldest waiter is looked at at once")
		for _, name := range []string{"c4", "c3"} {
			_, _, err := w.reconcileOf(name)
			require.NoError(t, err)
		}
		assert.Equal(t, v1alpha1.PhasePending, w.claimOf("c3").Status.Phase)
		assert.Equal(t, v1alpha1.PhaseQueued, w.claimOf("c4").Status.Phase)
	})
	t.Run("a lowered ceiling ends nothing", func(t *testing.T) {
		w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxConcurrent = ptr.To[int32](0) })
		_, _, err := w.reconcileOf("c2")
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.PhasePending, w.claimOf("c2").Status.Phase)
	})
	t.Run("a raised one admits", func(t *testing.T) {
		w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxConcurrent = ptr.To[int32](3) })
		_, _, err := w.reconcileOf("c4")
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.PhasePending, w.claimOf("c4").Status.Phase)
	})
}

func TestCeiling_ManyAtOnce(t *testing.T) {
	w := crowd(t, 3, 12)
	var all sync.WaitGroup
	for n := 1; n <= 12; n++ {
		all.Go(func() {
			_, err := w.r.Reconcile(t.Context(), reconcileRequest(fmt.Sprintf("c%d", n)))
			assert.NoError(t, err)
		})
	}
	all.Wait()
	phases := w.phases(12)
	for n, phase := range phases {
		want := string(v1alpha1.PhaseQueued)
		if n < 3 {
			want = string(v1alpha1.PhasePending)
		}
		assert.Equal(t, want, phase, "c%d of %v", n+1, phases)
	}
}

func TestSessionLimit(t *testing.T) {
	w := crowd(t, 10, 3)
	w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxPerSession = ptr.To[int32](1) })
	same := queuedClaim(4)
	same.Spec.SessionID = "s1"
	require.NoError(t, w.claims.Create(t.Context(), same))
	for _, name := range []string{"c4", "c1"} {
		_, _, err := w.reconcileOf(name)
		require.NoError(t, err)
	}
	assert.Equal(t, v1alpha1.PhasePending, w.claimOf("c1").Status.Phase, "the session's claims are admitted oldest first")
	assert.Equal(t, v1alpha1.ReasonSessionLimit, v1alpha1.ReadyCondition(w.claimOf("c4").Status.Conditions).Reason)

	gone := w.claimOf("c1")
	require.NoError(t, w.claims.Delete(t.Context(), gone))
	assert.Contains(t, w.r.nextAfterClaim(t.Context(), gone), reconcileRequest("c4"), "a session's place is free with its claim")
}

func TestSessionLimit_FreedUnderAFullCeiling(t *testing.T) {
	w := crowd(t, 1, 1)
	w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxPerSession = ptr.To[int32](1) })
	for n := 2; n <= 3; n++ {
		claim := queuedClaim(n)
		claim.Spec.SessionID = "s2"
		require.NoError(t, w.claims.Create(t.Context(), claim))
	}
	for _, name := range []string{"c1", "c2", "c3"} {
		_, _, err := w.reconcileOf(name)
		require.NoError(t, err)
	}
	require.Equal(t, v1alpha1.ReasonSessionLimit, v1alpha1.ReadyCondition(w.claimOf("c3").Status.Conditions).Reason)
	gone := w.claimOf("c2")
	require.NoError(t, w.claims.Delete(t.Context(), gone))
	assert.Equal(t, requestFor(namespace, "c3"), w.r.nextAfterClaim(t.Context(), gone), "it waits for a slot now, and whoever acquires it is not refused any more")
}

func TestQueueWaitExceeded(t *testing.T) {
	w := crowd(t, 0, 1)
	_, _, err := w.reconcileOf("c1")
	require.NoError(t, err)
	w.clock.SetTime(began.Add(30 * time.Minute))
	w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxConcurrent = ptr.To[int32](1) })
	_, _, err = w.reconcileOf("c1")
	require.NoError(t, err)
	claim := w.claimOf("c1")
	assert.Equal(t, v1alpha1.PhaseFailed, claim.Status.Phase, "nor does it take a slot that is free by then")
	assert.Equal(t, v1alpha1.ReasonQueueWaitExceeded, v1alpha1.ReadyCondition(claim.Status.Conditions).Reason)
	assert.Contains(t, v1alpha1.ReadyCondition(claim.Status.Conditions).Message, v1alpha1.ReasonCeilingReached)
}

func TestClaimThatChangedIsNotWithdrawn(t *testing.T) {
	claim := newClaim()
	claim.Status.Wait = &v1alpha1.WaitLease{RenewTime: metav1.NewMicroTime(began), DurationSeconds: 5}
	w := newWorld(t, claim)
	w.r.leases.firstSeen(w.claim(), began)
	w.clock.SetTime(began.Add(5 * time.Second))
	read := w.claim()
	again := w.claim()
	again.Status.Wait.RenewTime = metav1.NewMicroTime(began.Add(4 * time.Second))
	require.NoError(t, w.claims.Status().Update(t.Context(), again))
	require.NoError(t, w.r.withdraw(t.Context(), read))
	assert.Equal(t, read.UID, w.claim().UID, "somebody waits again")
}

func TestQueuedClaimIsWithdrawn(t *testing.T) {
	w := crowd(t, 0, 1)
	claim := w.claimOf("c1")
	claim.Status.Wait = &v1alpha1.WaitLease{RenewTime: metav1.NewMicroTime(began), DurationSeconds: 5}
	require.NoError(t, w.claims.Status().Update(t.Context(), claim))
	_, result, err := w.reconcileOf("c1")
	require.NoError(t, err)
	assert.Equal(t, 5*time.Second, result.RequeueAfter, "when the lease runs out")
	w.clock.SetTime(began.Add(5 * time.Second))
	before := withdrawn(t)
	did, _, err := w.reconcileOf("c1")
	require.NoError(t, err)
	assert.Equal(t, []string{"delete SandboxClaim"}, did)
	assert.InDelta(t, before+1, withdrawn(t), 0)
}

// withdrawn is how many claims were withdrawn for their lease.
func withdrawn(t *testing.T) float64 {
	t.Helper()
	count, err := testutil.GetCounterMetricValue(metrics.Withdrawals.WithLabelValues("lease_expired"))
	require.NoError(t, err)
	return count
}

func TestTakeover(t *testing.T) {
	claim := newClaim()
	claim.ResourceVersion = "7"
	w := newWorld(t, claim)
	stale := w.claim()
	stale.ResourceVersion = "1"
	lagging := &laggingCache{Client: w.r.Claims, stale: stale, reads: 3}
	w.r.Claims = lagging
	_, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Negative(t, lagging.reads, "nothing is admitted before the cache holds what the last leader wrote")
	assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase)

	t.Run("once", func(t *testing.T) {
		assert.True(t, w.r.takeover.done)
	})
	t.Run("and again after a write of which nobody knows whether it was made", func(t *testing.T) {
		w := crowd(t, 1, 2)
		w.refuse[patchStatus] = apierrors.NewTimeoutError("etcdserver: request timed out", 1)
		_, _, err := w.reconcileOf("c1")
		require.Error(t, err)
		assert.False(t, w.r.takeover.done)
	})
}

// laggingCache has a claim as it was for a number of reads; the first is of the claim that is to be reconciled.
type laggingCache struct {
	client.Client
	stale *v1alpha1.SandboxClaim
	reads int
}

func (c *laggingCache) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	claim, ok := into.(*v1alpha1.SandboxClaim)
	if c.reads--; ok && c.reads >= 0 && c.reads < 2 {
		c.stale.DeepCopyInto(claim)
		return nil
	}
	return c.Client.Get(ctx, key, into, opts...)
}

// A claim's Deployment may be made after the claim was deleted, by the reconcile that was under way.
func TestSlotOfWhatIsBeingBuilt(t *testing.T) {
	w := crowd(t, 1, 2)
	host := w.r.Host
	w.r.Host = &meanwhile{Client: host, before: func(kind string) {
		if kind != "Deployment" {
			return
		}
		require.NoError(t, w.claims.Delete(t.Context(), w.claimOf("c1")))
		_, err := w.r.Reconcile(t.Context(), reconcileRequest("c2"))
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.PhaseQueued, w.claimOf("c2").Status.Phase, "the slot is held by the Deployment that is about to be made")
	}}
	_, err := w.r.Reconcile(t.Context(), reconcileRequest("c1"))
	require.NoError(t, err)
	w.r.Host = host
	deployment := &appsv1.Deployment{}
	require.NoError(t, w.host.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "c1-sandbox"}, deployment))
	_, _, err = w.reconcileOf("c2")
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.PhaseQueued, w.claimOf("c2").Status.Phase)
	require.NoError(t, w.host.Delete(t.Context(), deployment))
	_, _, err = w.reconcileOf("c2")
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.PhasePending, w.claimOf("c2").Status.Phase)
	_, _, err = w.reconcileOf("c2")
	require.NoError(t, err)
	_, _, err = w.reconcileOf("c1")
	require.NoError(t, err)
	assert.Empty(t, w.r.building.claims, "nothing is remembered of what was built")
	assert.Empty(t, w.r.given.claims, "nor of what was decided")
}

// A Deployment that was asked for holds its slot until the cache shows it, also if nobody knows whether it was made.
func TestSlotOfWhatMayHaveBeenBuilt(t *testing.T) {
	w := crowd(t, 1, 2)
	w.refuse["create Deployment"] = apierrors.NewTimeoutError("no answer", 1)
	_, err := w.r.Reconcile(t.Context(), reconcileRequest("c1"))
	require.Error(t, err)
	require.NoError(t, w.claims.Delete(t.Context(), w.claimOf("c1")))
	_, _, err = w.reconcileOf("c2")
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.PhaseQueued, w.claimOf("c2").Status.Phase, "the Deployment may be there")
	delete(w.refuse, "create Deployment")
	w.clock.SetTime(w.clock.Now().Add(recheck + time.Millisecond))
	_, _, err = w.reconcileOf("c2")
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.PhasePending, w.claimOf("c2").Status.Phase, "it is not: it was looked for")
}

func TestDecisionThatWasNotWritten(t *testing.T) {
	w := crowd(t, 1, 2)
	w.refuse[patchStatus] = apierrors.NewConflict(v1alpha1.Resource("sandboxclaims"), "c1", assert.AnError)
	_, err := w.r.Reconcile(t.Context(), reconcileRequest("c1"))
	require.NoError(t, err)
	assert.Empty(t, w.r.given.claims, "it holds nothing")
	assert.Empty(t, w.r.building.claims)
}

// meanwhile does something before an object is made.
type meanwhile struct {
	client.Client
	before func(kind string)
}

func (m *meanwhile) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	gvk, err := m.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	m.before(gvk.Kind)
	return m.Client.Create(ctx, object, opts...)
}

func TestPlaceFreed(t *testing.T) {
	tests := map[string]struct {
		from, to v1alpha1.Phase
		passes   bool
	}{
		"bound, and used: no place is freed":     {v1alpha1.PhaseBound, v1alpha1.PhaseBound, false},
		"pending, then failed: frees its place":  {v1alpha1.PhasePending, v1alpha1.PhaseFailed, true},
		"queued, then failed: lets the next one": {v1alpha1.PhaseQueued, v1alpha1.PhaseFailed, true},
		"failed: had none":                       {v1alpha1.PhaseFailed, v1alpha1.PhaseFailed, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := newClaim(), newClaim()
			before.Status.Phase, after.Status.Phase = tt.from, tt.to
			assert.Equal(t, tt.passes, placeFreed().Update(event.TypedUpdateEvent[*v1alpha1.SandboxClaim]{ObjectOld: before, ObjectNew: after}))
		})
	}
	ending := newClaim()
	ending.DeletionTimestamp = &metav1.Time{Time: began}
	assert.True(t, placeFreed().Update(event.TypedUpdateEvent[*v1alpha1.SandboxClaim]{ObjectOld: newClaim(), ObjectNew: ending}))
	assert.True(t, placeFreed().Delete(event.TypedDeleteEvent[*v1alpha1.SandboxClaim]{Object: newClaim()}))
}

func TestRuntimeChanged(t *testing.T) {
	w := crowd(t, 1, 2)
	before, after := enabledRuntime(), enabledRuntime()
	assert.False(t, sandboxTermsChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}), "the rest of a runtime is not ours")
	after.Spec.Sandbox.IdleTimeout = &metav1.Duration{Duration: time.Minute}
	assert.True(t, sandboxTermsChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
	assert.Len(t, w.r.claimsOfRuntime(t.Context(), after), 2)
}
