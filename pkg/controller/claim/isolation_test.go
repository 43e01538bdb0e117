package claim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

// wideOpen is what a workspace's own isolation comes to: every pod of the namespace may reach everything.
func wideOpen() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wide-open"},
		Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, Egress: []networkingv1.NetworkPolicyEgressRule{{}}}}
}

func TestIsolationWeakened_ComesNamesAndClears(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	assert.Nil(t, w.condition(v1alpha1.ConditionIsolationWeakened))

	require.NoError(t, w.host.Create(t.Context(), wideOpen()))
	assert.Equal(t, requestsFor([]*v1alpha1.SandboxClaim{w.claim()}), w.r.claimsConcerned(t.Context(), wideOpen()))
	w.settle()
	told := w.condition(v1alpha1.ConditionIsolationWeakened)
	require.NotNil(t, told)
	assert.Equal(t, metav1.ConditionTrue, told.Status)
	assert.Equal(t, v1alpha1.ReasonPolicyAllowsMore, told.Reason)
	assert.Contains(t, told.Message, "wide-open (egress)")
	assert.Equal(t, []string{"Warning PolicyAllowsMore " + told.Message}, w.told())
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did, "it is told once")

	require.NoError(t, w.host.Delete(t.Context(), wideOpen()))
	w.settle()
	assert.Nil(t, w.condition(v1alpha1.ConditionIsolationWeakened))
	assert.Equal(t, []string{"Normal IsolationRestored no longer: " + told.Message}, w.told())
}

func TestIsolationWeakened_OnlyByWhatSelectsTheSandboxAndAllowsMore(t *testing.T) {
	change := func(change func(*networkingv1.NetworkPolicy)) *networkingv1.NetworkPolicy {
		policy := wideOpen()
		change(policy)
		return policy
	}
	forged := func(p *networkingv1.NetworkPolicy) {
		p.Spec.PodSelector.MatchLabels = map[string]string{v1alpha1.LabelClaimUID: "uid-1"}
		p.OwnerReferences = sandbox.Floor(namespace).OwnerReferences
		p.OwnerReferences = append(p.OwnerReferences, *metav1.NewControllerRef(newClaim(), v1alpha1.SchemeGroupVersion.WithKind("SandboxClaim")))
	}
	for name, tt := range map[string]struct {
		policy *networkingv1.NetworkPolicy
		weaker bool
	}{
		"one that denies":      {change(func(p *networkingv1.NetworkPolicy) { p.Spec.Egress = nil }), false},
		"of another namespace": {change(func(p *networkingv1.NetworkPolicy) { p.Namespace = "others" }), false},
		"for other pods":       {change(func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector.MatchLabels = map[string]string{"app": "web"} }), false},
		"another claim's own": {change(func(p *networkingv1.NetworkPolicy) {
			p.Spec.PodSelector.MatchLabels = map[string]string{v1alpha1.LabelClaimUID: "uid-2"}
		}), false},
		"for this sandbox alone, as if it were its own": {change(forged), true},
		"for the sandbox's session": {change(func(p *networkingv1.NetworkPolicy) {
			p.Spec.PodSelector.MatchLabels = map[string]string{v1alpha1.LabelSession: newClaim().Spec.SessionID}
		}), true},
		"for a label that a webhook gave the pod": {change(func(p *networkingv1.NetworkPolicy) {
			p.Spec.PodSelector.MatchLabels = map[string]string{"mesh": "on"}
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newClaim(), tt.policy, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p",
				Labels: map[string]string{v1alpha1.LabelClaim: claimName, v1alpha1.LabelClaimUID: "uid-1", "mesh": "on"}}})
			w.settle()
			assert.Equal(t, tt.weaker, w.condition(v1alpha1.ConditionIsolationWeakened) != nil)
			if tt.weaker {
				assert.Equal(t, requestsFor([]*v1alpha1.SandboxClaim{w.claim()}), w.r.claimsConcerned(t.Context(), tt.policy))
			}
		})
	}
}

// A pod may run beside somebody else's Service of its name, or wait for its quota: it is as open as any.
func TestIsolationWeakened_IsToldOfASandboxThatIsNotWhole(t *testing.T) {
	w := newWorld(t, newClaim(), wideOpen(), somebodyElses())
	w.settle()
	require.Equal(t, v1alpha1.ReasonNameTaken, w.ready().Reason)
	assert.NotNil(t, w.condition(v1alpha1.ConditionIsolationWeakened))
}

