package claim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// waiting is a crowd of which c1 has the only slot, c2 and c3 wait for one, and c4 waits for its session's end.
func waiting(t *testing.T) *world {
	w := crowd(t, 1, 3)
	same := queuedClaim(4)
	same.Spec.SessionID = "s1"
	require.NoError(t, w.claims.Create(t.Context(), same))
	w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxPerSession = ptr.To[int32](1) })
	w.lookAt("c1", "c2", "c3", "c4")
	require.Equal(t, []string{"Pending", "Queued", "Queued", "Queued"}, w.phases(4))
	return w
}

func (w *world) lookAt(names ...string) {
	w.Helper()
	for _, name := range names {
		_, _, err := w.reconcileOf(name)
		require.NoError(w, err)
	}
}

// outdated names the claims that the pass has looked at.
func (w *world) outdated() []string {
	w.Helper()
	var names []string
	for _, request := range w.r.outdated(w.Context()) {
		assert.Equal(w, namespace, request.Namespace)
		names = append(names, request.Name)
	}
	return names
}

// None of this is told by an event: the pass finds it, as each waiter's own reconcile would.
func TestOutdated(t *testing.T) {
	all := []string{"c2", "c3", "c4"}
	class := func(change func(*v1alpha1.ClusterSandboxClass)) func(*world) {
		return func(w *world) {
			found := &v1alpha1.ClusterSandboxClass{}
			require.NoError(w, w.claims.Get(w.Context(), client.ObjectKey{Name: "shell"}, found))
			change(found)
			require.NoError(w, w.claims.Update(w.Context(), found))
		}
	}
	const queued, pending, failed = v1alpha1.PhaseQueued, v1alpha1.PhasePending, v1alpha1.PhaseFailed
	tests := map[string]struct {
		change  func(*world)
		finds   []string
		becomes map[string]v1alpha1.Phase
	}{
		"nothing: nobody": {func(*world) {}, nil, phasesOf(queued, queued, queued)},
		"a slot is free: the oldest, and who waits for a slot by now": {func(w *world) {
			first, deployment := w.claimOf("c1"), &appsv1.Deployment{}
			require.NoError(w, w.host.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: first.Status.SandboxName}, deployment))
			require.NoError(w, w.host.Delete(w.Context(), deployment))
			require.NoError(w, w.claims.Delete(w.Context(), first))
		}, []string{"c2", "c4"}, phasesOf(pending, queued, queued)},
		"a higher ceiling: the oldest, and whose words it changes": {func(w *world) {
			w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxConcurrent = ptr.To[int32](2) })
		}, []string{"c2", "c3"}, phasesOf(pending, queued, queued)},
		"the runtime is gone: all": {func(w *world) {
			require.NoError(w, w.host.Delete(w.Context(), enabledRuntime()))
		}, all, phasesOf(failed, failed, failed)},
		"sandboxes are disabled: all": {func(w *world) {
			w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.Enabled = false })
		}, all, phasesOf(failed, failed, failed)},
		"the class is gone: all": {func(w *world) {
			require.NoError(w, w.claims.Delete(w.Context(), shellClass()))
		}, all, phasesOf(failed, failed, failed)},
		"the class has a workspace by now: all": {class(func(c *v1alpha1.ClusterSandboxClass) {
			c.Spec.Filesystem = &v1alpha1.Filesystem{Workspace: &v1alpha1.WorkspaceMount{MountPath: "/workspace"}}
		}), all, phasesOf(failed, failed, failed)},
		"the class has another image by now: nobody": {class(func(c *v1alpha1.ClusterSandboxClass) { c.Spec.Image = "shell:2" }), nil, phasesOf(queued, queued, queued)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := waiting(t)
			tt.change(w)
			found := w.outdated()
			assert.Equal(t, tt.finds, found)
			w.lookAt(found...)
			assert.Empty(t, w.outdated(), "who was looked at is not looked at again")
			for name, phase := range tt.becomes {
				assert.Equal(t, phase, w.claimOf(name).Status.Phase, name)
				if phase == queued {
					did, _, err := w.reconcileOf(name)
					require.NoError(t, err)
					assert.Empty(t, did, "%s would have found nothing by itself", name)
				}
			}
		})
	}
}

func phasesOf(c2, c3, c4 v1alpha1.Phase) map[string]v1alpha1.Phase {
	return map[string]v1alpha1.Phase{"c2": c2, "c3": c3, "c4": c4}
}

func TestOutdated_OfAnotherRuntime(t *testing.T) {
	w := waiting(t)
	other := enabledRuntime()
	other.Name, other.Spec.Sandbox.MaxConcurrent = "other", ptr.To[int32](0)
	require.NoError(t, w.host.Create(t.Context(), other))
	claim := queuedClaim(5)
	claim.Spec.AgentRuntimeRef.Name = "other"
	require.NoError(t, w.claims.Create(t.Context(), claim))
	w.lookAt("c5")
	require.Empty(t, w.outdated())

	other.Spec.Sandbox.MaxConcurrent = ptr.To[int32](1)
	require.NoError(t, w.host.Update(t.Context(), other))
	assert.Equal(t, []string{"c5"}, w.outdated(), "each runtime's are looked at, by its own ceilings")
	w.refuse["get AgentRuntime"] = apierrors.NewInternalError(assert.AnError)
	assert.Empty(t, w.outdated(), "what cannot be read is read the next time")
}

func TestOutdated_ClassThatCannotBeRead(t *testing.T) {
	w := waiting(t)
	w.refuse["get ClusterSandboxClass"] = apierrors.NewInternalError(assert.AnError)
	assert.Equal(t, []string{"c2", "c3", "c4"}, w.outdated())
	_, _, err := w.reconcileOf("c2")
	require.ErrorContains(t, err, "ClusterSandboxClass", "whoever names it tells why")
	assert.Equal(t, v1alpha1.PhaseQueued, w.claimOf("c2").Status.Phase)
}

func TestRecheckWaiters_CountsByTheClock(t *testing.T) {
	w := waiting(t)
	w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxConcurrent = ptr.To[int32](2) })
	c := clocktesting.NewFakeClock(began)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	require.NoError(t, w.r.recheckAll(c, func(context.Context) bool { return true }).Start(t.Context(), queue))
	looksAt := func() {
		t.Helper()
		require.Eventually(t, func() bool { return queue.Len() == 2 }, 10*time.Second, time.Millisecond)
		for _, want := range []string{"c2", "c3"} {
			got, _ := queue.Get()
			assert.Equal(t, reconcileRequest(want), got)
			queue.Done(got)
		}
	}
	c.Step(10*time.Second - time.Nanosecond)
	assert.Zero(t, queue.Len(), "not yet")
	c.Step(time.Nanosecond)
	looksAt()
	c.Step(time.Hour) // at a stroke: there is nothing to catch up on
	looksAt()
	c.Step(10 * time.Second)
	looksAt()
}
