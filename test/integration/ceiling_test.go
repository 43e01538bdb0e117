package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestCeiling_FiveSessionsAtOnce_TwoBound_TheRestAdmittedInOrderAsSlotsFree(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(2).ReleaseGrace(time.Second) })
	var calls []*waiting
	for _, session := range []string{"a", "b", "c", "d", "e"} {
		calls = append(calls, s.wait(session))
	}
	bound, queued := s.settles(2, 3)
	for _, claim := range s.inPhase(v1alpha1.PhaseQueued) {
		assert.Equal(t, v1alpha1.ReasonCeilingReached, framework.Reason(claim))
		assert.Contains(t, framework.Message(claim), "maxConcurrent of 2")
		for _, first := range s.inPhase(v1alpha1.PhaseBound) {
			assert.False(t, claim.Status.QueuedAt.Time.Before(first.Status.QueuedAt.Time), "who came first is Bound")
		}
	}
	ends := []func(string) error{s.deleted, s.released, s.deleted}
	for i, next := range queued {
		freed := s.freed(bound[i], ends[i])
		assert.Less(t, s.admitted(next).Sub(freed), atOnce, "the oldest waiter is admitted at once")
		s.history.First(t, framework.BoundTimeout, next, "is Bound", framework.Bound)
		assert.Equal(t, queued[i+1:], names(s.inPhase(v1alpha1.PhaseQueued)), "and nobody else")
		bound = append(bound, next)
	}
	for _, call := range calls {
		<-call.done
		require.NoError(t, call.err, "a waiting acquire comes back with a Bound sandbox")
		assert.NotEmpty(t, call.sandbox.Addresses["mcp"])
	}
	assert.Equal(t, 2, s.mostAdmitted())
}

func TestCeiling_ClaimGone_ItsSlotIsHeldUntilItsDeploymentIsGone(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(1) })
	claims := s.asks("a", "b")
	s.settles(1, 1)
	letGo := s.hold(claims[0])
	require.NoError(t, s.deleted(claims[0]))
	s.history.WaitGone(t, claims[0])
	third := s.ask("c")
	s.history.First(t, framework.BoundTimeout, third, "is Queued", framework.InPhase(v1alpha1.PhaseQueued))
	assert.Equal(t, []string{claims[1], third}, names(s.inPhase(v1alpha1.PhaseQueued)), "the ceiling was looked at since, and was full")

	framework.Eventually(t, framework.GoneTimeout, "the Deployment is being deleted", func(ctx context.Context) (*metav1.Time, error) {
		d, err := s.Kube.AppsV1().Deployments(s.namespace).Get(ctx, claims[0]+"-sandbox", metav1.GetOptions{})
		return d.DeletionTimestamp, err
	}, func(deleted *metav1.Time) bool { return deleted != nil })
	assert.Len(t, s.inPhase(v1alpha1.PhaseQueued), 2)
	letGo()
	freed := time.Now()
	assert.Less(t, s.admitted(claims[1]).Sub(freed), atOnce)
	s.history.First(t, framework.BoundTimeout, claims[1], "is Bound", framework.Bound)
	assert.Equal(t, []string{third}, names(s.inPhase(v1alpha1.PhaseQueued)))
}

func TestCeiling_AdmittedClaimFails_TheOldestWaiterIsAdmittedAtOnce(t *testing.T) {
	s := newSmall(t, unplaceable, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(1) })
	first := s.ask("a")
	s.history.First(t, framework.BoundTimeout, first, "cannot be placed", unschedulable)
	next := s.ask("b")
	s.history.First(t, framework.BoundTimeout, next, "is Queued", framework.InPhase(v1alpha1.PhaseQueued))

	pods, err := s.Kube.CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelClaim + "=" + first})
	require.NoError(t, err)
	require.Len(t, pods.Items, 1)
	pod := &pods.Items[0]
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sandbox", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName", Message: "invalid reference format"}}}}
	_, err = s.Kube.CoreV1().Pods(s.namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	failed := s.history.First(t, framework.BoundTimeout, first, "is Failed", framework.Failed)
	assert.Less(t, s.admitted(next).Sub(failed.At), atOnce)
}

func TestCeiling_RaisedAndLowered_MovesTheWaitersAndKillsNothing(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(1) })
	claims := s.asks("a", "b", "c", "d", "e")
	bound, _ := s.settles(1, 4)
	require.Equal(t, claims[:1], bound)

	raised := time.Now()
	s.limit(`{"maxConcurrent":3}`)
	for _, name := range claims[1:3] {
		assert.Less(t, s.admitted(name).Sub(raised), atOnce, "as many as there are free slots")
	}
	s.settles(3, 2)

	s.limit(`{"maxConcurrent":1}`)
	s.heardOf("maxConcurrent of 1")
	for _, name := range claims[:2] {
		s.freed(name, s.deleted)
	}
	last := s.ask("f")
	s.history.First(t, framework.BoundTimeout, last, "is Queued", framework.InPhase(v1alpha1.PhaseQueued))
	bound, queued := s.settles(1, 3)
	assert.Equal(t, claims[2:3], bound, "one stays, which is the ceiling")
	assert.Equal(t, append(claims[3:], last), queued, "and nobody is admitted")

	freed := s.freed(claims[2], s.deleted)
	assert.Less(t, s.admitted(claims[3]).Sub(freed), atOnce)
	bound, queued = s.settles(1, 2)
	assert.Equal(t, claims[3:4], bound)
	assert.Equal(t, append(claims[4:], last), queued)
	for _, name := range claims[:3] {
		assert.Equal(t, v1alpha1.PhaseBound, s.phases(name)[len(s.phases(name))-1], "%s was Bound until it was deleted", name)
		assert.Equal(t, 1, count(s.phases(name), v1alpha1.PhaseBound), "%s was never anything else after it was Bound", name)
	}
}

