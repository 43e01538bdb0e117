package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/util/cert"
)

// Storage says where a set of servers keeps its objects.
type Storage string

const (
	// SharedEtcd is the cluster's etcd, under a prefix of the set's own.
	SharedEtcd Storage = "SharedEtcd"
	// EmbeddedEtcd is an etcd inside the process: one server only.
	EmbeddedEtcd Storage = "EmbeddedEtcd"
)

const (
	// SystemNamespace is where the server's identity, Service and Lease are.
	SystemNamespace = "sandbox-system"
	// ServerName names the server's ServiceAccount, Service and Lease.
	ServerName = "sandbox-apiserver"
	// ServingCertSecret is where the servers keep a certificate of their own.
	ServingCertSecret = "sandbox-apiserver-cert"
	// ServerHost is the name that the serving certificate is for, whatever address a server listens on.
	ServerHost = ServerName + "." + SystemNamespace + ".svc"

	binaryPath = "bin/sandbox-apiserver"
	serverMain = "./cmd/sandbox-apiserver"
)

// ServerOptions say which servers to start.
type ServerOptions struct {
	// Replicas is how many processes; 0 means 1.
	Replicas int
	// Storage is where they keep their objects; empty means SharedEtcd.
	Storage Storage
	// Etcd is an etcd of the test's own, which takes the place of the cluster's in SharedEtcd.
	Etcd *EtcdCluster
	// OwnCertificate lets the servers keep their serving certificate and the APIService's caBundle, as an installation
	// without cert-manager does. Else the certificate is given by files, as with cert-manager, and the caBundle with it.
	OwnCertificate bool
	// ExtraArgs are further flags of every process.
	ExtraArgs []string
	// Binary is the program; empty builds cmd/sandbox-apiserver.
	Binary string
	// Run runs each server inside the test's own process, in place of Binary: for a test that tells the servers the time.
	Run RunServer
}

// Servers is a set of server processes that serve one group together, registered with the aggregator.
type Servers struct {
	// List are the processes.
	List []*Server
	// Dir holds their logs, certificates and kubeconfig.
	Dir string

	cluster *Cluster
	options ServerOptions
	id      string
	ca      []byte
	lock    *os.File
	closed  sync.Once
	err     error
}

// StartServers starts servers for a test and ends them with it. A failed test's log names their logs.
func StartServers(t testing.TB, c *Cluster, options ServerOptions) *Servers {
	t.Helper()
	servers, err := c.StartServers(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs of the sandbox servers: %s", servers.Dir)
		}
		if err := servers.Close(); err != nil {
			t.Errorf("ending the sandbox servers: %v", err)
		}
	})
	return servers
}

// StartServers waits for its turn, starts servers, registers them with the aggregator and waits until the group is served.
// What a demo left running is ended first. Close ends what it started.
func (c *Cluster) StartServers(ctx context.Context, options ServerOptions) (*Servers, error) {
	options.Replicas = max(options.Replicas, 1)
	if options.Storage == "" {
		options.Storage = SharedEtcd
	}
	if options.Replicas > 1 && options.Storage == EmbeddedEtcd {
		return nil, fmt.Errorf("%d servers: one with an embedded etcd is alone", options.Replicas)
	}
	lock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	s := &Servers{cluster: c, options: options, id: rand.String(8), lock: lock}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Servers) start(ctx context.Context) error {
	if err := s.cluster.stopInstallation(ctx); err != nil {
		return err
	}
	if err := s.cluster.install(ctx); err != nil {
		return err
	}
	if err := s.cluster.freeLease(ctx); err != nil {
		return err
	}
	if s.options.Binary == "" && s.options.Run == nil {
		binary, err := s.cluster.BuildServer(ctx)
		if err != nil {
			return err
		}
		s.options.Binary = binary
	}
	if err := s.writeFiles(ctx); err != nil {
		return err
	}
	for i := range s.options.Replicas {
		if err := s.add(i); err != nil {
			return err
		}
	}
	for _, server := range s.List {
		if err := server.WaitReady(ctx); err != nil {
			return err
		}
	}
	return s.cluster.register(ctx, s)
}

