package claim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// seen gives the queue a claim, as a leader sees it that has just begun.
func seen(t *testing.T, queue workqueue.TypedRateLimitingInterface[reconcile.Request], name string, phase v1alpha1.Phase, change ...func(*v1alpha1.SandboxClaim)) {
	t.Helper()
	claim := newClaim()
	claim.Name, claim.Status.Phase = name, phase
	for _, c := range change {
		c(claim)
	}
	(&waitersFirst{}).Create(t.Context(), event.TypedCreateEvent[*v1alpha1.SandboxClaim]{Object: claim, IsInInitialList: true}, queue)
}

func TestNewLeader_LooksFirstAtWhatSomebodyMayWaitFor(t *testing.T) {
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	const standing = 100
	for i := range standing {
		seen(t, queue, fmt.Sprintf("bound-%d", i), v1alpha1.PhaseBound)
	}
	seen(t, queue, "failed", v1alpha1.PhaseFailed)
	waitedFor := []string{"new", "queued", "pending", "ending"}
	seen(t, queue, "new", "")
	seen(t, queue, "queued", v1alpha1.PhaseQueued)
	seen(t, queue, "pending", v1alpha1.PhasePending)
	seen(t, queue, "ending", v1alpha1.PhaseBound, func(c *v1alpha1.SandboxClaim) { c.DeletionTimestamp = &metav1.Time{Time: began} })

	var first []string
	for range waitedFor {
		request, _ := queue.Get()
		first = append(first, request.Name)
	}
	assert.Equal(t, waitedFor, first)
	for range standing + 1 {
		request, _ := queue.Get()
		assert.NotContains(t, waitedFor, request.Name, "each is looked at, and once")
	}
	assert.Zero(t, queue.Len())
}

func TestNewLeader_WithAQueueWithoutPriorities_LooksAtAll(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	seen(t, queue, "bound", v1alpha1.PhaseBound)
	seen(t, queue, "new", "")
	assert.Equal(t, 2, queue.Len())
}
