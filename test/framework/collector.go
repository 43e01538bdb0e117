package framework

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// AwaitCollector waits until the cluster's garbage collector watches claims. It looks for new groups twice a minute, and
// until then what a claim owned outlives it.
func (c *Cluster) AwaitCollector(t testing.TB) {
	t.Helper()
	namespace := c.Namespace(t)
	claim := MakeClaim("owner", namespace, "nobody", "no-such-class").Obj()
	c.Create(t, claim)
	owned := c.owned(t, namespace, metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SandboxClaim", Name: claim.Name, UID: claim.UID,
	})
	if err := c.Client.Delete(t.Context(), claim); err != nil {
		t.Fatalf("deleting a claim: %v", err)
	}
	c.collected(t, owned, "the garbage collector follows claims")
}

// AfterCollector waits until the cluster's garbage collector has collected something that was made just now: what it had to
// do before, it has looked at.
func (c *Cluster) AfterCollector(t testing.TB, namespace string) {
	t.Helper()
	owned := c.owned(t, namespace, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"})
	c.collected(t, owned, "the garbage collector works")
}

func (c *Cluster) owned(t testing.TB, namespace string, owner metav1.OwnerReference) *corev1.ConfigMap {
	t.Helper()
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "owned-", Namespace: namespace, OwnerReferences: []metav1.OwnerReference{owner},
	}}
	c.Create(t, owned)
	return owned
}

func (c *Cluster) collected(t testing.TB, owned *corev1.ConfigMap, what string) {
	t.Helper()
	Eventually(t, GoneTimeout, what, func(ctx context.Context) (bool, error) {
		_, err := c.Kube.CoreV1().ConfigMaps(owned.Namespace).Get(ctx, owned.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}, func(gone bool) bool { return gone })
}