// Add starts one more server, waits until it is ready, and lets the aggregator send requests to it.
func (s *Servers) Add(ctx context.Context) (*Server, error) {
	if s.options.Storage == EmbeddedEtcd {
		return nil, errors.New("one more server: one with an embedded etcd is alone")
	}
	if err := s.add(len(s.List)); err != nil {
		return nil, err
	}
	server := s.List[len(s.List)-1]
	if err := server.WaitReady(ctx); err != nil {
		return nil, err
	}
	return server, server.AddEndpoint(ctx)
}

// add starts one more process.
func (s *Servers) add(index int) error {
	port, err := freePort(s.cluster.Info.NodeIP)
	if err != nil {
		return err
	}
	server := &Server{Index: index, Port: port, set: s, log: filepath.Join(s.Dir, fmt.Sprintf("server-%d.log", index))}
	server.args = append(append(s.args(port), server.certArgs()...), "--lease-identity="+server.LeaseIdentity())
	s.List = append(s.List, server)
	return server.launch()
}

// args are a process' flags: those of a real installation, but for the kubeconfig of a ServiceAccount in place of a pod's.
func (s *Servers) args(port int) []string {
	args := []string{
		"--bind-address=" + s.cluster.Info.NodeIP,
		"--secure-port=" + strconv.Itoa(port),
		"--kubeconfig=" + s.file("kubeconfig"),
		"--namespace=" + SystemNamespace,
	}
	if s.options.Storage == EmbeddedEtcd {
		args = append(args, "--embedded-etcd-dir="+s.file("etcd"))
	} else {
		access := s.cluster.EtcdAccess()
		if s.options.Etcd != nil {
			access = s.options.Etcd.Access()
		}
		args = append(append(args, access.Flags()...), "--etcd-prefix="+s.EtcdPrefix())
	}
	return append(args, s.options.ExtraArgs...)
}

// EtcdPrefix is where the set's objects stand in etcd.
func (s *Servers) EtcdPrefix() string { return "/omnia-" + s.id }

func (s *Servers) file(name string) string { return filepath.Join(s.Dir, name) }

// writeFiles makes the set's folder, identity and certificate.
func (s *Servers) writeFiles(ctx context.Context) error {
	s.Dir = filepath.Join(s.cluster.Info.Dir, "servers", s.id)
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if err := s.cluster.writeKubeconfig(ctx, s.file("kubeconfig"), SystemNamespace, ServerName, serverTokenLifetime); err != nil {
		return err
	}
	if s.options.OwnCertificate {
		return nil
	}
	chain, key, err := cert.GenerateSelfSignedCertKey(ServerHost, nil, nil)
	if err != nil {
		return fmt.Errorf("making the serving certificate: %w", err)
	}
	s.ca = chain // It ends with the CA that signed it.
	if err := cert.WriteCert(s.file("tls.crt"), chain); err != nil {
		return err
	}
	return os.WriteFile(s.file("tls.key"), key, 0o600)
}

// Close removes the APIService first, so that nothing in the cluster waits for a group that is not served, then ends the
// processes and removes their objects. Folders with logs stay.
func (s *Servers) Close() error {
	s.closed.Do(func() { s.err = s.close() })
	return s.err
}

func (s *Servers) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	errs := []error{s.cluster.unregister(ctx)}
	ended := make(chan error)
	for _, server := range s.List {
		go func() {
			if err := server.Stop(); err != nil {
				ended <- errors.Join(err, server.Kill())
				return
			}
			ended <- nil
		}()
	}
	for range s.List {
		errs = append(errs, <-ended)
	}
	errs = append(errs, s.wipe(ctx))
	if err := s.lock.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// BuildServer compiles the server into bin. The Go tool's cache makes it cheap where nothing changed.
func (c *Cluster) BuildServer(ctx context.Context) (string, error) {
	binary := filepath.Join(c.Root, binaryPath)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, serverMain)
	cmd.Dir = c.Root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", serverMain, err, output)
	}
	return binary, nil
}
