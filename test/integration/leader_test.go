package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// leaseDuration is after how long a Lease that is not renewed runs out.
const leaseDuration = 15 * time.Second

// through has the world ask and watch one server alone, past the aggregator.
func (s *small) through(server *framework.Server) {
	s.t.Helper()
	s.agent = s.agentOf(server)
	cluster := *s.Cluster
	cluster.Sandbox = s.administratorOf(server)
	s.Cluster = &cluster
	s.history = s.Record(s.t, s.namespace)
}

// agentOf calls a server as the runtime's ServiceAccount, past the aggregator.
func (w *world) agentOf(server *framework.Server) versioned.Interface {
	w.t.Helper()
	config, err := w.AsServiceAccount(w.t.Context(), w.namespace, runtimeName+"-facade")
	require.NoError(w.t, err)
	set, err := versioned.NewForConfig(server.Direct(config))
	require.NoError(w.t, err)
	return set
}

// administratorOf calls a server as the cluster's administrator, past the aggregator.
func (w *world) administratorOf(server *framework.Server) versioned.Interface {
	w.t.Helper()
	set, err := versioned.NewForConfig(server.Direct(w.Config))
	require.NoError(w.t, err)
	return set
}

// pause stops a server's process where it is, and gives what lets it go on. It goes on with the test's end at the latest.
func (w *world) pause(server *framework.Server) (wake func()) {
	w.t.Helper()
	pid := server.PID()
	require.NoError(w.t, syscall.Kill(pid, syscall.SIGSTOP))
	wake = func() { assert.NoError(w.t, syscall.Kill(pid, syscall.SIGCONT)) }
	w.t.Cleanup(func() {
		if server.PID() == pid {
			wake()
		}
	})
	return wake
}

const (
	controllerWrites = "sandbox_omnia_controller_writes_total{"
	leasesLost       = `sandbox_omnia_controller_terms_ended_total{cause="lease_lost"}`
)

// counted is what a server has counted.
func (w *world) counted(server *framework.Server, begins string) float64 {
	w.t.Helper()
	count, err := w.metric(w.t.Context(), server, "/metrics", begins)
	require.NoError(w.t, err)
	return count
}

// hasWritten waits until a server's controllers have written all that there was to write, and gives how much they ever did.
func (w *world) hasWritten(server *framework.Server) float64 {
	w.t.Helper()
	last, still := -1.0, 0
	return framework.Eventually(w.t, framework.BoundTimeout, "the leader has nothing left to write", func(ctx context.Context) (float64, error) {
		return w.metric(ctx, server, "/metrics", controllerWrites)
	}, func(count float64) bool {
		if still++; count != last {
			last, still = count, 0
		}
		return still >= 10
	})
}

// vacated deletes a claim with its Deployment, which frees its place whoever watches.
func (s *small) vacated(name string) {
	s.t.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.history.Now()[name].Claim.Status.SandboxName}}
	require.NoError(s.t, s.deleted(name))
	err := s.Client.Delete(s.t.Context(), deployment, client.PropagationPolicy(metav1.DeletePropagationBackground))
	require.NoError(s.t, client.IgnoreNotFound(err))
}

