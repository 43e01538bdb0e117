package claim

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

var readClaim = "read SandboxClaim"

// parts gives the sandbox's three objects as they stand; nil in place of one that does not.
func (w *world) parts() []client.Object {
	w.Helper()
	out := []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}}
	for i, object := range out {
		if !w.onHost(object) {
			out[i] = nil
		}
	}
	return out
}

// goes has the claim be deleted, with these finalizers; without any it is gone.
func (w *world) goes(finalizers ...string) {
	w.Helper()
	claim := w.claim()
	claim.Finalizers = finalizers
	require.NoError(w, w.claims.Update(w.Context(), claim))
	require.NoError(w, w.claims.Delete(w.Context(), claim))
}

func TestKept_ByTheNamespaceBesidesTheClaim(t *testing.T) {
	w := boundWorld(t)
	for _, object := range w.parts() {
		owners := object.GetOwnerReferences()
		require.Len(t, owners, 2, "%T", object)
		assert.EqualValues(t, "uid-1", owners[0].UID)
		assert.EqualValues(t, namespaceUID, owners[1].UID)
		assert.Equal(t, "Namespace", owners[1].Kind)
		assert.Nil(t, owners[1].Controller)
	}
}

func TestKept_ObjectsOfAnEarlierVersion_AreKeptFromNowOn(t *testing.T) {
	w := boundWorld(t)
	deployment := w.deployment()
	deployment.OwnerReferences = deployment.OwnerReferences[:1]
	require.NoError(t, w.host.Update(t.Context(), deployment))
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{"update Deployment"}, did, "the host need not be asked for the claim")
	assert.Len(t, w.deployment().OwnerReferences, 2)
}

func TestKept_ByANamespaceThatTheCacheLacksYet(t *testing.T) {
	w := newWorld(t, newClaim())
	w.hidden["Namespace/"+namespace] = true
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Contains(t, did, "read Namespace")
	assert.Len(t, w.deployment().OwnerReferences, 2)
}

func TestKept_ByNoNamespace_IsNotMade(t *testing.T) {
	w := newWorld(t, newClaim())
	w.refuse["get Namespace"] = errors.New("not now")
	_, _, err := w.reconcile()
	require.ErrorContains(t, err, "reading the Namespace that keeps a sandbox: not now")
	assert.Equal(t, []client.Object{nil, nil, nil}, w.parts())
	delete(w.refuse, "get Namespace")
	w.settle()
	assert.NotContains(t, w.parts(), nil)
}

// disowned has the garbage collector believe that the claim has gone.
func (w *world) disowned() {
	w.Helper()
	for _, object := range w.parts() {
		object.SetOwnerReferences(object.GetOwnerReferences()[1:])
		require.NoError(w, w.host.Update(w.Context(), object))
	}
}

func TestClaimTakenForGone_ItsObjectsStay_AndAreItsOwnAgainOnceTheHostGivesIt(t *testing.T) {
	w := boundWorld(t)
	before := w.parts()
	w.disowned()
	did, result, err := w.reconcile()
	require.NoError(t, err)
	assert.NotContains(t, did, "update Deployment", "it would be taken away again")
	assert.Equal(t, recheck, result.RequeueAfter)
	assert.Equal(t, v1alpha1.PhaseBound, w.claim().Status.Phase)

	served := w.claim()
	served.ResourceVersion = ""
	require.NoError(t, w.host.Create(t.Context(), served))
	did, _, err = w.reconcile()
	require.NoError(t, err)
	assert.Subset(t, did, []string{"update NetworkPolicy", "update Deployment", "update Service"})
	for i, object := range w.parts() {
		assert.Equal(t, before[i].GetUID(), object.GetUID())
		assert.Equal(t, before[i].GetOwnerReferences(), object.GetOwnerReferences())
	}
	w.settle()
}

func TestClaimTakenForGone_ItsObjectsAreMendedAllTheSame(t *testing.T) {
	w := boundWorld(t)
	w.disowned()
	policy := &networkingv1.NetworkPolicy{}
	require.True(t, w.onHost(policy))
	policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	require.NoError(t, w.host.Update(t.Context(), policy))
	_, _, err := w.reconcile()
	require.NoError(t, err)
	require.True(t, w.onHost(policy))
	assert.Empty(t, policy.Spec.Egress)
	assert.Len(t, policy.OwnerReferences, 1)
}

func TestGoneClaim_ItsObjectsGo(t *testing.T) {
	for name, before := range map[string]func(*world){
		"as they were made":                   func(*world) {},
		"taken from it by the collector":      (*world).disowned,
		"its Service alone is left":           func(w *world) { w.remove(&appsv1.Deployment{}, &networkingv1.NetworkPolicy{}) },
		"another's object of its label stays": func(w *world) { w.labelled() },
	} {
		t.Run(name, func(t *testing.T) {
			w := boundWorld(t)
			before(w)
			w.goes()
			assert.Equal(t, []reconcile.Request{reconcileRequest(claimName)}, w.r.abandoned(), "found also if nobody tells of it")
			did, _, err := w.reconcile()
			require.NoError(t, err)
			assert.Equal(t, readClaim, did[0], "it is looked for past the cache first")
			assert.Equal(t, []client.Object{nil, nil, nil}, w.parts())
			assert.Empty(t, w.r.abandoned())
			did, _, err = w.reconcile()
			require.NoError(t, err)
			assert.Empty(t, did)
		})
	}
}

