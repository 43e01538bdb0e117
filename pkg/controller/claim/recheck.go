package claim

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// "Every waiter is also re-checked every 10 seconds" (spec/sandboxclaim.md, "Phases"): all of a runtime's in one pass, and
// not each by itself, which would read the whole queue as often as it is long. The pass decides nothing. It holds what each
// Queued claim says against what an admission would say of it by now, by the same rules over the same facts, and has those
// looked at of which the two differ. So it finds what a waiter's own admission would: a free slot, another limit, a runtime
// that is gone or forbids sandboxes, a class that is gone or no longer fits. What time alone brings, the end of a lease and
// of patience, it leaves to the claim's own reconcile, which is scheduled for it; and a claim without a phase, of which an
// admission has ended in an error, to its retry.

// recheckAll puts into the controller's queue what is to be looked at and no event tells of, every recheck by the clock: who
// waits, and what claims left that have gone; and at once where a place became free. It begins where the controller does, on
// the replica that holds the Lease, which looks at all claims when it begins, and with what they left once the caches are filled.
func (r *Reconciler) recheckAll(by clock.WithTicker, filled func(context.Context) bool) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		ticker := by.NewTicker(recheck)
		go func() {
			defer ticker.Stop()
			if filled(ctx) {
				add(queue, r.abandoned())
			}
			for {
				select {
				case <-ticker.C():
					add(queue, r.outdated(ctx))
					add(queue, r.abandoned())
					r.sweepFloors(ctx)
				case runtime := <-r.freed:
					add(queue, r.next(ctx, runtime.Namespace, runtime.Name))
				case <-ctx.Done():
					return
				}
			}
		}()
		return nil
	})
}

func add(to workqueue.TypedRateLimitingInterface[reconcile.Request], requests []reconcile.Request) {
	for _, request := range requests {
		to.Add(request)
	}
}

// outdated gives the Queued claims, of whatever runtime, that no longer say what an admission would say of them.
func (r *Reconciler) outdated(ctx context.Context) []reconcile.Request {
	var out []reconcile.Request
	for _, value := range r.claims.ListIndexFuncValues(queuedByRuntime) {
		claims, err := r.outdatedOf(ctx, keyOf(value))
		if err != nil {
			klog.FromContext(ctx).Error(err, "Looking at the claims that wait", "agentRuntime", value)
			continue
		}
		out = append(out, requestsFor(claims)...)
	}
	return out
}

func (r *Reconciler) outdatedOf(ctx context.Context, key types.NamespacedName) ([]*v1alpha1.SandboxClaim, error) {
	runtime, err := r.runtime(ctx, r.Host, key)
	if err != nil {
		return nil, err
	}
	queue, err := r.queue(ctx, key, runtime)
	if err != nil {
		return nil, err
	}
	classes := map[v1alpha1.ClassReference]*v1alpha1.SandboxClassSpec{}
	return queue.Recheck(func(claim *v1alpha1.SandboxClaim) *v1alpha1.SandboxClassSpec {
		ref := claim.Spec.ClassRef
		if _, read := classes[ref]; !read {
			class, err := r.class(ctx, claim)
			if err != nil {
				class = nil // so that whoever names it is looked at, and tells why it cannot be read
			}
			classes[ref] = class
		}
		return classes[ref]
	}), nil
}
