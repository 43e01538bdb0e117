package sandboxclaim

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// sessionLimits are what a claim may be Queued for that is not waited for.
var sessionLimits = map[string]struct {
	queued  string
	refused metav1.StatusReason
	// handles fill the session beside the claim, so that this replica's own look refuses too.
	handles []string
}{
	"maxPerSession": {v1alpha1.ReasonSessionLimit, v1alpha1.StatusReasonMaxPerSession, []string{"other/a", "other/b", "shell/b"}},
	"maxInstances":  {v1alpha1.ReasonInstanceLimit, v1alpha1.StatusReasonMaxInstances, []string{"shell/b", "shell/c"}},
}

// fill writes claims of a session by hand, whom no limit keeps from being written.
func (w *world) fill(session string, handles ...string) {
	w.t.Helper()
	for i, handle := range handles {
		_, err := w.byHand(&sandbox.SandboxClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", session, i)},
			Spec: sandbox.SandboxClaimSpec{
				AgentRuntimeRef: &sandbox.AgentRuntimeReference{Name: "my-agent"}, SessionID: session, Handle: handle,
				ClassRef: sandbox.ClassReference{Name: "shell", Kind: sandbox.ClusterSandboxClassKind},
			},
		})
		require.NoError(w.t, err)
	}
}

func TestAcquireQueuedForItsSession(t *testing.T) {
	for name, tt := range sessionLimits {
		t.Run(name+": created by this call: refused and deleted", func(t *testing.T) {
			w := newWorld(t, 10)
			w.registry.Spec.Sandboxes = append(w.registry.Spec.Sandboxes, w.registry.Spec.Sandboxes[0])
			w.registry.Spec.Sandboxes[2].Name = "other"
			claim := ClaimName("my-agent", "s", "shell/default")
			out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
			w.fill("s", tt.handles...)
			w.becomes(claim, sandbox.PhaseQueued, tt.queued, "")
			_, refused := w.result(out)
			requireStatus(t, refused, http.StatusForbidden, tt.refused)
			_, err := w.writes.get(w.agent(), claim)
			assert.True(t, apierrors.IsNotFound(err), "%v", err)

			_, own := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
			require.Error(t, own)
			assert.Equal(t, own.Error(), refused.Error(), "as if its own check had caught it")
		})
		t.Run(name+": created by another call: refused, and left", func(t *testing.T) {
			w := newWorld(t, 10)
			claim := ClaimName("my-agent", "s", "shell/default")
			w.hold("s", "shell/default")
			w.fill("s", tt.handles...)
			before := w.becomes(claim, sandbox.PhaseQueued, tt.queued, "")
			for _, wait := range []int32{0, 25} {
				_, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", wait))
				requireStatus(t, err, http.StatusForbidden, tt.refused)
			}
			_, err := w.acquire(w.agent(), claim, acquireOf("s", "shell/default", 25))
			requireStatus(t, err, http.StatusForbidden, tt.refused)
			assert.Equal(t, before.ResourceVersion, w.get(claim).ResourceVersion, "not even a lease is written: it runs out")
		})
	}
}

func TestAcquireQueuedForItsSessionUnderOthersWaits(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	first := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	second := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	w.fill("s", sessionLimits["maxPerSession"].handles...)
	uid := w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonSessionLimit, "").UID
	for _, out := range []<-chan outcome{first, second} {
		_, err := w.result(out)
		assert.True(t, v1alpha1.IsMaxPerSession(err), "%v", err)
	}
	assert.Equal(t, uid, w.get(name).UID, "none of them created it")
}

func TestAcquireQueuedForASlotIsWaitedFor(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonCeilingReached, "all in use")
	got, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.ReasonCeilingReached, got.Reason)
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	got, err = w.result(out)
	require.NoError(t, err)
	assert.Equal(t, sandbox.PhaseBound, got.Phase)
}

// A claim that was admitted between the look and the delete is never refused.
func TestAcquireQueuedForItsSessionThenAdmitted(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	w.fill("s", sessionLimits["maxPerSession"].handles...)
	read := w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonSessionLimit, "")
	w.becomes(name, sandbox.PhasePending, v1alpha1.ReasonCreating, "")
	plan, err := w.Acquire.plan(w.agent(), w.runtimes["my-agent"], acquireOf("s", "shell/default", 25))
	require.NoError(t, err)
	a := &acquisition{AcquireREST: w.Acquire, plan: *plan, name: name, created: read.UID}
	claim, done, err := a.beyond(w.agent(), read)
	require.NoError(t, err)
	assert.False(t, done)
	assert.Equal(t, read.UID, claim.UID)
	assert.Equal(t, sandbox.PhasePending, claim.Status.Phase)
}

// The controller's word may be a moment old: whoever may see that there is room waits for the next.
func TestAcquireQueuedForASessionThatHasRoomByNow(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonSessionLimit, "")
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	got, err := w.result(out)
	require.NoError(t, err)
	assert.Equal(t, sandbox.PhaseBound, got.Phase)
}

// Each replica looks for itself, so what one of them is about to create the other does not see.
func TestAcquireOnTwoReplicas_BothPassTheSessionsLimits(t *testing.T) {
	tests := map[string]func(w *world){
		"maxPerSession": func(w *world) { w.runtimes["my-agent"].Spec.Sandbox.MaxPerSession = ptrTo[int32](1) },
		"maxInstances":  func(w *world) { w.registry.Spec.Sandboxes[0].MaxInstances = ptrTo[int32](1) },
	}
	for name, limit := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			limit(w)
			other := w.replica()
			meanwhile := func() { other.hold("s", "shell/b") }
			w.reads.afterList.Store(&meanwhile)
			w.hold("s", "shell/a")
			for _, handle := range []string{"shell/a", "shell/b"} {
				w.get(ClaimName("my-agent", "s", handle))
			}
			_, err := other.acquire(other.agent(), anyClaim, acquireOf("s", "shell/c", 0))
			require.Error(t, err, "a third is seen to be too many")
		})
	}
}

// A limit may be lowered while a call waits for a slot, and this replica may hear of it after the controller.
func TestAcquireQueuedForALimitThatWasLoweredMeanwhile(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.fill("s", "other/a")
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonSessionLimit, "")
	w.mu.Lock()
	lowered := w.runtimes["my-agent"].DeepCopy()
	lowered.Spec.Sandbox.MaxPerSession = ptrTo[int32](1)
	w.runtimes["my-agent"] = lowered
	w.mu.Unlock()
	var got outcome
	require.Eventually(t, func() bool {
		w.clock.Step(100 * time.Millisecond)
		select {
		case got = <-out:
			return true
		default:
			return false
		}
	}, time.Minute, 5*time.Millisecond)
	assert.True(t, v1alpha1.IsMaxPerSession(got.err), "%v", got.err)
}