func (w *world) remove(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		require.True(w, w.onHost(object))
		require.NoError(w, w.host.Delete(w.Context(), object))
	}
}

// labelled makes what bears a sandbox's labels and is nobody's.
func (w *world) labelled() {
	w.Helper()
	service := &corev1.Service{}
	require.True(w, w.onHost(service))
	theirs := &corev1.Service{Spec: service.Spec}
	theirs.Namespace, theirs.Name, theirs.Labels = namespace, "theirs", service.Labels
	require.NoError(w, w.host.Create(w.Context(), theirs))
	w.Cleanup(func() {
		assert.NoError(w, w.host.Get(context.Background(), client.ObjectKeyFromObject(theirs), theirs), "never deleted")
	})
}

func TestGoneClaim_OfWhichTheStoreIsNotSure_ItsObjectsStay(t *testing.T) {
	w := boundWorld(t)
	w.goes()
	lost := errors.New("the store lost its mark")
	w.r.Confirm = func(context.Context) error {
		assert.Contains(t, w.did, readClaim, "asked after the claim was not found")
		return lost
	}
	did, _, err := w.reconcile()
	require.ErrorIs(t, err, lost)
	assert.Equal(t, []string{readClaim}, did)
	assert.NotContains(t, w.parts(), nil)

	w.r.Confirm = func(context.Context) error { return nil }
	_, _, err = w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []client.Object{nil, nil, nil}, w.parts())
}

func TestGoneClaim_ThatOnlyTheCacheLacks_ItsObjectsStay(t *testing.T) {
	w := boundWorld(t)
	w.hidden["SandboxClaim/"+claimName] = true
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{readClaim}, did)
	assert.NotContains(t, w.parts(), nil)
}

func TestGoneClaim_TheRemovalFails_AndIsTriedAgain(t *testing.T) {
	for _, call := range []string{readClaim, "delete Service"} {
		t.Run(call, func(t *testing.T) {
			w := boundWorld(t)
			w.goes()
			w.refuse[call] = errors.New("not now")
			_, _, err := w.reconcile()
			require.ErrorContains(t, err, "not now")
			delete(w.refuse, call)
			_, _, err = w.reconcile()
			require.NoError(t, err)
			assert.Equal(t, []client.Object{nil, nil, nil}, w.parts())
		})
	}
}

func TestReplacedClaim_WhatItsPredecessorLeftGoes_AlsoWhileItWaits(t *testing.T) {
	w := boundWorld(t)
	w.goes()
	next := newClaim()
	next.UID, next.Spec.ClassRef.Name = "uid-2", "missing"
	require.NoError(t, w.claims.Create(t.Context(), next))
	_, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []client.Object{nil, nil, nil}, w.parts())
}

func TestEndingClaim_Foreground_GoesWhenNothingOfItIsLeft(t *testing.T) {
	w := boundWorld(t)
	w.podWaits("", "")
	service := &corev1.Service{}
	require.True(t, w.onHost(service))
	service.Finalizers = []string{"example.test/hold"}
	require.NoError(t, w.host.Update(t.Context(), service))
	w.goes(v1alpha1.FinalizerForeground, "example.test/theirs")

	_, _, err := w.reconcile()
	require.NoError(t, err)
	require.True(t, w.onHost(service))
	assert.NotNil(t, service.DeletionTimestamp)
	assert.Contains(t, w.claim().Finalizers, v1alpha1.FinalizerForeground, "the Service is held")

	service.Finalizers = nil
	require.NoError(t, w.host.Update(t.Context(), service))
	_, _, err = w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []client.Object{nil, nil, nil}, w.parts())
	assert.Contains(t, w.claim().Finalizers, v1alpha1.FinalizerForeground, "its pod ends yet")

	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, "p"
	require.NoError(t, w.host.Delete(t.Context(), pod))
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{"patch SandboxClaim"}, did)
	assert.Equal(t, []string{"example.test/theirs"}, w.claim().Finalizers)
}

func TestEndingClaim_Orphan_LeavesItsObjectsToNobody(t *testing.T) {
	for name, before := range map[string]func(*world){
		"before the collector came": func(*world) {},
		"after it":                  (*world).disowned,
	} {
		t.Run(name, func(t *testing.T) {
			w := boundWorld(t)
			before(w)
			w.goes(v1alpha1.FinalizerOrphan)
			_, _, err := w.reconcile()
			require.NoError(t, err)
			assert.True(t, apierrors.IsNotFound(w.claims.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: claimName}, &v1alpha1.SandboxClaim{})))
			_, _, err = w.reconcile()
			require.NoError(t, err)
			for _, object := range w.parts() {
				require.NotNil(t, object)
				assert.Empty(t, object.GetOwnerReferences())
				assert.Empty(t, sandbox.ClaimOf(object))
			}
		})
	}
}

func TestEndingClaim_HeldBySomebodyElse_KeepsItsSandboxMeanwhile(t *testing.T) {
	w := boundWorld(t)
	w.goes("example.test/theirs")
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did)
	assert.NotContains(t, w.parts(), nil)
}
