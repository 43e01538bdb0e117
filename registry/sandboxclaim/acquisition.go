package sandboxclaim

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/registry/refusal"
)

// withdrawalTimeout bounds what is done for a caller who has gone.
const withdrawalTimeout = 5 * time.Second

// acquisition is one call of acquire, from finding its claim to its answer.
type acquisition struct {
	*AcquireREST
	plan
	name    string
	named   bool // the URL names the claim: it is never created, nor replaced
	options *metav1.CreateOptions
	dryRun  bool

	created  bool                // this call created the claim that it answers with
	seen     types.UID           // the claim that was last met
	replaces types.UID           // the failed claim that this call deleted, and whose place the next create takes
	again    bool                // a claim that vanished under this call was created again; it is, once
	leased   types.UID           // the claim on which a lease stands that is long enough for this call
	lease    *v1alpha1.WaitLease // that lease, where this call wrote it
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
	timer := a.clock.NewTimer(time.Duration(a.waitSeconds) * time.Second)
	defer timer.Stop()
	for {
		claim, done, err := a.step(ctx)
		switch {
		case err != nil || done:
			return claim, err
		case waiter == nil:
			return a.lastWord(claim)
		case claim != nil:
			if claim, err = a.holdLease(ctx, claim); err != nil {
				return nil, err
			}
			if claim == nil {
				continue // it changed under the lease: look again
			}
		}
		select {
		case <-waiter.wake:
		case <-timer.C():
			return a.lastWord(claim)
		case <-a.waiters.closing:
			return a.lastWord(claim)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lastWord is what a wait ends with that has come to nothing: the claim as it stands.
func (a *acquisition) lastWord(claim *sandbox.SandboxClaim) (*sandbox.SandboxClaim, error) {
	if claim == nil {
		return nil, a.stillEnding()
	}
	return claim, nil
}

// stillEnding tells a caller to ask again, because the handle's last claim has not gone yet.
func (a *acquisition) stillEnding() error {
	err := apierrors.NewServerTimeout(sandbox.Resource("sandboxclaims"), "acquire", retryAfterSeconds)
	err.ErrStatus.Message = fmt.Sprintf("the earlier claim %s is still being deleted: ask again", a.name)
	return err
}

// step looks at the handle's claim once. It gives the claim to wait for, or none while a predecessor is going, and true
// when there is nothing left to wait for.
func (a *acquisition) step(ctx context.Context) (*sandbox.SandboxClaim, bool, error) {
	claim, err := a.claims.get(ctx, a.name)
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
		claim, err = a.use(ctx, claim)
		return claim, true, err
	case sandbox.PhaseFailed, sandbox.PhaseCompleted:
		return a.failed(ctx, claim)
	default:
		return claim, false, nil
	}
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
	vanished := a.seen != "" && a.replaces == ""
	switch {
	case a.named && !vanished:
		return nil, apierrors.NewNotFound(sandbox.Resource("sandboxclaims"), a.name)
	case a.mustExist && a.replaces == "":
		return nil, ended(a.name, "there is no claim of this handle")
	case vanished && a.again:
		return nil, ended(a.name, "it was deleted, twice, while this call waited for it")
	}
	a.again = a.again || vanished
	if a.replaces == "" {
		if err := a.room(ctx); err != nil {
			return nil, err
		}
	}
	from := origin{replaces: a.replaces}
	if a.waitSeconds > 0 {
		lease, _ := lifecycle.Wait(nil, a.waitSeconds, a.clock.Now())
		from.wait, a.lease = hubLease(lease), &lease
	}
	claim, err := a.claims.create(ctx, a.newClaim(request.NamespaceValue(ctx)), from, a.options)
	if err != nil {
		return nil, err
	}
	a.created, a.leased = true, claim.UID
	return claim, nil
}

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
			if strings.HasPrefix(s.Spec.Handle, a.sandbox.Name+"/") {
				use.Instances++
			}
		}
	}
	limits := lifecycle.SessionLimits{PerSession: a.owner.MaxPerSession(), Instances: a.sandbox.Instances()}
	switch lifecycle.FullLimit(use, limits) {
	case lifecycle.LimitPerSession:
		return refusal.New(v1alpha1.StatusReasonMaxPerSession, a.name,
			"session %s holds %d sandboxes of AgentRuntime %s, which is its spec.sandbox.maxPerSession: release one first", a.key.session, use.Claims, a.key.runtime)
	case lifecycle.LimitInstances:
		return refusal.New(v1alpha1.StatusReasonMaxInstances, a.name,
			"session %s holds %d instances of sandbox %s, which is its maxInstances: release one first", a.key.session, use.Instances, a.sandbox.Name)
	}
	return nil
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

