package property

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// awaitCollector waits until the cluster's garbage collector watches claims. It looks for new groups twice a minute, and
// until then what a claim owned outlives it.
func awaitCollector(t *testing.T, cluster *framework.Cluster) {
	t.Helper()
	namespace := cluster.Namespace(t)
	claim := framework.MakeClaim("owner", namespace, "nobody", missingClass).Obj()
	cluster.Create(t, claim)
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", Namespace: namespace, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SandboxClaim", Name: claim.Name, UID: claim.UID,
	}}}}
	cluster.Create(t, owned)
	if err := cluster.Client.Delete(t.Context(), claim); err != nil {
		t.Fatalf("deleting a claim: %v", err)
	}
	framework.Eventually(t, framework.GoneTimeout, "the garbage collector follows claims", func(ctx context.Context) (bool, error) {
		_, err := cluster.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, owned.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}, func(gone bool) bool { return gone })
}
