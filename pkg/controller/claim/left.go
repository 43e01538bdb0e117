package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

// A sandbox goes with its claim (spec/sandboxclaim.md, "all owned by the claim, so deleting the claim removes them"). It is
// this controller that removes it, and not the garbage collector, which believes whoever does not find the claim
// (pkg/sandbox.Keep). So each removal for want of a claim goes through clear.

// holdings are the caches of a sandbox's objects.
func (r *Reconciler) holdings() []index { return []index{r.deployments, r.services, r.policies} }

// objectsOf gives what the caches hold of the objects of claims of this name, which are only read.
func (r *Reconciler) objectsOf(key types.NamespacedName) ([]client.Object, error) {
	var out []client.Object
	for _, held := range r.holdings() {
		objects, err := foundBy[client.Object](held, byClaim, key.String())
		if err != nil {
			return nil, fmt.Errorf("finding the objects of claim %s: %w", key, err)
		}
		out = append(out, objects...)
	}
	return out, nil
}

// clear removes what stands of claims of this name that have gone: all but what is of the claim with this UID, if there is one.
func (r *Reconciler) clear(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	objects, err := r.objectsOf(key)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(objects, func(o client.Object) bool {
		return sandbox.ClaimUIDOf(o) == uid || o.GetDeletionTimestamp() != nil
	})
	return r.removeLeft(ctx, key, left...)
}

// removeLeft removes objects whose claim, of this name, is not there by what the cache says.
func (r *Reconciler) removeLeft(ctx context.Context, key types.NamespacedName, left ...client.Object) error {
	if len(left) == 0 {
		return nil
	}
	live := &v1alpha1.SandboxClaim{}
	if err := r.ClaimsLive.Get(ctx, key, live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading claim %s before the removal of what it left: %w", key, err)
	}
	if err := r.confirmStore(ctx); err != nil {
		return err
	}
	for _, object := range left {
		if sandbox.ClaimUIDOf(object) == live.UID {
			continue // it is newer than the cache of claims
		}
		klog.FromContext(ctx).V(2).Info("Removing what a claim left", "claim", key, "object", klog.KObj(object))
		if err := r.removeCached(ctx, object); err != nil {
			return fmt.Errorf("removing what claim %s left: %w", key, err)
		}
	}
	return nil
}

// confirmStore is asked after a claim was not found: that says something only of the store that it was in.
func (r *Reconciler) confirmStore(ctx context.Context) error {
	if r.Confirm == nil {
		return nil
	}
	if err := r.Confirm(ctx); err != nil {
		return fmt.Errorf("leaving the sandbox of a claim that is not found: %w", err)
	}
	return nil
}

// remove deletes exactly the object that was read.
func (r *Reconciler) remove(ctx context.Context, object client.Object) error {
	object = object.DeepCopyObject().(client.Object) // a cache's own is only read
	err := r.Host.Delete(ctx, object,
		client.Preconditions{UID: ptr.To(object.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsConflict(err) {
		return errChanged
	}
	return client.IgnoreNotFound(err)
}

// removeCached deletes an object of a cache's. Where another stands in its place by now, that one is looked at for its own sake.
func (r *Reconciler) removeCached(ctx context.Context, object client.Object) error {
	if err := r.remove(ctx, object); !errors.Is(err, errChanged) {
		return err
	}
	return nil
}

// finalize does what was asked of a claim's sandbox when the claim was deleted, and lets the claim go once that is done.
func (r *Reconciler) finalize(ctx context.Context, claim *v1alpha1.SandboxClaim) error {
	var done bool
	var err error
	switch {
	case slices.Contains(claim.Finalizers, v1alpha1.FinalizerOrphan):
		done, err = true, r.disown(ctx, claim)
	case slices.Contains(claim.Finalizers, v1alpha1.FinalizerForeground):
		done, err = r.removeAll(ctx, claim)
	default:
		return nil // what it has goes after it
	}
	if err != nil || !done {
		return err
	}
	before := claim.DeepCopy()
	claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool {
		return f == v1alpha1.FinalizerOrphan || f == v1alpha1.FinalizerForeground
	})
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Claims.Patch(ctx, claim, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting claim %s/%s go: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// removeAll removes a claim's sandbox, and says whether nothing of it is left, its pods included.
func (r *Reconciler) removeAll(ctx context.Context, claim *v1alpha1.SandboxClaim) (bool, error) {
	objects, err := r.objectsOf(client.ObjectKeyFromObject(claim))
	if err != nil {
		return false, err
	}
	for _, object := range objects {
		if object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := r.removeCached(ctx, object); err != nil {
			return false, fmt.Errorf("removing the sandbox of claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
	}
	pods, err := r.podsOf(ctx, claim)
	return len(objects) == 0 && len(pods) == 0, err
}

// disown has a claim's objects be nobody's.
func (r *Reconciler) disown(ctx context.Context, claim *v1alpha1.SandboxClaim) error {
	objects, err := r.objectsOf(client.ObjectKeyFromObject(claim))
	if err != nil {
		return err
	}
	for _, held := range objects {
		object := held.DeepCopyObject().(client.Object)
		sandbox.Disown(object)
		if err := r.Host.Update(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("leaving the sandbox of claim %s/%s to nobody: %w", claim.Namespace, claim.Name, err)
		}
	}
	return nil
}

// stop ends the sandbox of a claim that has come to its end, so that it holds no pod. Its NetworkPolicy stays until the
// claim goes, since the pod may take a while to end.
func (r *Reconciler) stop(ctx context.Context, claim *v1alpha1.SandboxClaim) error {
	if claim.Status.SandboxName == "" {
		return nil
	}
	key := client.ObjectKey{Namespace: claim.Namespace, Name: claim.Status.SandboxName}
	for _, object := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		err := r.Host.Get(ctx, key, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading what is left of a failed sandbox: %w", err)
		}
		if sandbox.OwnerOf(claim, object) != sandbox.Own || object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := r.remove(ctx, object); err != nil {
			return fmt.Errorf("removing what is left of a failed sandbox: %w", err)
		}
	}
	return nil
}

// abandoned gives the claims that are not there and of which something stands: they went while no controller ran, or while one
// was making it.
func (r *Reconciler) abandoned() []reconcile.Request {
	keys := sets.New[string]()
	for _, held := range r.holdings() {
		keys.Insert(held.ListIndexFuncValues(byClaim)...)
	}
	var out []reconcile.Request
	for key := range keys {
		if _, there, err := r.claims.GetByKey(key); err == nil && !there {
			out = append(out, reconcile.Request{NamespacedName: keyOf(key)})
		}
	}
	return out
}