// failed replaces a failed claim that acquire wrote, once; any other failure is the caller's to know.
func (a *acquisition) failed(ctx context.Context, claim *sandbox.SandboxClaim) (*sandbox.SandboxClaim, bool, error) {
	secondFailure := claim.Status.Replaces != "" && claim.Status.BoundAt == nil
	if a.named || a.dryRun || a.replaces != "" || secondFailure || !writtenByAcquire(claim) {
		return nil, false, sandboxFailed(claim)
	}
	err := a.claims.delete(ctx, claim)
	switch {
	case err == nil, apierrors.IsNotFound(err): // gone by this call, or by another that replaces it too
		a.replaces = claim.UID
	case !apierrors.IsConflict(err):
		return nil, false, fmt.Errorf("deleting the failed claim %s: %w", claim.Name, err)
	}
	return a.step(ctx)
}

func sandboxFailed(claim *sandbox.SandboxClaim) error {
	reason, message := "", ""
	if ready := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		reason, message = ready.Reason, ready.Message
	}
	remedy := "delete the claim and acquire again once the cause is mended"
	if !writtenByAcquire(claim) {
		remedy = "delete it and create it again"
	}
	return refusal.New(v1alpha1.StatusReasonSandboxFailed, claim.Name, "sandbox %s failed (%s): %s; %s", claim.Name, reason, message, remedy)
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

// holdLease says on the claim that somebody waits for it. It gives nil if the claim went or changed its identity meanwhile.
func (a *acquisition) holdLease(ctx context.Context, claim *sandbox.SandboxClaim) (*sandbox.SandboxClaim, error) {
	if a.leased == claim.UID {
		return claim, nil
	}
	now := a.clock.Now()
	if _, longer := lifecycle.Wait(versionedLease(claim.Status.Wait), a.waitSeconds, now); longer {
		updated, err := a.claims.updateStatus(ctx, claim, func(fresh *sandbox.SandboxClaim) (bool, error) {
			lease, longer := lifecycle.Wait(versionedLease(fresh.Status.Wait), a.waitSeconds, now)
			if longer {
				fresh.Status.Wait, a.lease = hubLease(lease), &lease
			}
			return longer, nil
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		claim = updated
	}
	a.leased = claim.UID
	return claim, nil
}

// withdraw deletes the claim for a caller who has hung up, if nobody else waits for it and it was never admitted. Whose
// wait stands on the claim is known by its lease's time.
func (a *acquisition) withdraw(ctx context.Context) {
	if a.lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawalTimeout)
	defer cancel()
	log := klog.FromContext(ctx).WithValues("claim", klog.KRef(request.NamespaceValue(ctx), a.name))
	claim, err := a.claims.get(ctx, a.name)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			log.Error(err, "Reading a claim whose caller hung up")
		}
		return
	}
	lease := claim.Status.Wait
	if lease == nil || !lease.RenewTime.Equal(&a.lease.RenewTime) || !lifecycle.Withdrawable(versionedClaim(claim)) {
		return
	}
	if err := a.claims.delete(ctx, claim); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		log.Error(err, "Withdrawing a claim whose caller hung up")
	}
}

func hubLease(lease v1alpha1.WaitLease) *sandbox.WaitLease {
	return &sandbox.WaitLease{RenewTime: lease.RenewTime, DurationSeconds: lease.DurationSeconds}
}

func versionedLease(lease *sandbox.WaitLease) *v1alpha1.WaitLease {
	if lease == nil {
		return nil
	}
	return &v1alpha1.WaitLease{RenewTime: lease.RenewTime, DurationSeconds: lease.DurationSeconds}
}

// versionedClaim is the claim as pkg/lifecycle knows it.
func versionedClaim(claim *sandbox.SandboxClaim) *v1alpha1.SandboxClaim {
	out := &v1alpha1.SandboxClaim{}
	if err := v1alpha1.Convert_sandbox_SandboxClaim_To_v1alpha1_SandboxClaim(claim, out, nil); err != nil {
		panic(fmt.Sprintf("converting a claim: %v", err)) // the hub and its only version hold the same fields
	}
	return out
}
