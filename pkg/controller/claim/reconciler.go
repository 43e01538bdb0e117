// Package claim reconciles SandboxClaims: it reads what there is, asks pkg/lifecycle what is due, applies what
// pkg/sandbox built, and writes the claim's status once. It refuses to decide: a rule of the specification that is
// found here is in the wrong place.
package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

const (
	// recheck is when to look again at what sends no event: an object of somebody else's, a refusal that may pass.
	recheck = 10 * time.Second
	// soon is when to look again at what changed under a write.
	soon = time.Second
)

// Reconciler turns claims into sandboxes.
type Reconciler struct {
	// Claims reads our own group from a cache and writes it; ClaimsLive reads it uncached.
	Claims     client.Client
	ClaimsLive client.Reader
	// Host reads the host cluster from a cache and writes it; HostLive reads it uncached.
	Host     client.Client
	HostLive client.Reader
	Clock    clock.PassiveClock

	leases leases
}

var _ reconcile.Reconciler = &Reconciler{}

// Reconcile brings one claim a step further.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &v1alpha1.SandboxClaim{}
	if err := r.Claims.Get(ctx, request.NamespacedName, claim); apierrors.IsNotFound(err) {
		r.leases.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading a claim: %w", err)
	}
	switch {
	case claim.DeletionTimestamp != nil:
		r.leases.forget(request.NamespacedName)
		return reconcile.Result{}, nil // its objects go with it, by their owner references
	case lifecycle.Terminal(claim.Status.Phase):
		r.leases.forget(request.NamespacedName)
		return reconcile.Result{}, r.stop(ctx, claim)
	}
	before := claim.DeepCopy()
	after, err := r.advance(ctx, claim, before)
	if errors.Is(err, errChanged) {
		after, err = soon, nil // and sooner, by the event of whoever changed it
	}
	written, werr := r.record(ctx, before, claim)
	if err = errors.Join(err, werr); err != nil {
		return reconcile.Result{}, err
	}
	if !written {
		after = soon
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// advance changes the claim's status to what it should say, and says when to look again. before is moved along where
// the status had to be written on the way.
func (r *Reconciler) advance(ctx context.Context, claim, before *v1alpha1.SandboxClaim) (time.Duration, error) {
	if claim.Status.Class == nil || claim.Status.SandboxName == "" {
		if admitted, err := r.admit(ctx, claim); err != nil || !admitted {
			return 0, err
		}
		// What the sandbox is built from must be on record before anything is built.
		if written, err := r.record(ctx, before, claim); err != nil || !written {
			return soon, err
		}
	}
	seen, after, err := r.apply(ctx, claim)
	if err != nil {
		return 0, err
	}
	r.report(claim, lifecycle.Stand(seen))
	return after, nil
}

// admit decides whether the claim may have a sandbox. Where it may, the status holds all that the sandbox is built from.
func (r *Reconciler) admit(ctx context.Context, claim *v1alpha1.SandboxClaim) (bool, error) {
	now := r.Clock.Now()
	if due, _ := lifecycle.Withdraw(claim, r.leases.firstSeen(claim, now), now); due {
		return false, r.withdraw(ctx, claim)
	}
	facts, err := r.gather(ctx, claim)
	if err != nil {
		return false, err
	}
	verdict := lifecycle.Admit(facts)
	if verdict.Phase == v1alpha1.PhasePending {
		claim.Status.Class = facts.Class
		claim.Status.SandboxName = sandbox.Name(claim)
		r.leases.forget(client.ObjectKeyFromObject(claim))
	}
	r.report(claim, verdict)
	return verdict.Phase == v1alpha1.PhasePending, nil
}

// withdraw deletes a claim that nobody waits for, if it has not changed since.
func (r *Reconciler) withdraw(ctx context.Context, claim *v1alpha1.SandboxClaim) error {
	klog.FromContext(ctx).Info("Withdrawing a claim that nobody waits for", "claim", klog.KObj(claim))
	r.leases.forget(client.ObjectKeyFromObject(claim))
	err := r.Claims.Delete(ctx, claim, client.Preconditions{UID: ptr.To(claim.UID), ResourceVersion: ptr.To(claim.ResourceVersion)})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

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
	if verdict.Phase == v1alpha1.PhaseBound && status.BoundAt == nil {
		status.BoundAt = &metav1.MicroTime{Time: now}
	}
	ready := metav1.ConditionFalse
	if verdict.Phase == v1alpha1.PhaseBound {
		ready = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: verdict.Reason, Message: verdict.Message,
		ObservedGeneration: claim.Generation, LastTransitionTime: metav1.Time{Time: now},
	})
}

// record writes the status if it changed, and moves before along. False means that the claim is newer than what was read,
// or gone, so that all begins anew.
func (r *Reconciler) record(ctx context.Context, before, claim *v1alpha1.SandboxClaim) (bool, error) {
	if equality.Semantic.DeepEqual(before.Status, claim.Status) {
		return true, nil
	}
	err := r.Claims.Status().Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	claim.DeepCopyInto(before) // whatever became of it, it is not tried twice
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("writing the status of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return true, nil
}
