package framework

import (
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// EmbeddedEtcd is a client of the etcd inside the set's one process, by its socket. It lives on when the process is killed
// and started again. Close it.
func (s *Servers) EmbeddedEtcd() (*clientv3.Client, error) {
	if s.options.Storage != EmbeddedEtcd {
		return nil, errors.New("these servers have no embedded etcd")
	}
	return clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + s.file("etcd/client.sock")}, DialTimeout: etcdDialTimeout, Logger: zap.NewNop()})
}
