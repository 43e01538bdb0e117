package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	sandboxclient "github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestWait_PieceOver_ResumedOnTheOtherServer(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(1).ReleaseGrace(0) })
	servers := s.direct()
	first := s.ask("first")
	s.history.First(t, framework.BoundTimeout, first, "is Bound", framework.Bound)

	began := time.Now()
	piece, err := s.acquireOf(t.Context(), servers[0], "s", handle, 2)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(began), 2*time.Second, "it waited")
	assert.Equal(t, v1alpha1.PhaseQueued, piece.Phase)
	assert.Equal(t, v1alpha1.ReasonCeilingReached, piece.Reason)
	assert.Positive(t, piece.RetryAfterSeconds)
	before := s.read(piece.ClaimName)
	require.NotNil(t, before.Status.Wait)

	var resumed *v1alpha1.SandboxAcquireStatus
	var refused error
	done := make(chan struct{})
	go func() {
		defer close(done)
		resumed, refused = s.acquireOf(t.Context(), servers[1], "s", handle, v1alpha1.MaxWaitSeconds)
	}()
	s.history.First(t, framework.Shortly, piece.ClaimName, "is waited for again", func(c *v1alpha1.SandboxClaim) bool {
		return c.Status.Wait != nil && !c.Status.Wait.RenewTime.Equal(&before.Status.Wait.RenewTime)
	})
	require.NoError(t, s.released(first))
	<-done
	require.NoError(t, refused)
	assert.Equal(t, v1alpha1.PhaseBound, resumed.Phase)
	assert.Equal(t, piece.ClaimUID, resumed.ClaimUID, "it kept its place")
	assert.False(t, resumed.Created)
}

// At its own deadline the helper has had its last answer: it hangs up on nobody, so the claim goes when its lease has run out.
func TestWait_HelpersDeadline_WithdrawnByTheLease(t *testing.T) {
	s := newSmall(t, unplaceable, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(1) })
	first := s.ask("first")
	s.history.First(t, framework.BoundTimeout, first, "cannot be placed", unschedulable)
	helper := s.helper()
	helper.Deadline = 2 * time.Second
	_, err := helper.Acquire(t.Context(), v1alpha1.SandboxAcquireSpec{AgentRuntime: smallName, SessionID: "s", Handle: handle})
	given := time.Now()
	var late *sandboxclient.NotReadyError
	require.ErrorAs(t, err, &late)
	assert.Equal(t, v1alpha1.PhaseQueued, late.Phase)
	assert.Contains(t, err.Error(), "maxConcurrent of 1", "it says what was waited for")

	left := s.read(late.Claim)
	require.NotNil(t, left.Status.Wait, "it still stands")
	ends := left.Status.Wait.RenewTime.Add(time.Duration(left.Status.Wait.DurationSeconds) * time.Second)
	gone := s.history.WaitGone(t, late.Claim)
	assert.False(t, gone.Before(ends), "not before its lease, which runs out at %s, was over: at %s", ends, gone)
	assert.Less(t, gone.Sub(given), 2*framework.Shortly, "and soon after")
	s.history.Wait(t, framework.Shortly, "the admitted one stays", func(h *framework.History) bool { return !h.Now()[first].Gone })
}
