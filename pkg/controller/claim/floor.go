package claim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

// floorPart is what the sandboxes of a namespace have in common: it stands before the first of them has a pod, and until the
// last one's has gone.
func floorPart(claim *v1alpha1.SandboxClaim) *part {
	stands := &networkingv1.NetworkPolicy{}
	p := networkPolicyPart(sandbox.Floor(claim.Namespace), stands)
	p.owner = func() sandbox.Owner {
		if sandbox.IsFloor(stands) {
			return sandbox.Own
		}
		return sandbox.Foreign
	}
	return p
}

// sweepFloors removes the floors of namespaces in which there is neither a claim nor a sandbox's pod. Where a claim comes in
// between, it is told that the floor has gone, and makes it anew.
func (r *Reconciler) sweepFloors(ctx context.Context) {
	floors, err := foundBy[*networkingv1.NetworkPolicy](r.policies, byReach, anyFloor)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Finding the floors of namespaces")
		return
	}
	claimed := sets.New[string]()
	for _, runtime := range r.claims.ListIndexFuncValues(byRuntime) {
		claimed.Insert(keyOf(runtime).Namespace)
	}
	for _, floor := range floors {
		if claimed.Has(floor.Namespace) {
			continue
		}
		var pods corev1.PodList
		if err := r.Host.List(ctx, &pods, client.InNamespace(floor.Namespace), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
			klog.FromContext(ctx).Error(err, "Looking for sandboxes above a floor", "networkPolicy", klog.KObj(floor))
			continue
		}
		if len(pods.Items) > 0 {
			continue
		}
		if err := r.Host.Delete(ctx, floor, asRead(floor)); client.IgnoreNotFound(err) != nil {
			klog.FromContext(ctx).Error(err, "Removing the floor of a namespace without sandboxes", "networkPolicy", klog.KObj(floor))
		}
	}
}
