package install

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/pkg/apiserver"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestHA_ThreeReplicasOnEtcdWithTLS_LeaderDeleted_AnotherWorksOn(t *testing.T) {
	c := framework.Get(t)
	cleanEtcd(t, c)
	w := install(t, "test/install/ha", func(ctx context.Context) error { return giveEtcd(ctx, c) })
	sandbox := w.acquire("s")
	servers := w.servers()
	require.Len(t, servers, 3)
	for _, pod := range servers {
		assert.True(t, ready(&pod), pod.Name)
	}
	framework.Eventually(t, framework.Shortly, "one may be drained away", func(ctx context.Context) (*policyv1.PodDisruptionBudget, error) {
		return w.Kube.PolicyV1().PodDisruptionBudgets(framework.SystemNamespace).Get(ctx, framework.ServerName, metav1.GetOptions{})
	}, func(b *policyv1.PodDisruptionBudget) bool { return b.Status.DisruptionsAllowed == 1 })

	leader := w.leader(t)
	require.NoError(t, w.Kube.CoreV1().Pods(framework.SystemNamespace).Delete(t.Context(), leader, metav1.DeleteOptions{}))
	framework.Eventually(t, framework.FailoverTimeout, "another replica holds the Lease", func(context.Context) (string, error) {
		return w.leader(t), nil
	}, func(holder string) bool { return holder != "" && holder != leader })
	assert.Equal(t, sandbox.UID, w.acquire("s").UID)
	w.acquire("another-session")
}

// leader is the pod that runs the controllers.
func (w *world) leader(t *testing.T) string {
	t.Helper()
	holder := framework.Eventually(t, framework.FailoverTimeout, "a replica holds the Lease", w.LeaseHolder, func(holder string) bool { return holder != "" })
	// controller-runtime appends a UID to the host's name, which is the pod's.
	for _, pod := range w.servers() {
		if len(holder) > len(pod.Name) && holder[:len(pod.Name)] == pod.Name {
			return pod.Name
		}
	}
	return ""
}

// giveEtcd makes what the overlay asks for: where etcd is, and by which certificate it may be used. It is the cluster's.
func giveEtcd(ctx context.Context, c *framework.Cluster) error {
	if err := c.Apply(ctx, "manifests/base/prerequisites"); err != nil {
		return err
	}
	client := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: framework.SystemNamespace, Name: "sandbox-etcd-client"},
		Data:       map[string][]byte{},
	}
	for key, file := range map[string]string{"ca.crt": "etcd-ca.crt", "tls.crt": "etcd-client.crt", "tls.key": "etcd-client.key"} {
		content, err := os.ReadFile(c.Info.PKI(file))
		if err != nil {
			return err
		}
		client.Data[key] = content
	}
	servers := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: framework.SystemNamespace, Name: "sandbox-etcd"},
		Data:       map[string]string{"servers": c.Info.EtcdForPods},
	}
	return errors.Join(c.Client.Create(ctx, client), c.Client.Create(ctx, servers))
}

// cleanEtcd removes what the server stored, once it is uninstalled.
func cleanEtcd(t *testing.T, c *framework.Cluster) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		client, err := c.Etcd()
		require.NoError(t, err)
		_, err = client.Delete(ctx, apiserver.DefaultEtcdPrefix+"/", clientv3.WithPrefix())
		assert.NoError(t, err)
		assert.NoError(t, client.Close())
	})
}
