package claim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

// namespaceMeta is what the host's cache holds of Namespaces.
func namespaceMeta() *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return out
}

// keep has objects of one namespace, that are about to be applied, kept by it besides (pkg/sandbox.Keep).
func (r *Reconciler) keep(ctx context.Context, objects ...client.Object) error {
	key, namespace := client.ObjectKey{Name: objects[0].GetNamespace()}, namespaceMeta()
	err := r.Host.Get(ctx, key, namespace)
	if apierrors.IsNotFound(err) { // it is newer than the cache
		err = r.HostLive.Get(ctx, key, namespace)
	}
	if err != nil {
		return fmt.Errorf("reading the Namespace that keeps a sandbox: %w", err)
	}
	for _, object := range objects {
		sandbox.Keep(object, namespace.UID)
	}
	return nil
}

// disowned says whether an object of the claim's own lacks an owner that is to be put back. What was taken away
// because the host did not know the claim is put back once it does: until then it would be taken away again.
func (r *Reconciler) disowned(ctx context.Context, w *work, p *part) bool {
	switch {
	case p.owner != nil, !sandbox.LacksOwner(p.built, p.stands):
		return false
	case !sandbox.LacksClaim(w.claim, p.stands):
		return true
	case r.known(ctx, w.claim):
		return true
	}
	w.again = recheck
	return false
}

// known says whether whoever asks the host for the claim, as its garbage collector does, gets it.
func (r *Reconciler) known(ctx context.Context, claim *v1alpha1.SandboxClaim) bool {
	served := &metav1.PartialObjectMetadata{}
	served.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("SandboxClaim"))
	if err := r.HostLive.Get(ctx, client.ObjectKeyFromObject(claim), served); err != nil {
		klog.FromContext(ctx).Info("The host does not give the claim, so that its objects lack it as their owner", "claim", klog.KObj(claim), "err", err)
		return false
	}
	return served.UID == claim.UID
}
