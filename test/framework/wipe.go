package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// wipe removes the set's objects, so that the cluster's etcd does not grow from test to test.
func (s *Servers) wipe(ctx context.Context) error {
	if s.Dir == "" {
		return nil // It never came so far as to store anything.
	}
	if s.options.Storage == EmbeddedEtcd {
		return os.RemoveAll(s.file("etcd"))
	}
	client, err := s.cluster.Etcd()
	if err != nil {
		return err
	}
	_, err = client.Delete(ctx, s.EtcdPrefix()+"/", clientv3.WithPrefix())
	return errors.Join(err, client.Close())
}

// Etcd is a client of the cluster's etcd, for looking at what is stored and for breaking it. Close it.
func (c *Cluster) Etcd() (*clientv3.Client, error) {
	ca, err := os.ReadFile(c.Info.PKI("etcd-ca.crt"))
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(c.Info.PKI("etcd-client.crt"), c.Info.PKI("etcd-client.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's etcd certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{c.Info.Etcd},
		DialTimeout: 10 * time.Second,
		TLS:         &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Logger:      zap.NewNop(),
	})
}
