package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// etcdDialTimeout bounds the wait for a connection to etcd.
const etcdDialTimeout = 10 * time.Second

// EtcdAccess says where an etcd is and by what it may be used.
type EtcdAccess struct {
	// Endpoints are the URLs of its members, as pods reach them too.
	Endpoints []string
	// CAFile is its CA; CertFile and KeyFile are a client's certificate and key.
	CAFile, CertFile, KeyFile string
}

// EtcdAccess is access to the cluster's own etcd.
func (c *Cluster) EtcdAccess() EtcdAccess {
	return EtcdAccess{
		Endpoints: []string{c.Info.EtcdForPods},
		CAFile:    c.Info.PKI("etcd-ca.crt"), CertFile: c.Info.PKI("etcd-client.crt"), KeyFile: c.Info.PKI("etcd-client.key"),
	}
}

// Etcd is a client of the cluster's etcd, for looking at what is stored and for breaking it. Close it.
func (c *Cluster) Etcd() (*clientv3.Client, error) { return c.EtcdAccess().Client() }

// Flags are a sandbox server's flags that have it keep its objects there.
func (a EtcdAccess) Flags() []string {
	return []string{
		"--etcd-servers=" + strings.Join(a.Endpoints, ","),
		"--etcd-cafile=" + a.CAFile, "--etcd-certfile=" + a.CertFile, "--etcd-keyfile=" + a.KeyFile,
	}
}

// Client is a client of that etcd. Close it.
func (a EtcdAccess) Client() (*clientv3.Client, error) {
	config, err := a.TLS()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{Endpoints: a.Endpoints, DialTimeout: etcdDialTimeout, TLS: config, Logger: zap.NewNop()})
}

// TLS is how to speak to that etcd.
func (a EtcdAccess) TLS() (*tls.Config, error) {
	ca, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate for etcd: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// GiveEtcd makes what the ha overlay asks for before it is applied: where etcd is, by which certificate it may be used, and,
// since its ports are not etcd's own, the way to it.
func (c *Cluster) GiveEtcd(ctx context.Context, access EtcdAccess) error {
	if err := c.Apply(ctx, "manifests/base/prerequisites"); err != nil {
		return err
	}
	secret, err := access.secret()
	if err != nil {
		return err
	}
	way, err := access.way()
	if err != nil {
		return err
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: SystemNamespace, Name: name} }
	return errors.Join(
		c.Client.Create(ctx, &corev1.Secret{ObjectMeta: named("sandbox-etcd-client"), Data: secret}),
		c.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("sandbox-etcd"), Data: map[string]string{"servers": strings.Join(access.Endpoints, ",")}}),
		c.Client.Create(ctx, &networkingv1.NetworkPolicy{ObjectMeta: named("sandbox-apiserver-etcd-members"), Spec: way}),
	)
}

// way lets the server's pods out to the members.
func (a EtcdAccess) way() (networkingv1.NetworkPolicySpec, error) {
	spec := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": ServerName}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	}
	for _, endpoint := range a.Endpoints {
		at, err := url.Parse(endpoint)
		if err != nil {
			return spec, err
		}
		spec.Egress = append(spec.Egress, networkingv1.NetworkPolicyEgressRule{
			To:    []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: at.Hostname() + "/32"}}},
			Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.Parse(at.Port()))}},
		})
	}
	return spec, nil
}

// secret is what the ha overlay's Secret holds.
func (a EtcdAccess) secret() (map[string][]byte, error) {
	data := map[string][]byte{}
	var errs []error
	for key, file := range map[string]string{"ca.crt": a.CAFile, "tls.crt": a.CertFile, "tls.key": a.KeyFile} {
		var err error
		data[key], err = os.ReadFile(file)
		errs = append(errs, err)
	}
	return data, errors.Join(errs...)
}
