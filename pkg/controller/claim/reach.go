package claim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

// A sandbox reaches the Services that its class allows by their own selectors and ports, so its policy follows them
// (spec/sandboxclaim.md, "SandboxClass and ClusterSandboxClass", egress).

// reach is what a sandbox may reach, as its class asks for it and its Services are.
type reach struct {
	rules  []networkingv1.NetworkPolicyEgressRule
	faults []lifecycle.Fault
}

// reachOf reads the Services that the claim's class allows. The cache's are enough to see whether a policy is still right.
// What is written goes by the API's own: a policy is never put back to what a Service was before.
func (r *Reconciler) reachOf(ctx context.Context, by client.Reader, claim *v1alpha1.SandboxClaim) (*reach, error) {
	services := map[types.NamespacedName]*corev1.Service{}
	for _, key := range sandbox.AllowedServices(claim) {
		service := &corev1.Service{}
		err := by.Get(ctx, key, service)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading Service %s, which the class allows: %w", key, err)
		default:
			services[key] = service
		}
	}
	rules, faults := sandbox.Egress(claim, services, r.Resolver)
	out := &reach{rules: rules}
	for _, fault := range faults {
		out.faults = append(out.faults, lifecycle.Fault(fault))
	}
	return out, nil
}

// asksForEgress says whether an admitted claim's class wants anything reached.
func asksForEgress(claim *v1alpha1.SandboxClaim) bool {
	egress := claim.Status.Class.Egress
	return egress != nil && (egress.DNS || len(egress.AllowedServices) > 0)
}

// allowedServices are those that a claim's sandbox follows: none, before it is admitted and after its end.
func allowedServices(o any) ([]string, error) {
	claim, ok := o.(*v1alpha1.SandboxClaim)
	if !ok {
		return nil, fmt.Errorf("a cache holds a %T among the claims", o)
	}
	if !stands(claim) {
		return nil, nil
	}
	var out []string
	for _, key := range sandbox.AllowedServices(claim) {
		out = append(out, key.String())
	}
	return out, nil
}

// stands says whether a claim has a sandbox that is looked after.
func stands(claim *v1alpha1.SandboxClaim) bool {
	return lifecycle.Admitted(claim) && claim.Status.SandboxName != "" && !lifecycle.Terminal(claim.Status.Phase) && claim.DeletionTimestamp == nil
}

// claimsThatReach gives the claims whose class allows a Service.
func (r *Reconciler) claimsThatReach(ctx context.Context, service client.Object) []reconcile.Request {
	claims, err := foundBy[*v1alpha1.SandboxClaim](r.claims, byAllowedService, client.ObjectKeyFromObject(service).String())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Finding the claims that reach a Service", "service", klog.KObj(service))
		return nil
	}
	return requestsFor(claims)
}

// leadsElsewhere lets pass what changes where a Service leads.
func leadsElsewhere() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*corev1.Service), e.ObjectNew.(*corev1.Service)
			return before.Spec.Type != after.Spec.Type || !equality.Semantic.DeepEqual(before.Spec.Selector, after.Spec.Selector) ||
				!equality.Semantic.DeepEqual(before.Spec.Ports, after.Spec.Ports)
		},
	}
}
