package framework

import (
	"context"
	"errors"
	"fmt"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/pkg/store"
)

// wipe removes the set's objects, so that the cluster's etcd does not grow from test to test.
func (s *Servers) wipe(ctx context.Context) error {
	if s.Dir == "" {
		return nil // It never came so far as to store anything.
	}
	if s.options.Storage == EmbeddedEtcd {
		return errors.Join(os.RemoveAll(s.file("etcd")), s.cluster.forgetStore(ctx))
	}
	if s.options.Etcd != nil {
		return s.cluster.forgetStore(ctx) // The test's own, whose data go with it.
	}
	client, err := s.cluster.Etcd()
	if err != nil {
		return err
	}
	_, err = client.Delete(ctx, s.EtcdPrefix()+"/", clientv3.WithPrefix())
	return errors.Join(err, client.Close(), s.cluster.forgetStore(ctx))
}

// forgetStore removes what the cluster knows of a store that is gone: servers of another one would not serve.
func (c *Cluster) forgetStore(ctx context.Context) error {
	err := c.Kube.CoreV1().ConfigMaps(SystemNamespace).Delete(ctx, store.ConfigMapName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("forgetting the store of servers that are gone: %w", err)
	}
	return nil
}
