package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/metrics"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
)

// admit decides whether the claim may have a sandbox now. Where it may, the status holds all that the sandbox is built
// from, and that is on record before any pod is asked for. Where it has to wait, whoever frees a place and recheckAll have
// it looked at again.
func (r *Reconciler) admit(ctx context.Context, w *work) (time.Duration, bool, error) {
	facts, err := r.gather(ctx, w)
	if err != nil {
		return 0, false, err
	}
	if err := r.decide(ctx, w, facts); err != nil {
		return 0, false, err
	}
	key, admitted := client.ObjectKeyFromObject(w.claim), w.claim.Status.Phase == v1alpha1.PhasePending
	var policyMade <-chan *reach
	if admitted {
		policyMade = r.policyAhead(ctx, w.claim)
	}
	written, err := r.record(ctx, w)
	if admitted {
		w.reach = <-policyMade
	}
	if err != nil {
		r.takeover.renew() // it may have been written all the same
	}
	if err != nil || !written {
		r.given.drop(key)
		return soon, false, err
	}
	r.given.wrote(w.claim)
	w.confirmed = true
	return 0, admitted, nil
}

// decide puts into the claim's status whether it may have a sandbox now, which holds for whoever is decided on next. From
// reading what is held to noting what was decided, nobody else of this runtime is decided on.
func (r *Reconciler) decide(ctx context.Context, w *work, facts lifecycle.Admission) (err error) {
	ctx, span := spans.Start(ctx, spans.Decide)
	defer func() { span.End(err) }()
	key := runtimeOf(w.claim)
	r.admissions.LockKey(key.String())
	defer func() { _ = r.admissions.UnlockKey(key.String()) }() // it fails for an unlocked one only
	if err := r.takeover.complete(ctx, r); err != nil {
		return err
	}
	if facts.Queue, err = r.queue(ctx, key, facts.Runtime); err != nil {
		return err
	}
	w.firstQueued = !slices.ContainsFunc(facts.Queue.Claims, func(other *v1alpha1.SandboxClaim) bool {
		return other.UID != w.claim.UID && other.Status.Phase == v1alpha1.PhaseQueued && v1alpha1.ReadyCondition(other.Status.Conditions).Reason == v1alpha1.ReasonCeilingReached
	})
	verdict := lifecycle.Admit(facts)
	if verdict.Phase == v1alpha1.PhasePending {
		w.claim.Status.Class = facts.Class
		w.claim.Status.SandboxName = sandbox.Name(w.claim)
		r.building.begin(w.claim)
	}
	r.report(w.claim, verdict)
	r.given.add(w.claim)
	return nil
}

// queue reads what competes with one runtime's claims.
func (r *Reconciler) queue(ctx context.Context, key types.NamespacedName, runtime *omniav1alpha1.AgentRuntime) (lifecycle.Queue, error) {
	for uid, deployment := range r.building.overdue(key, r.Clock.Now().Add(-recheck)) {
		// A read of what this process wrote waits until the cache has it, or has seen it go.
		if err := r.Host.Get(ctx, deployment, &appsv1.Deployment{}); client.IgnoreNotFound(err) != nil {
			return lifecycle.Queue{}, fmt.Errorf("reading Deployment %s, which was made a while ago: %w", deployment, err)
		}
		r.building.known(uid)
	}
	return r.competing(key, runtime)
}

// competing is what the caches hold of one runtime's queue, with what this process decided and made since. What is being built
// is asked first: it is found as a Deployment once it is built no longer.
func (r *Reconciler) competing(key types.NamespacedName, runtime *omniav1alpha1.AgentRuntime) (lifecycle.Queue, error) {
	standing := r.building.of(key)
	claims, err := found[*v1alpha1.SandboxClaim](r.claims, key)
	if err != nil {
		return lifecycle.Queue{}, fmt.Errorf("finding the claims of AgentRuntime %s: %w", key, err)
	}
	if claims, err = r.given.over(claims); err != nil {
		return lifecycle.Queue{}, err
	}
	deployments, err := found[*appsv1.Deployment](r.deployments, key)
	if err != nil {
		return lifecycle.Queue{}, fmt.Errorf("finding the Deployments of AgentRuntime %s: %w", key, err)
	}
	for _, deployment := range deployments {
		claim := sandbox.ClaimUIDOf(deployment)
		if standing.Has(claim) {
			r.building.known(claim)
		}
		standing.Insert(claim)
	}
	return lifecycle.Queue{Runtime: runtime, Claims: claims, Standing: standing}, nil
}

// unwaited says whether nobody waits any longer for a claim that is withdrawn then, and if somebody may, for how long.
func (r *Reconciler) unwaited(claim *v1alpha1.SandboxClaim) (bool, time.Duration) {
	if !lifecycle.Withdrawable(claim) {
		r.leases.forget(client.ObjectKeyFromObject(claim))
		return false, 0
	}
	now := r.Clock.Now()
	return lifecycle.Withdraw(claim, r.leases.firstSeen(claim, now), now)
}

// withdraw deletes a claim that nobody waits for, if it has not changed since.
func (r *Reconciler) withdraw(ctx context.Context, claim *v1alpha1.SandboxClaim) error {
	err := r.Claims.Delete(ctx, claim, asRead(claim))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // gone already, or looked at again for what changed it
	case err != nil:
		return fmt.Errorf("withdrawing claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	r.leases.forget(client.ObjectKeyFromObject(claim))
	metrics.Withdrawals.WithLabelValues(leaseExpired).Inc()
	klog.FromContext(ctx).Info("Withdrew a claim that nobody waits for", "claim", klog.KObj(claim))
	return nil
}
