package sandboxclaim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

// waitingMore acquires in the background a claim whose lease stands already, and returns once the call has renewed it.
func (w *world) waitingMore(body *sandbox.SandboxAcquire) <-chan outcome {
	w.t.Helper()
	w.clock.Step(time.Millisecond) // so that its lease can be told from the last
	out := w.waiting(w.agent(), body)
	name := ClaimName(body.Spec.AgentRuntime, body.Spec.SessionID, body.Spec.Handle)
	require.Eventually(w.t, func() bool { return w.get(name).Status.Wait.RenewTime.Time.Equal(w.clock.Now()) }, patience, time.Millisecond)
	return out
}

func TestAcquireResumedByAnotherReplica(t *testing.T) {
	w := newWorld(t, 10)
	other := w.replica()
	name := ClaimName("my-agent", "s", "shell/default")

	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonCeilingReached, "all in use")
	w.clock.Step(25*time.Second - time.Nanosecond)
	select {
	case early := <-out:
		require.Fail(t, "it answered before its time", "%+v", early)
	default:
	}
	w.clock.Step(time.Nanosecond)
	piece, err := w.result(out)
	require.NoError(t, err)
	assert.True(t, piece.Created)
	assert.EqualValues(t, 1, piece.RetryAfterSeconds, "the caller asks again")
	place := w.get(name).Status.QueuedAt

	resumed := other.waitingMore(acquireOf("s", "shell/default", 25))
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	got, err := other.result(resumed)
	require.NoError(t, err)
	assert.Equal(t, piece.ClaimUID, got.ClaimUID)
	assert.False(t, got.Created, "it was there already")
	assert.Equal(t, "10.0.0.1:8080", got.Addresses["mcp"])
	assert.True(t, place.Equal(w.get(name).Status.QueuedAt), "who comes back within the lease keeps the place in the queue")
}

func TestAcquireNobodyComesBack_TheLeaseRunsOut(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	seen := w.clock.Now()
	w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonCeilingReached, "all in use")
	w.clock.Step(25 * time.Second)
	_, err := w.result(out)
	require.NoError(t, err)

	claim := versionedClaim(w.get(name))
	due, after := lifecycle.Withdraw(claim, seen, seen.Add(25*time.Second))
	assert.False(t, due, "it is still time to ask again")
	assert.Equal(t, 10*time.Second, after)
	due, _ = lifecycle.Withdraw(claim, seen, seen.Add(35*time.Second))
	assert.True(t, due)
}

func TestAcquireWithdrawsForWhoeverHangsUp(t *testing.T) {
	tests := map[string]struct {
		before func(w *world, name string)
		kept   bool
	}{
		"not looked at yet: withdrawn": {func(*world, string) {}, false},
		"queued: withdrawn":            {func(w *world, name string) { w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonCeilingReached, "") }, false},
		"pending: kept":                {func(w *world, name string) { w.becomes(name, sandbox.PhasePending, v1alpha1.ReasonCreating, "") }, true},
		"somebody else waits longer: kept": {func(w *world, _ string) {
			w.clock.Step(time.Second)
			w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
		}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			claim := ClaimName("my-agent", "s", "shell/default")
			ctx, hangUp := context.WithCancel(w.agent())
			out := w.waiting(ctx, acquireOf("s", "shell/default", 25))
			tt.before(w, claim)
			if tt.kept && strings.HasPrefix(name, "somebody") {
				require.Eventually(t, func() bool { return w.get(claim).Status.Wait.RenewTime.Time.Equal(w.clock.Now()) }, patience, time.Millisecond)
			}
			hangUp()
			_, err := w.result(out)
			require.Error(t, err)
			_, err = w.writes.get(w.agent(), claim)
			assert.Equal(t, !tt.kept, apierrors.IsNotFound(err), "%v", err)
			w.Waiters.Close()
		})
	}
}

// What was read is withdrawn, and nothing else: the controller may have admitted it since.
func TestAcquireWithdrawsNothingThatWasAdmittedMeanwhile(t *testing.T) {
	w := newWorld(t, 10)
	controller := w.replica()
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonCeilingReached, "all in use")
	queued := w.set(name, func(s *sandbox.SandboxClaimStatus) {
		s.Wait = &sandbox.WaitLease{RenewTime: *at(w.clock.Now()), DurationSeconds: 35}
	})
	a := &acquisition{AcquireREST: w.Acquire, name: name, lease: versionedLease(queued.Status.Wait)}
	meanwhile := func() { controller.becomes(name, sandbox.PhasePending, v1alpha1.ReasonCreating, "") }
	w.reads.afterGet.Store(&meanwhile)
	a.withdraw(w.agent())
	stands := w.get(name)
	assert.Equal(t, queued.UID, stands.UID)
	assert.Equal(t, sandbox.PhasePending, stands.Status.Phase)
}

func TestAcquireVanishedUnderMustExist(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	body := acquireOf("s", "shell/default", 25)
	body.Spec.MustExist = true
	out := w.waiting(w.agent(), body)
	require.NoError(t, w.writes.delete(w.agent(), w.get(name)))
	_, err := w.result(out)
	assert.True(t, v1alpha1.IsSandboxEnded(err), "it is not created again: %v", err)
}

func TestAcquireReplacesAFailureUnderMustExist(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	failed := w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonSandboxRejected, "no")
	body := acquireOf("s", "shell/default", 0)
	body.Spec.MustExist = true
	got, err := w.acquire(w.agent(), anyClaim, body)
	require.NoError(t, err, "the handle has a claim")
	assert.NotEqual(t, failed.UID, got.ClaimUID)
}

