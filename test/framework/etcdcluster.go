package framework

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/util/rand"
)

// etcdSize is the fewest members of which one may be lost.
const etcdSize = 3

// EtcdCluster is an etcd of three members, for a test that breaks one: processes of this machine that listen on the node's
// address, where pods reach them too, with TLS to clients and among themselves, and with their writes synced.
type EtcdCluster struct {
	// Dir holds the members' logs, certificates and data.
	Dir string

	ca      *CA
	members []*EtcdMember
	closed  sync.Once
	err     error
}

// StartEtcd starts an etcd for a test and ends it with it, data and all. A failed test's log names the members' logs.
func StartEtcd(t testing.TB, c *Cluster) *EtcdCluster {
	t.Helper()
	e, err := c.StartEtcd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs of etcd's members: %s", e.Dir)
		}
		if err := e.Close(); err != nil {
			t.Errorf("ending etcd: %v", err)
		}
	})
	return e
}

// StartEtcd starts an etcd with nothing in it and waits until each member answers. Close ends what it started.
func (c *Cluster) StartEtcd(ctx context.Context) (*EtcdCluster, error) {
	id := rand.String(8)
	e := &EtcdCluster{Dir: filepath.Join(c.Info.Dir, "etcd", id)}
	err := e.prepare(c.Info.NodeIP)
	if err == nil {
		for _, m := range e.members {
			m.args = e.args(m, id)
			m.program = c.Info.Bin("etcd")
		}
		err = e.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// prepare makes certificates and finds places for the members.
func (e *EtcdCluster) prepare(ip string) error {
	if err := os.MkdirAll(e.Dir, 0o700); err != nil {
		return err
	}
	var err error
	if e.ca, err = newCA("etcd"); err != nil {
		return err
	}
	if err := os.WriteFile(e.file("ca.crt"), e.ca.PEM, 0o600); err != nil {
		return err
	}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if err := e.ca.issueFiles(x509.Certificate{Subject: pkix.Name{CommonName: ServerName}, ExtKeyUsage: client}, e.file("client.crt"), e.file("client.key")); err != nil {
		return err
	}
	// A member is its peers' client, too.
	member := x509.Certificate{Subject: pkix.Name{CommonName: "etcd"}, IPAddresses: []net.IP{net.ParseIP(ip)}, ExtKeyUsage: append(client, x509.ExtKeyUsageServerAuth)}
	if err := e.ca.issueFiles(member, e.file("member.crt"), e.file("member.key")); err != nil {
		return err
	}
	for i := range etcdSize {
		m := &EtcdMember{Index: i, cluster: e}
		for _, url := range []*string{&m.endpoint, &m.peer} {
			port, err := freePort(ip)
			if err != nil {
				return err
			}
			*url = fmt.Sprintf("https://%s:%d", ip, port)
		}
		e.members = append(e.members, m)
	}
	return nil
}

// args are a member's flags, but for those that are etcd's defaults: among these that it syncs what it writes.
func (e *EtcdCluster) args(m *EtcdMember, token string) []string {
	var all []string
	for _, other := range e.members {
		all = append(all, other.name()+"="+other.peer)
	}
	return []string{
		"--name=" + m.name(),
		"--data-dir=" + m.dataDir(),
		"--listen-client-urls=" + m.endpoint,
		"--advertise-client-urls=" + m.endpoint,
		"--listen-peer-urls=" + m.peer,
		"--initial-advertise-peer-urls=" + m.peer,
		"--initial-cluster=" + strings.Join(all, ","),
		"--initial-cluster-token=" + token,
		"--client-cert-auth", "--trusted-ca-file=" + e.file("ca.crt"),
		"--cert-file=" + e.file("member.crt"), "--key-file=" + e.file("member.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + e.file("ca.crt"),
		"--peer-cert-file=" + e.file("member.crt"), "--peer-key-file=" + e.file("member.key"),
		"--log-level=warn",
	}
}

func (e *EtcdCluster) file(name string) string { return filepath.Join(e.Dir, name) }

// Access is by what clients use it.
func (e *EtcdCluster) Access() EtcdAccess {
	a := EtcdAccess{CAFile: e.file("ca.crt"), CertFile: e.file("client.crt"), KeyFile: e.file("client.key")}
	for _, m := range e.members {
		a.Endpoints = append(a.Endpoints, m.endpoint)
	}
	return a
}

// Members are the members, in an order that stays.
func (e *EtcdCluster) Members() []*EtcdMember { return e.members }

// Leader is the member that leads. It is an error if none does, as for a moment after the leader's death.
func (e *EtcdCluster) Leader(ctx context.Context) (*EtcdMember, error) {
	errs := []error{errors.New("no member of etcd leads")}
	for _, m := range e.members {
		leads, err := m.Leads(ctx)
		if leads {
			return m, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Start starts the members that do not run, and waits until each answers.
func (e *EtcdCluster) Start(ctx context.Context) error {
	for _, m := range e.members {
		if err := m.launch(); err != nil {
			return err
		}
	}
	for _, m := range e.members {
		if err := m.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the members and removes their data. The logs stay.
func (e *EtcdCluster) Close() error {
	e.closed.Do(func() {
		var errs []error
		for _, m := range e.members {
			errs = append(errs, m.signal(syscall.SIGKILL), os.RemoveAll(m.dataDir()))
		}
		e.err = errors.Join(errs...)
	})
	return e.err
}
