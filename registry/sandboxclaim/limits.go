package sandboxclaim

import (
	"context"
	"fmt"
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/metrics"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
	"github.com/altairalabs/omnia-sandboxes/registry/refusal"
)

// room is the limit of its session that leaves the acquired claim no place, as this replica sees them; the controller holds
// the session to them exactly.
func (a *acquisition) room(ctx context.Context, limits lifecycle.SessionLimits) (lifecycle.Limit, error) {
	ctx, span := spans.Start(ctx, spans.CheckLimits)
	siblings, err := a.claims.bySession(ctx, a.key.runtime, a.key.session)
	span.End(err)
	if err != nil {
		return "", err
	}
	var use lifecycle.SessionUse
	for i := range siblings {
		s := &siblings[i]
		if s.Name == a.name {
			continue // the claim that is asked for, and no sibling
		}
		if lifecycle.Live(v1alpha1.Phase(s.Status.Phase), s.DeletionTimestamp != nil) {
			use.Claims++
			if lifecycle.SandboxOf(s.Spec.Handle) == a.sandbox.Name {
				use.Instances++
			}
		}
	}
	return lifecycle.FullLimit(use, limits), nil
}

// full refuses a claim because its session is full, in the same words whoever found out.
func (a *acquisition) full(limit lifecycle.Limit, claim *sandbox.SandboxClaim, limits lifecycle.SessionLimits) error {
	reason := v1alpha1.StatusReasonMaxInstances
	if limit == lifecycle.LimitPerSession {
		reason = v1alpha1.StatusReasonMaxPerSession
	}
	return refusal.New(reason, a.name, "%s", lifecycle.SessionIsFull(limit, versionedClaim(claim), limits))
}

// heldBySession says whether the controller leaves a claim Queued for a limit of its session. For the runtime's
// maxConcurrent a claim may wait.
func heldBySession(claim *sandbox.SandboxClaim) bool {
	limit := lifecycle.LimitOf(v1alpha1.ReadyCondition(claim.Status.Conditions).Reason)
	return limit == lifecycle.LimitPerSession || limit == lifecycle.LimitInstances
}

// beyond refuses a claim that the controller found its session to have no room for, as this call's own look would have. If
// this call created it, it goes; another's is left to whoever waits on it, and to their lease. Where this replica sees room,
// the controller is about to see it, too, or this replica has not heard of a lowered limit yet: it is looked at again soon.
func (a *acquisition) beyond(ctx context.Context, claim *sandbox.SandboxClaim) (*sandbox.SandboxClaim, bool, error) {
	owner, err := a.neighbours.AgentRuntime(ctx, claim.Namespace, a.owner.Name) // its limits may have changed since this call began
	if err != nil {
		owner = a.owner
	}
	limits := lifecycle.SessionLimits{PerSession: owner.MaxPerSession(), Instances: ptr.Deref(claim.Spec.MaxInstances, math.MaxInt32)}
	limit, err := a.room(ctx, limits)
	if err != nil || limit == "" {
		return claim, false, err
	}
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
	return nil, false, a.full(limit, claim, limits)
}