func TestAcquireReplacementThatVanishesIsCreatedAgainOnce(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	met := w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonSandboxRejected, "no")
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	for range 2 {
		require.Eventually(t, func() bool { c, err := w.writes.get(w.agent(), name); return err == nil && c.UID != met.UID }, patience, time.Millisecond)
		met = w.get(name)
		require.NoError(t, w.writes.delete(w.agent(), met))
	}
	_, err := w.result(out)
	assert.True(t, v1alpha1.IsSandboxEnded(err), "%v", err)
}

func TestAcquireFailedClaimByHand(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	hand, err := w.byHand(claimOf(name))
	require.NoError(t, err)
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonClassNotFound, "there is no class c")
	_, err = w.result(out)
	assert.True(t, v1alpha1.IsSandboxFailed(err), "at once, under whoever waits for it: %v", err)
	assert.Contains(t, err.Error(), "there is no class c")
	assert.Contains(t, err.Error(), "delete it and create it again")
	assert.Equal(t, hand.UID, w.get(name).UID)
}

// claimOf is a claim that a person writes under the name that acquire would look for.
func claimOf(name string) *sandbox.SandboxClaim {
	claim := &sandbox.SandboxClaim{Spec: sandbox.SandboxClaimSpec{
		AgentRuntimeRef: &sandbox.AgentRuntimeReference{Name: "my-agent"}, ClassRef: sandbox.ClassReference{Name: "c", Kind: sandbox.SandboxClassKind},
		SessionID: "s", Handle: "shell/default",
	}}
	claim.Name = name
	return claim
}

func TestAcquireOfAReleasedClaimIsAUse(t *testing.T) {
	phases := map[string]struct {
		phase  sandbox.Phase
		reason string
	}{
		"bound":                        {sandbox.PhaseBound, v1alpha1.ReasonSandboxReady},
		"bound and dropped to pending": {sandbox.PhasePending, v1alpha1.ReasonPodNotReady},
	}
	for name, tt := range phases {
		for _, wait := range []int32{0, 25} {
			t.Run(fmt.Sprintf("%s, waiting %d seconds", name, wait), func(t *testing.T) {
				w := newWorld(t, 10)
				claim := ClaimName("my-agent", "s", "shell/default")
				w.hold("s", "shell/default")
				w.becomes(claim, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
				w.becomes(claim, tt.phase, tt.reason, "")
				before := w.set(claim, func(s *sandbox.SandboxClaimStatus) { s.ReleaseAt = at(w.clock.Now().Add(2 * time.Minute)) })
				w.clock.Step(time.Minute)

				_, err := w.Acquire.Create(w.agent(), anyClaim, acquireOf("s", "shell/default", wait), nil, dryRun())
				require.NoError(t, err)
				require.Equal(t, before.ResourceVersion, w.get(claim).ResourceVersion, "a dry run is none")

				writes := w.writesSince(before)
				if wait == 0 || tt.phase == sandbox.PhaseBound {
					_, err = w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", wait))
					require.NoError(t, err)
				} else {
					out := w.waiting(w.agent(), acquireOf("s", "shell/default", wait))
					w.becomes(claim, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
					_, err = w.result(out)
					require.NoError(t, err)
				}
				after := w.get(claim)
				assert.Nil(t, after.Status.ReleaseAt)
				assert.True(t, after.Status.LastUsedAt.Time.Equal(w.clock.Now()))
				first := <-writes.ResultChan()
				status := first.Object.(*sandbox.SandboxClaim).Status
				assert.Nil(t, status.ReleaseAt, "by one write")
				assert.True(t, status.LastUsedAt.Time.Equal(w.clock.Now()), "which renews lastUsedAt")
				assert.Equal(t, wait > 0 && tt.phase != sandbox.PhaseBound, status.Wait != nil, "and says that somebody waits")
			})
		}
	}
}

// writesSince watches the writes of the claim since it was read.
func (w *world) writesSince(claim *sandbox.SandboxClaim) watch.Interface {
	w.t.Helper()
	events, err := w.Claims.Watch(w.agent(), &internalversion.ListOptions{ResourceVersion: claim.ResourceVersion})
	require.NoError(w.t, err)
	w.t.Cleanup(events.Stop)
	return watch.Filter(events, unwrapped)
}

// The conversation of a release that comes while a call waits ended after the call began, so the release stands.
func TestAcquireReleasedUnderAWait(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	w.becomes(name, sandbox.PhasePending, v1alpha1.ReasonPodNotReady, "")
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	_, err := w.release(w.agent(), anyClaim, ofSession("s"))
	require.NoError(t, err)
	w.clock.Step(25 * time.Second)
	got, err := w.result(out)
	require.NoError(t, err)
	assert.Equal(t, sandbox.PhasePending, got.Phase)
	assert.NotNil(t, w.get(name).Status.ReleaseAt)

	_, err = w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	assert.Nil(t, w.get(name).Status.ReleaseAt, "the next call is a use")
}

func TestAcquireNotesNothingOnAClaimThatEndedMeanwhile(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	read := w.get(name)
	failed := w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonClassNotFound, "")
	plan, err := w.Acquire.plan(w.agent(), w.runtimes["my-agent"], acquireOf("s", "shell/default", 25))
	require.NoError(t, err)
	a := &acquisition{AcquireREST: w.Acquire, plan: *plan, name: name, waits: true}
	claim, err := a.note(w.agent(), read)
	require.NoError(t, err)
	assert.Nil(t, claim, "it is looked at again")
	assert.Equal(t, failed.ResourceVersion, w.get(name).ResourceVersion)
}