// The leader is stopped with a queue behind it, and goes on when another has admitted since. It believes that it leads, and
// knows of places that are no longer free.
func TestLeader_PausedPastItsLease_AnotherAdmits_TheWokenWritesNothingAndMayLeadAgain(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(2) })
	leader, other := s.leader()
	s.startsAgain()
	require.NoError(t, leader.RemoveEndpoint(t.Context()), "as when it does not say that it is ready")
	s.through(other)
	sessions := []string{"a", "b", "c", "d", "e", "f"}
	claims := s.asks(sessions...)
	bound, _ := s.settles(2, 4)
	require.Equal(t, claims[:2], bound)
	pid, written, lost := leader.PID(), s.hasWritten(leader), s.counted(leader, leasesLost)
	asking := framework.AllTheTime(t, 3, func(ctx context.Context) error {
		for _, session := range []string{"b", "e", "f"} {
			if _, err := s.acquireOf(ctx, s.agent, session, handle, 0); err != nil {
				return err
			}
		}
		return nil
	})

	wake := s.pause(leader)
	paused := time.Now()
	s.vacated(claims[0])
	framework.Eventually(t, framework.FailoverTimeout, "the other leads", func(ctx context.Context) (bool, error) {
		return s.leads(ctx, other)
	}, func(leads bool) bool { return leads })
	s.history.First(t, framework.BoundTimeout, claims[2], "is Bound", framework.Bound)
	t.Logf("a new sandbox was Bound %s after the leader was paused", time.Since(paused).Round(time.Millisecond))
	require.GreaterOrEqual(t, time.Since(paused), leaseDuration-2*time.Second, "the Lease was waited for") // it was renewed up to 2 s before

	wake()
	s.vacated(claims[2])
	s.history.First(t, framework.BoundTimeout, claims[3], "is Bound", framework.Bound)
	framework.Eventually(t, framework.Shortly, "the woken one has noticed", func(ctx context.Context) (float64, error) {
		return s.metric(ctx, leader, "/metrics", leasesLost)
	}, func(count float64) bool { return count == lost+1 })
	count, failures := asking()
	t.Logf("%d rounds of acquires", count)
	assert.Empty(t, failures, "who asks the server that is there is answered")
	assert.Equal(t, written, s.hasWritten(leader), "it wrote nothing since it was paused")
	leads, err := s.leads(t.Context(), leader)
	require.NoError(t, err)
	assert.False(t, leads)
	assert.Equal(t, pid, leader.PID(), "in the same process")
	assert.Equal(t, 2, s.mostAdmitted())

	s.through(leader)
	require.NoError(t, errors.Join(leader.AddEndpoint(t.Context()), other.RemoveEndpoint(t.Context()), other.Stop()))
	s.vacated(claims[1])
	s.history.First(t, framework.FailoverTimeout, claims[4], "is Bound", framework.Bound)
	assert.Greater(t, s.counted(leader, controllerWrites), written, "by the one that was paused")
	assert.Equal(t, pid, leader.PID())
	assert.Equal(t, 2, s.mostAdmitted())
}

func TestLeader_LeaseTakenByHandOrRemoved_ControllersAreBuiltAgainInTheProcess(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(2) })
	leader, other := s.leader()
	pids := []int{leader.PID(), other.PID()}
	lost := s.counted(leader, leasesLost)
	s.editLease(coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody"), LeaseDurationSeconds: ptr.To[int32](1), RenewTime: ptr.To(metav1.NowMicro())})
	framework.Eventually(t, framework.Shortly, "the leader has noticed", func(ctx context.Context) (float64, error) {
		return s.metric(ctx, leader, "/metrics", leasesLost)
	}, func(count float64) bool { return count == lost+1 })
	s.history.First(t, framework.FailoverTimeout, s.ask("a"), "is Bound", framework.Bound)

	s.leader()
	require.NoError(t, s.Kube.CoordinationV1().Leases(framework.SystemNamespace).Delete(t.Context(), framework.ServerName, metav1.DeleteOptions{}))
	s.history.First(t, framework.FailoverTimeout, s.ask("b"), "is Bound", framework.Bound)
	framework.Eventually(t, framework.FailoverTimeout, "there is a Lease again", s.LeaseHolder, func(holder string) bool {
		return holder == leader.LeaseIdentity() || holder == other.LeaseIdentity()
	})
	s.leader()
	assert.Equal(t, pids, []int{leader.PID(), other.PID()})
}

// editLease changes these fields of the Lease, whoever holds it.
func (w *world) editLease(spec coordinationv1.LeaseSpec) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": spec})
	require.NoError(w.t, err)
	_, err = w.Kube.CoordinationV1().Leases(framework.SystemNamespace).Patch(context.WithoutCancel(w.t.Context()), framework.ServerName, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w.t, err)
}

