package sandboxclaim

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

// sessionLimits are what a claim may be Queued for that is not waited for.
var sessionLimits = map[string]struct {
	queued  string
	refused metav1.StatusReason
	// handles fill the session, so that this replica's own look refuses too.
	handles []string
}{
	"maxPerSession": {v1alpha1.ReasonSessionLimit, v1alpha1.StatusReasonMaxPerSession, []string{"other/a", "other/b", "shell/b"}},
	"maxInstances":  {v1alpha1.ReasonInstanceLimit, v1alpha1.StatusReasonMaxInstances, []string{"shell/b", "shell/c"}},
}

func TestAcquireQueuedForItsSession(t *testing.T) {
	for name, tt := range sessionLimits {
		t.Run(name+": created by this call: refused and deleted", func(t *testing.T) {
			w := newWorld(t, 10)
			w.registry.Spec.Sandboxes = append(w.registry.Spec.Sandboxes, w.registry.Spec.Sandboxes[0])
			w.registry.Spec.Sandboxes[2].Name = "other"
			claim := ClaimName("my-agent", "s", "shell/default")
			out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
			w.becomes(claim, sandbox.PhaseQueued, tt.queued, "")
			_, refused := w.result(out)
			requireStatus(t, refused, http.StatusForbidden, tt.refused)
			_, err := w.writes.get(w.agent(), claim)
			assert.True(t, apierrors.IsNotFound(err), "%v", err)

			w.hold("s", tt.handles...)
			_, own := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
			require.Error(t, own)
			assert.Equal(t, own.Error(), refused.Error(), "as if its own check had caught it")
		})
		t.Run(name+": created by another call: refused, and left", func(t *testing.T) {
			w := newWorld(t, 10)
			claim := ClaimName("my-agent", "s", "shell/default")
			w.hold("s", "shell/default")
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
	read := w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonSessionLimit, "")
	w.becomes(name, sandbox.PhasePending, v1alpha1.ReasonCreating, "")
	plan, err := w.Acquire.plan(w.agent(), w.runtimes["my-agent"], acquireOf("s", "shell/default", 25))
	require.NoError(t, err)
	a := &acquisition{AcquireREST: w.Acquire, plan: *plan, name: name, created: read.UID}
	claim, done, err := a.beyond(w.agent(), read, lifecycle.LimitPerSession)
	require.NoError(t, err)
	assert.False(t, done)
	assert.Equal(t, read.UID, claim.UID)
	assert.Equal(t, sandbox.PhasePending, claim.Status.Phase)
}
