package claim

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

// waitersFirst queues claims, and has those that somebody may wait for looked at before those that stand. To a new leader all
// claims there are come at once, in no order, and with a low priority, what was created while there was no leader among them: it
// would wait until thousands were looked at that need nothing. A queue without priorities takes all alike.
type waitersFirst struct {
	handler.TypedEnqueueRequestForObject[*v1alpha1.SandboxClaim]
}

var _ handler.TypedEventHandler[*v1alpha1.SandboxClaim, reconcile.Request] = &waitersFirst{}

// Create queues a claim that is new, or new to this leader.
func (h *waitersFirst) Create(ctx context.Context, e event.TypedCreateEvent[*v1alpha1.SandboxClaim], queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	e.IsInInitialList = e.IsInInitialList && !mayBeWaitedFor(e.Object)
	h.TypedEnqueueRequestForObject.Create(ctx, e, queue)
}

// mayBeWaitedFor says whether an acquire may wait for what becomes of a claim: for its sandbox, or for its end.
func mayBeWaitedFor(claim *v1alpha1.SandboxClaim) bool {
	return claim.DeletionTimestamp != nil || claim.Status.Phase != v1alpha1.PhaseBound && !lifecycle.Terminal(claim.Status.Phase)
}