func TestLeader_KilledAndStartedAgain_TakesItsOwnLeaseUp(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(2) })
	leader, other := s.leader()
	s.startsAgain()
	s.through(other)
	require.NoError(t, leader.Kill())
	require.NoError(t, leader.RemoveEndpoint(t.Context()))
	// Nobody else gets it in this test, however slowly the leader starts.
	s.editLease(coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](600)})
	t.Cleanup(func() {
		if t.Failed() {
			s.editLease(coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](1)})
		}
	})
	began := time.Now()
	require.NoError(t, leader.Start(t.Context()))
	require.NoError(t, leader.AddEndpoint(t.Context()))
	s.history.First(t, framework.FailoverTimeout, s.ask("a"), "is Bound", framework.Bound)
	t.Logf("a new sandbox was Bound %s after the leader was started again", time.Since(began).Round(time.Millisecond))
	holder, err := s.LeaseHolder(t.Context())
	require.NoError(t, err)
	assert.Equal(t, leader.LeaseIdentity(), holder)
}

func TestLeader_ToldToEnd_HandsOverAtOnceAndServesOnThroughItsDelay(t *testing.T) {
	full := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(1) })
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(3) })
	leader, _ := s.leader()
	s.startsAgain()
	s.history.First(t, framework.BoundTimeout, s.ask("bound"), "is Bound", framework.Bound)
	full.history.First(t, framework.BoundTimeout, full.ask("first"), "is Bound", framework.Bound)
	asking := framework.AllTheTime(t, 2, func(ctx context.Context) error {
		got, err := s.acquireOf(ctx, s.agent, "bound", handle, 0)
		if err == nil && got.Phase != v1alpha1.PhaseBound {
			err = fmt.Errorf("it is %s", got.Phase)
		}
		return err
	})
	type answer struct {
		*v1alpha1.SandboxAcquireStatus
		err error
		at  time.Time
	}
	waiting, atLeader := make(chan answer, 1), full.agentOf(leader)
	go func() {
		got, err := full.acquireOf(t.Context(), atLeader, "waits", handle, v1alpha1.MaxWaitSeconds)
		waiting <- answer{got, err, time.Now()}
	}()
	full.settles(1, 1)

	told := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- leader.Stop() }()
	framework.Eventually(t, framework.Shortly, "it says that it is not ready", func(ctx context.Context) (int, error) {
		var code int
		s.administratorOf(leader).Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		return code, nil
	}, func(code int) bool { return code == http.StatusInternalServerError })
	require.NoError(t, leader.RemoveEndpoint(t.Context()), "as the endpoint controller does then")
	created := s.ask("new")
	for direct := s.agentOf(leader); time.Since(told) < shutdownDelay-time.Second; {
		_, err := s.acquireOf(t.Context(), direct, "bound", handle, 0)
		require.NoError(t, err, "%s after it was told to end", time.Since(told))
	}
	made := s.history.First(t, framework.FailoverTimeout, created, "is Bound", framework.Bound).At.Sub(told)
	t.Logf("a new sandbox was Bound %s after the leader was told to end", made.Round(time.Millisecond))
	assert.Less(t, made, leaseDuration-2*time.Second, "its Lease was not waited for")

	asked := <-waiting
	require.NoError(t, asked.err)
	assert.Equal(t, v1alpha1.PhaseQueued, asked.Phase)
	assert.Positive(t, asked.RetryAfterSeconds, "whoever waits is told to ask again")
	assert.GreaterOrEqual(t, asked.at.Sub(told), shutdownDelay, "and not before the delay is over")
	assert.Less(t, asked.at.Sub(told), v1alpha1.MaxWaitSeconds*time.Second)
	require.NoError(t, <-ended)
	t.Logf("it ended %s after it was told to", time.Since(told).Round(time.Millisecond))
	count, failures := asking()
	assert.Positive(t, count)
	assert.Empty(t, failures, "of %d acquires of a Bound claim", count)
}
