package sandboxclaim

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/metrics"
	"github.com/altairalabs/omnia-sandboxes/registry/refusal"
)

// room refuses a claim that the session's limits leave no place for, as this replica sees them; the controller holds
// the session to them exactly.
func (a *acquisition) room(ctx context.Context) error {
	siblings, err := a.claims.bySession(ctx, a.key.runtime, a.key.session)
	if err != nil {
		return err
	}
	var use lifecycle.SessionUse
	for i := range siblings {
		s := &siblings[i]
		if s.Name == a.name {
			continue // made by somebody else since this call looked: the claim that is asked for, and no sibling
		}
		if lifecycle.Live(v1alpha1.Phase(s.Status.Phase), s.DeletionTimestamp != nil) {
			use.Claims++
			if lifecycle.SandboxOf(s.Spec.Handle) == a.sandbox.Name {
				use.Instances++
			}
		}
	}
	limits := lifecycle.SessionLimits{PerSession: a.owner.MaxPerSession(), Instances: a.sandbox.Instances()}
	if limit := lifecycle.FullLimit(use, limits); limit != "" {
		return a.full(limit, a.newClaim(request.NamespaceValue(ctx)), limits)
	}
	return nil
}

// full refuses a claim because its session is full, in the same words whoever found out.
func (a *acquisition) full(limit lifecycle.Limit, claim *sandbox.SandboxClaim, limits lifecycle.SessionLimits) error {
	reason := v1alpha1.StatusReasonMaxInstances
	if limit == lifecycle.LimitPerSession {
		reason = v1alpha1.StatusReasonMaxPerSession
	}
	return refusal.New(reason, a.name, "%s", lifecycle.SessionIsFull(limit, versionedClaim(claim), limits))
}

// sessionLimit is the limit of its session for which the controller leaves a claim Queued; empty if there is none, or if
// it waits for the runtime's maxConcurrent, as claims may.
func sessionLimit(claim *sandbox.SandboxClaim) lifecycle.Limit {
	ready := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return ""
	}
	if limit := lifecycle.LimitOf(ready.Reason); limit != lifecycle.LimitConcurrent {
		return limit
	}
	return ""
}

// beyond refuses a claim that the controller found its session to have no room for, as this call's own look would have.
// If this call created it, it goes; another's is left to whoever waits on it, and to their lease.
func (a *acquisition) beyond(ctx context.Context, claim *sandbox.SandboxClaim, limit lifecycle.Limit) (*sandbox.SandboxClaim, bool, error) {
	if a.created == claim.UID {
		switch err := a.claims.delete(ctx, claim); {
		case err == nil:
			metrics.Withdrawals.WithLabelValues(withdrawalCauses[limit]).Inc()
		case apierrors.IsConflict(err):
			return a.step(ctx) // there may be room for it by now
		case !apierrors.IsNotFound(err):
			return nil, false, fmt.Errorf("deleting claim %s, for which its session has no room: %w", claim.Name, err)
		}
	}
	return nil, false, a.full(limit, claim, lifecycle.SessionLimits{PerSession: a.owner.MaxPerSession(), Instances: ptr.Deref(claim.Spec.MaxInstances, a.sandbox.Instances())})
}
