package framework

import (
	"context"
	"errors"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// wipe removes the set's objects, so that the cluster's etcd does not grow from test to test.
func (s *Servers) wipe(ctx context.Context) error {
	if s.Dir == "" {
		return nil // It never came so far as to store anything.
	}
	if s.options.Storage == EmbeddedEtcd {
		return os.RemoveAll(s.file("etcd"))
	}
	if s.options.Etcd != nil {
		return nil // The test's own, whose data go with it.
	}
	client, err := s.cluster.Etcd()
	if err != nil {
		return err
	}
	_, err = client.Delete(ctx, s.EtcdPrefix()+"/", clientv3.WithPrefix())
	return errors.Join(err, client.Close())
}
