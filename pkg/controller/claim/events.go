package claim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

// longestNote is what an Event may hold of a message.
const longestNote = 1024

// What the controller did, in an Event's words.
const (
	actionReconcile = "Reconcile"
	actionRepair    = "Repair"
	actionDelete    = "Delete"

	reasonRepaired = "Repaired"
	reasonReaped   = "Reaped"
	reasonReleased = "Released"

	reasonEgressUpdated     = "EgressUpdated"
	reasonEgressResolved    = "EgressResolved"
	reasonIsolationRestored = "IsolationRestored"
)

// wantsPerson are the reasons of a Pending claim that somebody may have to do something about.
var wantsPerson = sets.New(v1alpha1.ReasonNameTaken, v1alpha1.ReasonUnschedulable, v1alpha1.ReasonImagePullBackOff,
	v1alpha1.ReasonCrashLoopBackOff, v1alpha1.ReasonPodRefused)

// tellStep tells of a step that was written: once, since nothing is written twice.
func (r *Reconciler) tellStep(w *work, before *v1alpha1.SandboxClaimStatus) {
	status := &w.claim.Status
	was, is := v1alpha1.ReadyCondition(before.Conditions), v1alpha1.ReadyCondition(status.Conditions)
	if before.Phase == status.Phase && was.Reason == is.Reason {
		return
	}
	claim, runtime := claimRef(w.claim), runtimeRef(w.runtime)
	switch status.Phase {
	case v1alpha1.PhaseBound:
		if before.BoundAt != nil { // that it is Bound for the first time, the status says by itself
			r.tell(claim, runtime, corev1.EventTypeNormal, is.Reason, actionReconcile, is.Message)
		}
	case v1alpha1.PhaseQueued:
		r.tell(claim, runtime, corev1.EventTypeNormal, is.Reason, actionReconcile, is.Message)
		if is.Reason == v1alpha1.ReasonCeilingReached && w.firstQueued {
			r.tell(runtime, claim, corev1.EventTypeWarning, is.Reason, actionReconcile, is.Message)
		}
	case v1alpha1.PhaseFailed:
		r.tell(claim, runtime, corev1.EventTypeWarning, is.Reason, actionReconcile, is.Message)
		r.tell(runtime, claim, corev1.EventTypeWarning, is.Reason, actionReconcile, fmt.Sprintf("claim %s failed: %s", w.claim.Name, is.Message))
	case v1alpha1.PhasePending:
		if before.Phase == v1alpha1.PhaseBound || wantsPerson.Has(is.Reason) {
			r.tell(claim, runtime, corev1.EventTypeWarning, is.Reason, actionReconcile, is.Message)
		}
	case v1alpha1.PhaseCompleted: // an enrolment's end
	}
}

// tellIsolation tells what of a sandbox's isolation is no longer, or again, as its class has it.
func (r *Reconciler) tellIsolation(w *work, before *v1alpha1.SandboxClaimStatus) {
	for _, one := range []struct {
		kind string
		bad  metav1.ConditionStatus
		mend string
	}{
		{v1alpha1.ConditionEgressResolved, metav1.ConditionFalse, reasonEgressResolved},
		{v1alpha1.ConditionIsolationWeakened, metav1.ConditionTrue, reasonIsolationRestored},
	} {
		was, is := badly(before.Conditions, one.kind, one.bad), badly(w.claim.Status.Conditions, one.kind, one.bad)
		switch {
		case is != nil && (was == nil || was.Message != is.Message):
			r.tell(claimRef(w.claim), runtimeRef(w.runtime), corev1.EventTypeWarning, is.Reason, actionReconcile, is.Message)
		case is == nil && was != nil && !lifecycle.Terminal(w.claim.Status.Phase):
			r.tell(claimRef(w.claim), runtimeRef(w.runtime), corev1.EventTypeNormal, one.mend, actionReconcile, "no longer: "+was.Message)
		}
	}
}

// badly is the condition of a type while it has its bad state; nil otherwise.
func badly(conditions []metav1.Condition, kind string, bad metav1.ConditionStatus) *metav1.Condition {
	if c := apimeta.FindStatusCondition(conditions, kind); c != nil && c.Status == bad {
		return c
	}
	return nil
}

// tellEnd tells of a claim that was deleted because its time had come. The claim has gone, so its runtime is told, too.
func (r *Reconciler) tellEnd(claim *v1alpha1.SandboxClaim, runtime *omniav1alpha1.AgentRuntime, end lifecycle.End) {
	reason, note := reasonReaped, "nobody has used claim %s since %s"
	at := claim.Status.LastUsedAt
	if end.Cause == lifecycle.EndReleased {
		reason, note = reasonReleased, "the conversation of claim %s has ended, and its grace at %s"
		at = claim.Status.ReleaseAt
	}
	note = fmt.Sprintf(note, claim.Name, at.UTC().Format("2006-01-02T15:04:05Z"))
	r.tell(claimRef(claim), runtimeRef(runtime), corev1.EventTypeNormal, reason, actionDelete, note)
	r.tell(runtimeRef(runtime), claimRef(claim), corev1.EventTypeNormal, reason, actionDelete, note)
}

// tellRepair tells that somebody had changed or removed one of a sandbox's objects. The object is named beside the claim:
// Events of one reason about the same two are told as one.
func (r *Reconciler) tellRepair(claim *v1alpha1.SandboxClaim, p *part, what string) {
	object := &corev1.ObjectReference{Kind: p.kind, Namespace: p.built.GetNamespace(), Name: p.built.GetName(), UID: p.stands.GetUID()}
	if gvk, err := r.Host.GroupVersionKindFor(p.built); err == nil {
		object.APIVersion = gvk.GroupVersion().String()
	}
	r.tell(claimRef(claim), object, corev1.EventTypeWarning, reasonRepaired, actionRepair, fmt.Sprintf("%s %s %s", p.kind, object.Name, what))
}

// tellFollowed tells that a sandbox may reach something else than before, because a Service that its class allows has changed.
func (r *Reconciler) tellFollowed(claim *v1alpha1.SandboxClaim, p *part) {
	r.tell(claimRef(claim), nil, corev1.EventTypeNormal, reasonEgressUpdated, actionRepair,
		fmt.Sprintf("%s %s is made as the Services are that its class allows", p.kind, p.built.GetName()))
}

func (r *Reconciler) tell(regarding, related *corev1.ObjectReference, kind, reason, action, note string) {
	if regarding == nil {
		return
	}
	note = lifecycle.Clip(note, longestNote)
	if related == nil { // a nil pointer in an interface is not nil
		r.Events.Eventf(regarding, nil, kind, reason, action, "%s", note)
		return
	}
	r.Events.Eventf(regarding, related, kind, reason, action, "%s", note)
}

// claimRef refers to a claim in the host's Events, whose client does not know our group.
func claimRef(claim *v1alpha1.SandboxClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SandboxClaim",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
	}
}

func runtimeRef(runtime *omniav1alpha1.AgentRuntime) *corev1.ObjectReference {
	if runtime == nil {
		return nil
	}
	return &corev1.ObjectReference{
		APIVersion: omniav1alpha1.SchemeGroupVersion.String(), Kind: "AgentRuntime",
		Namespace: runtime.Namespace, Name: runtime.Name, UID: runtime.UID,
	}
}
