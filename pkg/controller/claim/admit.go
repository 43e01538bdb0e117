package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/metrics"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

const (
	// claimsByRuntime indexes claims by the name of their AgentRuntime.
	claimsByRuntime = "runtime"
	// deploymentsByRuntime indexes sandboxes' Deployments likewise.
	deploymentsByRuntime = "runtime"
)

// admit decides whether the claim may have a sandbox now. Where it may, the status holds all that the sandbox is built
// from, and that is on record before anything is built. Where it has to wait, it says when to look again.
func (r *Reconciler) admit(ctx context.Context, w *work) (time.Duration, bool, error) {
	facts, err := r.gather(ctx, w)
	if err != nil {
		return 0, false, err
	}
	// From reading what is held to taking a slot of it, nobody else of this runtime takes one.
	key := w.claim.Namespace + "/" + w.claim.RuntimeName()
	r.admissions.LockKey(key)
	defer func() { _ = r.admissions.UnlockKey(key) }() // it fails for an unlocked one only
	if err := r.takeover.complete(ctx, r); err != nil {
		return 0, false, err
	}
	if facts.Queue, err = r.queue(ctx, w.claim.Namespace, w.claim.RuntimeName(), facts.Runtime); err != nil {
		return 0, false, err
	}
	w.firstQueued = !slices.ContainsFunc(facts.Queue.Claims, func(other v1alpha1.SandboxClaim) bool {
		return other.UID != w.claim.UID && other.Status.Phase == v1alpha1.PhaseQueued && v1alpha1.ReadyCondition(other.Status.Conditions).Reason == v1alpha1.ReasonCeilingReached
	})
	verdict := lifecycle.Admit(facts)
	if verdict.Phase == v1alpha1.PhasePending {
		w.claim.Status.Class = facts.Class
		w.claim.Status.SandboxName = sandbox.Name(w.claim)
		r.building.add(w.claim)
	}
	r.report(w.claim, verdict)
	written, err := r.record(ctx, w)
	switch {
	case err != nil:
		r.takeover.renew() // it may have been written all the same
		return 0, false, err
	case !written:
		return soon, false, nil
	case verdict.Phase == v1alpha1.PhaseQueued:
		return recheck, false, nil
	}
	w.confirmed = true
	return 0, verdict.Phase == v1alpha1.PhasePending, nil
}

// queue reads what competes with one runtime's claims. Options may let it see less than what this process wrote. What is
// being built is asked first: it is listed as a Deployment once it is built no longer.
func (r *Reconciler) queue(ctx context.Context, namespace, runtimeName string, runtime *omniav1alpha1.AgentRuntime, options ...client.ListOption) (lifecycle.Queue, error) {
	var claims v1alpha1.SandboxClaimList
	standing := sets.New(r.building.of(types.NamespacedName{Namespace: namespace, Name: runtimeName})...)
	options = append(options, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err := r.Claims.List(ctx, &claims, append(options, client.MatchingFields{claimsByRuntime: runtimeName})...); err != nil {
		return lifecycle.Queue{}, fmt.Errorf("listing the claims of AgentRuntime %s/%s: %w", namespace, runtimeName, err)
	}
	var deployments appsv1.DeploymentList
	if err := r.Host.List(ctx, &deployments, append(options, client.MatchingFields{deploymentsByRuntime: runtimeName})...); err != nil {
		return lifecycle.Queue{}, fmt.Errorf("listing the Deployments of AgentRuntime %s/%s: %w", namespace, runtimeName, err)
	}
	for i := range deployments.Items {
		standing.Insert(sandbox.ClaimUIDOf(&deployments.Items[i]))
	}
	return lifecycle.Queue{Runtime: runtime, Claims: claims.Items, Standing: standing}, nil
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