func TestIsolationOfAFailedClaim_TellsNothing(t *testing.T) {
	w := newWorld(t, newClaim(), wideOpen())
	w.settle()
	require.NotNil(t, w.condition(v1alpha1.ConditionIsolationWeakened))
	w.podWaits("InvalidImageName", "no such reference")
	w.rollOut(1, 1, w.deployment().Status)
	deployment := w.deployment()
	deployment.Status.UpdatedReplicas = 1
	w.rollOut(1, 1, deployment.Status)
	w.settle()
	require.Equal(t, v1alpha1.PhaseFailed, w.claim().Status.Phase)
	assert.Nil(t, w.condition(v1alpha1.ConditionIsolationWeakened))
}

func TestConcerning(t *testing.T) {
	own := sandbox.NetworkPolicy(admitted(), nil)
	own.ResourceVersion = "1"
	assert.False(t, concerning().Create(event.CreateEvent{Object: own}), "a sandbox's own concerns its claim alone")
	assert.False(t, concerning().Delete(event.DeleteEvent{Object: own}))
	opened := own.DeepCopy()
	opened.Spec.PodSelector.MatchLabels = nil
	assert.True(t, concerning().Update(event.UpdateEvent{ObjectOld: own, ObjectNew: opened}), "unless it is made to select others")
	assert.True(t, concerning().Create(event.CreateEvent{Object: wideOpen()}))
	assert.True(t, concerning().Delete(event.DeleteEvent{Object: wideOpen()}))
	labelled := wideOpen()
	labelled.Labels = map[string]string{"a": "b"}
	assert.False(t, concerning().Update(event.UpdateEvent{ObjectOld: wideOpen(), ObjectNew: labelled}))
	narrowed := wideOpen()
	narrowed.Spec.Egress = nil
	assert.True(t, concerning().Update(event.UpdateEvent{ObjectOld: wideOpen(), ObjectNew: narrowed}))
}

func admitted() *v1alpha1.SandboxClaim {
	claim := newClaim()
	claim.Status = v1alpha1.SandboxClaimStatus{Phase: v1alpha1.PhasePending, SandboxName: sandboxName, Class: &shellClass().Spec}
	return claim
}

func (w *world) floor() *networkingv1.NetworkPolicy {
	w.Helper()
	floor := &networkingv1.NetworkPolicy{}
	err := w.host.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: sandbox.FloorName}, floor)
	require.NoError(w, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return floor
}

func TestFloor_StaysWhileThereIsAClaimOrAPod(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	require.NotNil(t, w.floor())
	w.podWaits("ContainerCreating", "")
	w.r.sweepFloors(t.Context())
	require.NotNil(t, w.floor())

	require.NoError(t, w.claims.Delete(t.Context(), w.claim()))
	w.r.sweepFloors(t.Context())
	require.NotNil(t, w.floor(), "the claim's own policy is collected with it, and its pod still ends")

	require.NoError(t, w.host.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}))
	w.r.sweepFloors(t.Context())
	assert.Nil(t, w.floor())
}

func TestFloor_ChangedOrGone_IsMadeAnew(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	floor := w.floor()
	floor.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	require.NoError(t, w.host.Update(t.Context(), floor))
	w.settle()
	assert.Equal(t, sandbox.Floor(namespace).Spec, w.floor().Spec)
	assert.Equal(t, []string{"Warning Repaired NetworkPolicy sandbox-floor was changed and is made as it was"}, w.told())

	require.NoError(t, w.host.Delete(t.Context(), w.floor()))
	w.settle()
	assert.NotNil(t, w.floor())
}

func TestFloor_OfSomebodyElse_NoPodIsStarted(t *testing.T) {
	theirs := wideOpen()
	theirs.Name = sandbox.FloorName
	w := newWorld(t, newClaim(), theirs)
	w.settle()
	assert.Equal(t, v1alpha1.ReasonNameTaken, w.ready().Reason)
	assert.Contains(t, w.ready().Message, "NetworkPolicy agents/sandbox-floor")
	w.r.sweepFloors(t.Context())
	assert.Equal(t, theirs.Spec, w.floor().Spec)
}
