package sandboxclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
	"github.com/altairalabs/omnia-sandboxes/registry/refusal"
)

// acquisition is one call of acquire, from finding its claim to its answer.
type acquisition struct {
	*AcquireREST
	plan
	name    string
	named   bool // the URL names the claim: it is never created, nor replaced
	options *metav1.CreateOptions
	dryRun  bool
	waits   bool // it waits while the claim is not Bound

	created  types.UID           // the claim that this call created last
	seen     types.UID           // the claim that was last met
	replaces types.UID           // the failed claim that this call deleted, and whose place the next create takes
	again    bool                // a claim that vanished under this call was created again; it is, once
	noted    types.UID           // the claim on which stands what this call means for it
	lease    *v1alpha1.WaitLease // the lease of its wait, where this call wrote it
}

// run acquires, and tidies up after a caller who has hung up meanwhile, wherever that was noticed.
func (a *acquisition) run(ctx context.Context) (*sandbox.SandboxClaim, error) {
	claim, err := a.findAndWait(ctx)
	if ctx.Err() != nil {
		a.withdraw(ctx)
		return nil, apierrors.NewTimeoutError("the caller stopped waiting", retryAfterSeconds)
	}
	return claim, err
}

// findAndWait finds or creates the claim, and waits until it is Bound, the wait is over, or it is refused.
func (a *acquisition) findAndWait(ctx context.Context) (*sandbox.SandboxClaim, error) {
	// Whoever wants to wait joins before the first read, so that no change falls between the read and the wait.
	var waiter *waiter
	if a.waitSeconds > 0 && !a.dryRun {
		if waiter = a.waiters.join(types.NamespacedName{Namespace: request.NamespaceValue(ctx), Name: a.name}); waiter != nil {
			defer a.waiters.leave(waiter)
		}
	}
	a.waits = waiter != nil
	timer := a.clock.NewTimer(time.Duration(a.waitSeconds) * time.Second)
	defer timer.Stop()
	waiting, wait := false, spans.Span{}
	defer func() { wait.End(ctx.Err()) }()
	for {
		claim, done, err := a.step(ctx)
		switch {
		case err != nil || done:
			return claim, err
		case claim != nil:
			if claim, err = a.note(ctx, claim); err != nil {
				return nil, err
			}
			if claim == nil {
				continue // it went or ended meanwhile: look again
			}
		}
		if waiter == nil {
			return a.lastWord(claim)
		}
		if !waiting {
			waiting = true
			ctx, wait = spans.Start(ctx, spans.WaitUntilBound)
		}
		var again <-chan time.Time
		if claim != nil && heldBySession(claim) {
			again = a.clock.After(heldAgain)
		}
		select {
		case <-waiter.wake:
		case <-again:
		case <-timer.C():
			return a.lastWord(claim)
		case <-a.waiters.closing:
			return a.lastWord(claim)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// heldAgain is when to look again at a claim that the controller holds back for its session, which seems to have room.
const heldAgain = time.Second

// lastWord is what a wait ends with that has come to nothing: the claim as it stands.
func (a *acquisition) lastWord(claim *sandbox.SandboxClaim) (*sandbox.SandboxClaim, error) {
	if claim == nil {
		return nil, a.stillEnding()
	}
	return claim, nil
}

// stillEnding tells a caller to ask again, because the handle's last claim has not gone yet.
func (a *acquisition) stillEnding() error {
	err := apierrors.NewServerTimeout(sandbox.Resource("sandboxclaims"), acquireOperation, retryAfterSeconds)
	err.ErrStatus.Message = fmt.Sprintf("the earlier claim %s is still being deleted: ask again", a.name)
	return err
}

// acquireOperation is what stillEnding says was not done in time; of a store that does not answer it is another.
const acquireOperation = "acquire"

func isStillEnding(err error) bool {
	var answer apierrors.APIStatus
	return apierrors.IsServerTimeout(err) && errors.As(err, &answer) && answer.Status().Details.Name == acquireOperation
}

// step looks at the handle's claim once. It gives the claim to wait for, or none while a predecessor is going, and true
// when there is nothing left to wait for.
func (a *acquisition) step(ctx context.Context) (*sandbox.SandboxClaim, bool, error) {
	claim, err := a.find(ctx)
	switch {
	case apierrors.IsNotFound(err):
		claim, err = a.absent(ctx)
		if apierrors.IsAlreadyExists(err) {
			return a.step(ctx) // somebody was first: theirs is the claim
		}
		if err != nil || a.dryRun {
			return claim, a.dryRun, err
		}
	case err != nil:
		return nil, false, err
	case !a.isMine(claim):
		return nil, false, a.another(ctx, claim)
	}
	if claim.DeletionTimestamp != nil {
		if a.named {
			return nil, false, ended(claim.Name, "it is being deleted")
		}
		return nil, false, nil
	}
	a.seen = claim.UID
	switch claim.Status.Phase {
	case sandbox.PhaseBound:
		if a.noted == claim.UID {
			return claim, true, nil // a release that was scheduled since this call began stands
		}
		used, err := a.use(ctx, claim)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return a.step(ctx) // it ended under this call
		}
		return used, true, err
	case sandbox.PhaseFailed, sandbox.PhaseCompleted:
		return a.failed(ctx, claim)
	case sandbox.PhaseQueued:
		if heldBySession(claim) {
			return a.beyond(ctx, claim)
		}
	case sandbox.PhasePending:
	}
	return claim, false, nil
}

// find reads the handle's claim.
func (a *acquisition) find(ctx context.Context) (*sandbox.SandboxClaim, error) {
	ctx, span := spans.Start(ctx, spans.FindClaim)
	claim, err := a.claims.get(ctx, a.name)
	switch {
	case apierrors.IsNotFound(err):
		span.End(nil) // that is what is to be found out
	case err != nil:
		span.End(err)
	default:
		span.Stands(string(claim.UID), string(claim.Status.Phase), v1alpha1.ReadyCondition(claim.Status.Conditions).Reason)
		span.End(nil)
	}
	return claim, err
}

func (a *acquisition) isMine(claim *sandbox.SandboxClaim) bool {
	return a.key == key{runtime: runtimeOf(claim), session: claim.Spec.SessionID, handle: claim.Spec.Handle}
}

// another refuses a claim of another key; that it exists is told only to those who may know, or whose runtime's it is.
func (a *acquisition) another(ctx context.Context, claim *sandbox.SandboxClaim) error {
	if a.named && runtimeOf(claim) != a.key.runtime {
		if may, err := a.callers.mayGetClaims(ctx, claim.Namespace, claim.Name); err != nil || !may {
			return apierrors.NewNotFound(sandbox.Resource("sandboxclaims"), claim.Name)
		}
	}
	return notYours(claim)
}

// absent creates the claim that is not there, unless it has to be.
func (a *acquisition) absent(ctx context.Context) (*sandbox.SandboxClaim, error) {
	replacing := a.replaces != "" && a.seen == a.replaces
	vanished := a.seen != "" && !replacing
	switch {
	case a.named && !vanished:
		return nil, apierrors.NewNotFound(sandbox.Resource("sandboxclaims"), a.name)
	case a.mustExist && !replacing:
		return nil, ended(a.name, "there is no claim of this handle")
	case vanished && a.again:
		return nil, ended(a.name, "it was deleted, twice, while this call waited for it")
	}
	a.again = a.again || vanished
	fresh := a.newClaim(request.NamespaceValue(ctx))
	if !replacing {
		limits := lifecycle.SessionLimits{PerSession: a.owner.MaxPerSession(), Instances: *fresh.Spec.MaxInstances}
		if limit, err := a.room(ctx, limits); err != nil {
			return nil, err
		} else if limit != "" {
			return nil, a.full(limit, fresh, limits)
		}
	}
	from := origin{replaces: a.replaces}
	if a.waitSeconds > 0 {
		lease, _ := lifecycle.Wait(nil, a.waitSeconds, a.clock.Now())
		from.wait, a.lease = hubLease(lease), &lease
	}
	if traceparent := spans.Traceparent(ctx); traceparent != "" {
		fresh.Annotations = map[string]string{v1alpha1.AnnotationTraceparent: traceparent}
	}
	creating, span := spans.Start(ctx, spans.CreateClaim)
	claim, err := a.claims.create(creating, fresh, from, a.options)
	span.End(err)
	if err != nil {
		return nil, err
	}
	a.created, a.noted = claim.UID, claim.UID
	return claim, nil
}

func (a *acquisition) newClaim(namespace string) *sandbox.SandboxClaim {
	return &sandbox.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      a.name,
			Labels:    map[string]string{v1alpha1.LabelAgentRuntime: a.key.runtime, v1alpha1.LabelSession: a.key.session},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: omniav1alpha1.SchemeGroupVersion.String(), Kind: "AgentRuntime", Name: a.owner.Name, UID: a.owner.UID,
				BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: sandbox.SandboxClaimSpec{
			AgentRuntimeRef: &sandbox.AgentRuntimeReference{Name: a.key.runtime},
			ClassRef:        classOf(a.sandbox),
			SessionID:       a.key.session,
			Handle:          a.key.handle,
			RequestedBy:     a.requestedBy,
			MaxInstances:    ptr.To(a.sandbox.Instances()),
		},
	}
}

// failed replaces a failed claim that acquire wrote, once, on behalf of the same; any other failure is the caller's to know.
func (a *acquisition) failed(ctx context.Context, claim *sandbox.SandboxClaim) (*sandbox.SandboxClaim, bool, error) {
	secondFailure := claim.Status.Replaces != "" && claim.Status.BoundAt == nil
	if a.named || a.dryRun || a.replaces != "" || secondFailure || !writtenByAcquire(claim) {
		return nil, false, sandboxFailed(claim)
	}
	err := a.claims.delete(ctx, claim)
	switch {
	case err == nil, apierrors.IsNotFound(err): // gone by this call, or by another that replaces it too
		a.replaces, a.requestedBy = claim.UID, claim.Spec.RequestedBy
	case !apierrors.IsConflict(err):
		return nil, false, fmt.Errorf("deleting the failed claim %s: %w", claim.Name, err)
	}
	return a.step(ctx)
}

func sandboxFailed(claim *sandbox.SandboxClaim) error {
	ready := v1alpha1.ReadyCondition(claim.Status.Conditions)
	remedy := "delete the claim and acquire again once the cause is mended"
	if !writtenByAcquire(claim) {
		remedy = "delete it and create it again"
	}
	return refusal.New(v1alpha1.StatusReasonSandboxFailed, claim.Name, "sandbox %s failed (%s): %s; %s", claim.Name, ready.Reason, ready.Message, remedy)
}

func ended(name, why string) error {
	return refusal.New(v1alpha1.StatusReasonSandboxEnded, name, "sandbox %s has ended: %s; acquire without mustExist to create it again", name, why)
}

// use records that a Bound claim is in use, if that is worth a write. A claim that changed meanwhile is looked at again by its caller.
func (a *acquisition) use(ctx context.Context, claim *sandbox.SandboxClaim) (*sandbox.SandboxClaim, error) {
	if a.dryRun {
		return claim, nil
	}
	return a.claims.use(ctx, claim, a.owner.IdleTimeout())
}

// versionedClaim is the claim as pkg/lifecycle knows it.
func versionedClaim(claim *sandbox.SandboxClaim) *v1alpha1.SandboxClaim {
	out := &v1alpha1.SandboxClaim{}
	if err := v1alpha1.Convert_sandbox_SandboxClaim_To_v1alpha1_SandboxClaim(claim, out, nil); err != nil {
		panic(fmt.Sprintf("converting a claim: %v", err)) // the hub and its only version hold the same fields
	}
	return out
}
