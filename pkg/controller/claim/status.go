package claim

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
)

// report puts a verdict into the claim's status.
func (r *Reconciler) report(claim *v1alpha1.SandboxClaim, verdict lifecycle.Verdict) {
	now := r.Clock.Now()
	status := &claim.Status
	if status.Phase != verdict.Phase {
		status.LastUsedAt = &metav1.MicroTime{Time: now}
	}
	status.Phase = verdict.Phase
	status.Addresses = verdict.Addresses
	status.ObservedGeneration = claim.Generation
	ready := metav1.ConditionFalse
	if verdict.Phase == v1alpha1.PhaseBound {
		ready = metav1.ConditionTrue
		status.Deployment = verdict.Deployment
		if status.BoundAt == nil {
			status.BoundAt = &metav1.MicroTime{Time: now}
		}
	}
	if lifecycle.Terminal(verdict.Phase) { // there is no sandbox of which they could tell
		apimeta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionEgressResolved)
		apimeta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionIsolationWeakened)
	}
	apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: verdict.Reason, Message: verdict.Message,
		ObservedGeneration: claim.Generation, LastTransitionTime: metav1.Time{Time: now},
	})
}

// record writes the status if it changed, tells people of it, and takes it as what is stored. False means that the claim
// is newer than what was read, or gone, so that all begins anew.
func (r *Reconciler) record(ctx context.Context, w *work) (bool, error) {
	if equality.Semantic.DeepEqual(w.before.Status, w.claim.Status) {
		return true, nil
	}
	before := w.before.Status.DeepCopy()
	ctx, span := spans.Start(ctx, spans.WriteStatus)
	err := r.Claims.Status().Patch(ctx, w.claim, client.MergeFromWithOptions(w.before, client.MergeFromWithOptimisticLock{}))
	span.End(err)
	w.claim.DeepCopyInto(w.before) // whatever became of it, it is not tried twice
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("writing the status of claim %s/%s: %w", w.claim.Namespace, w.claim.Name, err)
	}
	observeStep(before, &w.claim.Status, w.end)
	r.tellStep(w, before)
	r.tellIsolation(w, before)
	return true, nil
}
