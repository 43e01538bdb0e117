package claim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

// NetworkPolicies add up, so whoever may write one in a sandbox's namespace can open what the sandbox's own closes. Nothing
// forbids it; it is found, and told.

// policyReach indexes NetworkPolicies by whom they may concern: all claims of their namespace, or the one that they name. So a
// claim is not held against the policies that the others of its namespace have.
func policyReach(o any) ([]string, error) {
	policy, ok := o.(*networkingv1.NetworkPolicy)
	if !ok {
		return nil, fmt.Errorf("a cache holds a %T among the NetworkPolicies", o)
	}
	if one := sandbox.OneClaim(policy); one != "" {
		return []string{string(one)}, nil
	}
	if sandbox.IsFloor(policy) {
		return []string{policy.Namespace, anyFloor}, nil
	}
	return []string{policy.Namespace}, nil
}

// widenings gives the NetworkPolicies that allow a claim's sandbox more than its own, in order.
func (r *Reconciler) widenings(ctx context.Context, claim *v1alpha1.SandboxClaim, own *networkingv1.NetworkPolicySpec) ([]lifecycle.Widening, error) {
	var others []*networkingv1.NetworkPolicy
	for _, value := range []string{claim.Namespace, string(claim.UID)} {
		some, err := foundBy[*networkingv1.NetworkPolicy](r.policies, byReach, value)
		if err != nil {
			return nil, fmt.Errorf("finding the NetworkPolicies that concern the sandbox: %w", err)
		}
		others = append(others, some...)
	}
	var labels map[string]string // of the pods; read where a policy allows more, which few do
	var out []lifecycle.Widening
	for _, other := range others {
		if other.Namespace != claim.Namespace || other.Name == claim.Status.SandboxName {
			continue
		}
		ingress, egress := sandbox.Widens(&other.Spec, own)
		if !ingress && !egress {
			continue
		}
		if labels == nil {
			var err error
			if labels, err = r.podLabels(ctx, claim); err != nil {
				return nil, err
			}
		}
		if sandbox.Selects(other, claim, labels) {
			out = append(out, lifecycle.Widening{Policy: other.Name, Ingress: ingress, Egress: egress})
		}
	}
	slices.SortFunc(out, func(a, b lifecycle.Widening) int { return cmp.Compare(a.Policy, b.Policy) })
	return out, nil
}

// podLabels are the labels of a sandbox's pods, of which a cluster's admission may have added some.
func (r *Reconciler) podLabels(ctx context.Context, claim *v1alpha1.SandboxClaim) (map[string]string, error) {
	pods, err := r.podsOf(ctx, claim)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i := range pods {
		maps.Copy(out, pods[i].Labels)
	}
	return out, nil
}

// reportIsolation puts into the claim's status what is not as its class has it: what is not allowed, and what is allowed beyond it.
func (r *Reconciler) reportIsolation(ctx context.Context, w *work, policy *part) error {
	widenings, err := r.widenings(ctx, w.claim, &policy.built.(*networkingv1.NetworkPolicy).Spec)
	if err != nil {
		return err
	}
	resolved, tells := lifecycle.EgressResolved(asksForEgress(w.claim), w.reach.faults)
	r.setCondition(w.claim, resolved, tells)
	weakened, tells := lifecycle.IsolationWeakened(widenings)
	r.setCondition(w.claim, weakened, tells)
	return nil
}

// setCondition sets a condition, or takes it away where there is nothing to tell.
func (r *Reconciler) setCondition(claim *v1alpha1.SandboxClaim, told metav1.Condition, tells bool) {
	if !tells {
		apimeta.RemoveStatusCondition(&claim.Status.Conditions, told.Type)
		return
	}
	told.ObservedGeneration, told.LastTransitionTime = claim.Generation, metav1.Time{Time: r.Clock.Now()}
	apimeta.SetStatusCondition(&claim.Status.Conditions, told)
}

// claimsConcerned gives the claims whose sandboxes a NetworkPolicy may select. What it selects by a label that only pods have is
// found among the pods.
func (r *Reconciler) claimsConcerned(ctx context.Context, object client.Object) []reconcile.Request {
	policy := object.(*networkingv1.NetworkPolicy)
	var claims v1alpha1.SandboxClaimList
	if err := r.Claims.List(ctx, &claims, client.InNamespace(policy.Namespace), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		klog.FromContext(ctx).Error(err, "Finding the claims that a NetworkPolicy concerns", "networkPolicy", klog.KObj(policy))
		return nil
	}
	var out []*v1alpha1.SandboxClaim
	for i := range claims.Items {
		claim := &claims.Items[i]
		if !stands(claim) {
			continue
		}
		labels, err := r.podLabels(ctx, claim)
		if err != nil || sandbox.Selects(policy, claim, labels) {
			out = append(out, claim)
		}
	}
	return requestsFor(out)
}

// concerning lets pass what changes what a NetworkPolicy allows, and to whom. A sandbox's own is seen to by its owner.
func concerning() predicate.Predicate {
	ofOthers := func(o client.Object) bool {
		policy := o.(*networkingv1.NetworkPolicy)
		return sandbox.OneClaim(policy) == "" || sandbox.ClaimUIDOf(policy) != sandbox.OneClaim(policy)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return ofOthers(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return ofOthers(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*networkingv1.NetworkPolicy), e.ObjectNew.(*networkingv1.NetworkPolicy)
			return (ofOthers(before) || ofOthers(after)) && !equality.Semantic.DeepEqual(before.Spec, after.Spec)
		},
	}
}
