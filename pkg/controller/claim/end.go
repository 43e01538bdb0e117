package claim

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

// end deletes a claim whose time has come: it reads the claim and its runtime again, past the caches, and deletes it only
// if it is still due and still as it was read.
func (r *Reconciler) end(ctx context.Context, cached *v1alpha1.SandboxClaim) (reconcile.Result, error) {
	claim := &v1alpha1.SandboxClaim{}
	if err := r.ClaimsLive.Get(ctx, client.ObjectKeyFromObject(cached), claim); apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading claim %s/%s before its deletion: %w", cached.Namespace, cached.Name, err)
	}
	runtime, err := r.runtime(ctx, r.HostLive, runtimeOf(claim))
	if err != nil {
		return reconcile.Result{}, err
	}
	due, after := lifecycle.Due(claim, runtime, r.Clock.Now())
	if !due.Delete {
		return reconcile.Result{RequeueAfter: soonest(after, soon)}, nil // it was used meanwhile
	}
	err = r.Claims.Delete(ctx, claim, asRead(claim))
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: soon}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("deleting claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	klog.FromContext(ctx).Info("Deleted a claim whose time had come", "claim", klog.KObj(claim), "cause", due.Cause)
	ended.WithLabelValues(string(due.Cause)).Inc()
	r.tellEnd(claim, runtime, due)
	return reconcile.Result{}, nil
}

// asRead has a deletion refused if the object is no longer what was read.
func asRead(object client.Object) client.Preconditions {
	return client.Preconditions{UID: ptr.To(object.GetUID()), ResourceVersion: ptr.To(object.GetResourceVersion())}
}
