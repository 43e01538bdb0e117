package claim

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// catchUpPoll is how often the cache is asked whether it holds what the last leader wrote. It does within milliseconds.
const catchUpPoll = 10 * time.Millisecond

// takeover holds up the first admission until the cache holds what the last leader wrote: it might have admitted a claim
// a moment ago, whose slot would else be given twice. The zero value is ready.
type takeover struct {
	mu   sync.Mutex
	done bool
}

// renew has the next admission wait again, after a write of which nobody knows whether it was made.
func (t *takeover) renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = false
}

func (t *takeover) complete(ctx context.Context, r *Reconciler) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return nil
	}
	written := &metav1.PartialObjectMetadataList{}
	written.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("SandboxClaimList"))
	if err := r.ClaimsLive.List(ctx, written); err != nil {
		return fmt.Errorf("listing the claims that the last leader left: %w", err)
	}
	for i := range written.Items {
		item := &written.Items[i]
		err := wait.PollUntilContextCancel(ctx, catchUpPoll, true, func(ctx context.Context) (bool, error) { return r.holds(ctx, item) })
		if err != nil {
			return fmt.Errorf("waiting for the cache to hold claim %s/%s as the last leader left it: %w", item.Namespace, item.Name, err)
		}
	}
	t.done = true
	return nil
}

// holds says whether the cache has the claim as it was listed, or later. One that it lacks may have gone since.
func (r *Reconciler) holds(ctx context.Context, listed *metav1.PartialObjectMetadata) (bool, error) {
	key, cached := client.ObjectKeyFromObject(listed), &v1alpha1.SandboxClaim{}
	err := r.Claims.Get(ctx, key, cached)
	if apierrors.IsNotFound(err) {
		err = r.ClaimsLive.Get(ctx, key, cached)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if err != nil {
		return false, err
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, listed.ResourceVersion)
	return order >= 0, err
}
