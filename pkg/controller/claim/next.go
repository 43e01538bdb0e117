package claim

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

// When a place becomes free, the oldest waiters are looked at again at once, as many as there are free places
// (spec/sandboxclaim.md, "Phases").

// placeFreed lets pass that a claim no longer competes: it has ended, or is ending.
func placeFreed() predicate.TypedPredicate[*v1alpha1.SandboxClaim] {
	competes := func(c *v1alpha1.SandboxClaim) bool { return lifecycle.Live(c.Status.Phase, c.DeletionTimestamp != nil) }
	return predicate.TypedFuncs[*v1alpha1.SandboxClaim]{
		CreateFunc: func(event.TypedCreateEvent[*v1alpha1.SandboxClaim]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.SandboxClaim]) bool {
			return competes(e.ObjectOld) && (!competes(e.ObjectNew) || e.ObjectOld.UID != e.ObjectNew.UID)
		},
	}
}

// gone lets pass that an object has been removed.
func gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// sandboxTermsChanged lets pass what changes how a runtime's claims live: without it, they live by the defaults.
func sandboxTermsChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*omniav1alpha1.AgentRuntime), e.ObjectNew.(*omniav1alpha1.AgentRuntime)
			return !equality.Semantic.DeepEqual(before.Spec.Sandbox, after.Spec.Sandbox)
		},
	}
}

func (r *Reconciler) nextAfterClaim(ctx context.Context, claim *v1alpha1.SandboxClaim) []reconcile.Request {
	return r.next(ctx, claim.Namespace, runtimeOfClaim(claim))
}

func (r *Reconciler) nextAfterDeployment(ctx context.Context, deployment client.Object) []reconcile.Request {
	r.building.known(sandbox.ClaimUIDOf(deployment))
	return r.next(ctx, deployment.GetNamespace(), runtimeOfDeployment(deployment))
}

// built notes that a reconcile of a claim has ended. If the claim went meanwhile, and its Deployment too, their events came
// while the slot was held by that reconcile alone, so its end is when the place becomes free.
func (r *Reconciler) built(ctx context.Context, claim *v1alpha1.SandboxClaim) {
	if !r.building.end(claim, r.Clock.Now()) {
		return
	}
	now := &v1alpha1.SandboxClaim{}
	err := r.Claims.Get(ctx, client.ObjectKeyFromObject(claim), now, client.DisableReadYourWritesConsistency)
	if err == nil && now.UID == claim.UID && lifecycle.Live(now.Status.Phase, now.DeletionTimestamp != nil) {
		return
	}
	select {
	case r.freed <- runtimeOf(claim):
	default: // recheckAll finds it
	}
}

// next gives the claims of a runtime that a freed place concerns. It looks at the cache as it is, since whoever asks feeds
// the cache; what it misses comes with the next event, or after recheck.
func (r *Reconciler) next(ctx context.Context, namespace, runtimeName string) []reconcile.Request {
	if runtimeName == "" {
		return nil
	}
	key, runtime := types.NamespacedName{Namespace: namespace, Name: runtimeName}, &omniav1alpha1.AgentRuntime{}
	if err := r.Host.Get(ctx, key, runtime); err != nil {
		return nil // without it nobody is admitted, and whoever waits finds that out by itself
	}
	queue, err := r.competing(key, runtime)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Looking for who is next")
		return nil
	}
	return requestsFor(queue.Again())
}

// claimsOfRuntime gives all of a runtime's claims: its ceilings, or how long they may go untouched, have changed.
func (r *Reconciler) claimsOfRuntime(ctx context.Context, runtime client.Object) []reconcile.Request {
	claims, err := found[*v1alpha1.SandboxClaim](r.claims, client.ObjectKeyFromObject(runtime))
	if err != nil {
		klog.FromContext(ctx).Error(err, "Finding the claims of an AgentRuntime that changed", "agentRuntime", klog.KObj(runtime))
		return nil
	}
	return requestsFor(claims)
}

func requestsFor(claims []*v1alpha1.SandboxClaim) []reconcile.Request {
	out := make([]reconcile.Request, 0, len(claims))
	for _, claim := range claims {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)})
	}
	return out
}