// heardOf waits until the leader knows the runtime's limit, and decides by it: a new claim's message says so.
func (s *small) heardOf(limit string) {
	s.t.Helper()
	name := s.ask("asks-for-the-limit")
	s.history.First(s.t, framework.BoundTimeout, name, "says "+limit, func(c *v1alpha1.SandboxClaim) bool {
		return strings.Contains(framework.Message(c), limit)
	})
	require.NoError(s.t, s.deleted(name))
	s.history.WaitGone(s.t, name)
}

func count(phases []v1alpha1.Phase, phase v1alpha1.Phase) int {
	n := 0
	for _, p := range phases {
		if p == phase {
			n++
		}
	}
	return n
}

func TestCallerHangsUp_AQueuedClaimIsWithdrawn_APendingOneStays(t *testing.T) {
	s := newSmall(t, unplaceable, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(1) })
	admitted := s.wait("admitted")
	s.history.Wait(t, framework.BoundTimeout, "one is Pending", func(h *framework.History) bool {
		return slices.ContainsFunc(inPhase(h, v1alpha1.PhasePending), unschedulable)
	})
	pending := s.inPhase(v1alpha1.PhasePending)[0]
	queued := s.wait("queued")
	s.history.Wait(t, framework.BoundTimeout, "the other is Queued", func(h *framework.History) bool { return len(inPhase(h, v1alpha1.PhaseQueued)) == 1 })
	name := s.inPhase(v1alpha1.PhaseQueued)[0].Name
	require.NotNil(t, s.history.Now()[name].Claim.Status.Wait, "its caller waits")

	admitted.hangUp()
	<-admitted.done
	hungUp := time.Now()
	queued.hangUp()
	assert.Less(t, s.history.WaitGone(t, name).Sub(hungUp), v1alpha1.MaxWaitSeconds*time.Second, "before its wait would have run out, which is that and 10 seconds")
	<-queued.done
	require.ErrorIs(t, queued.err, context.Canceled)
	stands, err := s.Sandbox.SandboxV1alpha1().SandboxClaims(s.namespace).Get(t.Context(), pending.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, pending.UID, stands.UID, "its pod may be one image pull from ready")
	assert.Nil(t, stands.DeletionTimestamp)
}

func TestSandboxesDisabled_UnderStandingClaims_WaitersFailAndBoundOnesStay(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(1) })
	claims := s.asks("a", "b", "c")
	call := s.wait("waits")
	s.settles(1, 3)
	s.limit(`{"enabled":false}`)
	for _, name := range claims[1:] {
		failed := s.history.First(t, framework.BoundTimeout, name, "is Failed", framework.Failed)
		assert.Equal(t, v1alpha1.ReasonSandboxesDisabled, framework.Reason(failed.Claim))
	}
	framework.Eventually(t, framework.NoticeTimeout, "acquire is refused", func(ctx context.Context) (bool, error) {
		_, err := s.acquireOf(ctx, s.agent, "d", handle, 0)
		return v1alpha1.IsSandboxesDisabled(err), nil
	}, func(refused bool) bool { return refused })
	<-call.done
	require.ErrorContains(t, call.err, "may not have sandboxes", "whoever waits is told")
	assert.True(t, v1alpha1.IsSandboxFailed(call.err) || v1alpha1.IsSandboxesDisabled(call.err), "got %v", call.err)
	assert.True(t, framework.Bound(s.history.Now()[claims[0]].Claim))
	assert.Equal(t, 1, count(s.phases(claims[0]), v1alpha1.PhaseBound))
}

// The leader is killed with a queue behind it, and a slot frees while nobody leads.
func TestCeiling_LeaderKilledWithAQueue_OrderAndCeilingHold(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(2) })
	var calls []*waiting
	for _, session := range []string{"a", "b", "c", "d", "e"} {
		calls = append(calls, s.wait(session))
	}
	bound, queued := s.settles(2, 3)
	leader, other := s.leader()
	s.startsAgain()
	require.NoError(t, leader.Kill())
	require.NoError(t, leader.RemoveEndpoint(t.Context()))
	require.NoError(t, other.WaitReady(t.Context()))
	framework.Eventually(t, framework.NoticeTimeout, "the other server answers", func(context.Context) (struct{}, error) {
		return struct{}{}, client.IgnoreNotFound(s.deleted(bound[0]))
	}, func(struct{}) bool { return true })
	for i, next := range queued {
		s.history.First(t, framework.FailoverTimeout, next, "is Bound", framework.Bound)
		assert.Equal(t, queued[i+1:], names(s.inPhase(v1alpha1.PhaseQueued)), "the oldest waiter and nobody else")
		if bound = append(bound, next); i < len(queued)-1 {
			s.freed(bound[i+1], s.deleted)
		}
	}
	for _, call := range calls {
		<-call.done
		assert.NoError(t, call.err, "an acquire outlives the server that it asked")
	}
	assert.Equal(t, 2, s.mostAdmitted())
}
