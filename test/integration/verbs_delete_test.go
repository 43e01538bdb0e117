package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// built gives the three objects of a Bound claim's sandbox.
func (w *world) built(claim *v1alpha1.SandboxClaim) []client.Object {
	w.t.Helper()
	objects := []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}}
	for _, object := range objects {
		require.NoError(w.t, w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: claim.Status.SandboxName}, object))
		require.Len(w.t, object.GetOwnerReferences(), 2, "its claim, and its Namespace, which keeps it from who takes the claim for gone")
		require.Equal(w.t, claim.UID, object.GetOwnerReferences()[0].UID)
		require.Equal(w.t, ptr.To(true), object.GetOwnerReferences()[0].BlockOwnerDeletion)
	}
	return objects
}

// gone waits until a claim is deleted.
func (w *world) gone(name string) {
	w.t.Helper()
	framework.Eventually(w.t, framework.GoneTimeout, name+" is gone", func(ctx context.Context) (bool, error) {
		_, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}, func(gone bool) bool { return gone })
}

func TestDelete_Foreground_TheClaimGoesLast(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	claim := w.bound("s")
	service := w.built(claim)[1]
	service.SetFinalizers([]string{"example.test/hold"})
	require.NoError(t, w.Client.Update(t.Context(), service))

	require.NoError(t, claims.Delete(t.Context(), claim.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}))
	framework.Eventually(t, framework.GoneTimeout, "all but the held Service is gone", func(ctx context.Context) (string, error) {
		return w.Kubectl(ctx, "--namespace", w.namespace, "get", "deployments,services,networkpolicies", "--selector", v1alpha1.LabelClaim, "--output", "name")
	}, func(left string) bool { return left == "service/"+claim.Status.SandboxName+"\n" })
	waits, err := claims.Get(t.Context(), claim.Name, metav1.GetOptions{})
	require.NoError(t, err, "the claim waits for what it owns")
	assert.NotNil(t, waits.DeletionTimestamp)
	assert.Contains(t, waits.Finalizers, v1alpha1.FinalizerForeground)
	assert.Equal(t, claim.UID, waits.UID)

	_, err = w.Kubectl(t.Context(), "--namespace", w.namespace, "patch", "service", service.GetName(), "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
	require.NoError(t, err)
	w.gone(claim.Name)
}

func TestDelete_Background_TheClaimGoesFirst(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	w.built(claim)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	require.NoError(t, claims.Delete(t.Context(), claim.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	_, err := claims.Get(t.Context(), claim.Name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "got %v", err)
	w.noObjects()
}

func TestDelete_Orphan_TheObjectsStayWithoutAnOwner(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	objects := w.built(claim)
	require.NoError(t, w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Delete(t.Context(), claim.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)}))
	w.gone(claim.Name)
	for _, object := range objects {
		uid := object.GetUID()
		require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		assert.Equal(t, uid, object.GetUID())
		assert.Empty(t, object.GetOwnerReferences())
		assert.Nil(t, object.GetDeletionTimestamp())
		require.NoError(t, w.Client.Delete(t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	w.noObjects()
}

func TestDeleteCollection_OfASession_TakesItsSandboxesAndNoOther(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	mine, other := w.bound("mine"), w.bound("other")
	require.NoError(t, claims.DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}, metav1.ListOptions{FieldSelector: "spec.sessionID=mine,status.phase=Bound"}))
	w.gone(mine.Name)
	w.built(w.Claim(t, w.namespace, other.Name, framework.Bound))
}
