package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	sandboxclient "github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestWait_PieceOver_ResumedOnTheOtherServer(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(1).ReleaseGrace(0) })
	config, err := s.AsServiceAccount(t.Context(), s.namespace, runtimeName+"-facade")
	require.NoError(t, err)
	first := s.ask("first")
	s.history.First(t, framework.BoundTimeout, first, "is Bound", framework.Bound)
	ask := func(server int, seconds int32) (*v1alpha1.SandboxAcquireStatus, error) {
		set, err := versioned.NewForConfig(s.servers.List[server].Direct(config))
		require.NoError(t, err)
		return s.acquireOf(t.Context(), set, "s", handle, seconds)
	}

	began := time.Now()
	piece, err := ask(0, 2)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(began), 2*time.Second, "it waited")
	assert.Equal(t, v1alpha1.PhaseQueued, piece.Phase)
	assert.Equal(t, v1alpha1.ReasonCeilingReached, piece.Reason)
	assert.Positive(t, piece.RetryAfterSeconds)
	before := s.read(piece.ClaimName)
	require.NotNil(t, before.Status.Wait)

	var resumed *v1alpha1.SandboxAcquireStatus
	done := make(chan struct{})
	go func() {
		defer close(done)
		resumed, err = ask(1, v1alpha1.MaxWaitSeconds)
	}()
	s.history.First(t, framework.Shortly, piece.ClaimName, "is waited for again", func(c *v1alpha1.SandboxClaim) bool {
		return c.Status.Wait != nil && !c.Status.Wait.RenewTime.Equal(&before.Status.Wait.RenewTime)
	})
	require.NoError(t, s.released(first))
	<-done
	require.NoError(t, err)
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
