package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const (
	// startTimeout bounds the wait for a server's readyz.
	startTimeout = 90 * time.Second
	// stopTimeout is how long a server may take to end after SIGTERM.
	stopTimeout = 60 * time.Second
	// endTimeout is how long a server may take to notice that it must end, and to end.
	endTimeout = 90 * time.Second
)

// Server is one sandbox-apiserver process, or one that runs inside the test's own.
type Server struct {
	// Index counts the servers of a set from 0.
	Index int
	// Port is where it listens, on the node's address. It keeps it over a restart.
	Port int

	set     *Servers
	args    []string
	log     string
	process running
}

// Start starts the process again after its end, with further flags for this life of it, and waits until it is ready. Its
// endpoint stays as it is.
func (s *Server) Start(ctx context.Context, extra ...string) error {
	if err := s.launch(extra...); err != nil {
		return err
	}
	return s.WaitReady(ctx)
}

func (s *Server) launch(extra ...string) error {
	if s.Running() {
		return fmt.Errorf("server %d runs already", s.Index)
	}
	args := append(slices.Clone(s.args), extra...)
	if run := s.set.options.Run; run != nil {
		s.process = startInProcess(run, args)
		return nil
	}
	p, err := spawn(s.log, s.set.options.Binary, args...)
	if err != nil {
		return err
	}
	s.process = p
	return nil
}

// Running says whether the process runs.
func (s *Server) Running() bool { return s.process != nil && !s.process.ended() }

// PID is the process' id; 0 if it does not run.
func (s *Server) PID() int {
	if !s.Running() {
		return 0
	}
	return s.process.pid()
}

// Stop ends the process in good order, by SIGTERM, and waits for its end.
func (s *Server) Stop() error {
	if !s.Running() {
		return nil
	}
	if err := s.process.signal(syscall.SIGTERM, stopTimeout); err != nil {
		return fmt.Errorf("stopping server %d: %w (log: %s)", s.Index, err, s.log)
	}
	return nil
}

// Kill ends the process at once, by SIGKILL.
func (s *Server) Kill() error {
	if !s.Running() {
		return nil
	}
	if err := s.process.signal(syscall.SIGKILL, killGrace); err != nil {
		return fmt.Errorf("killing server %d: %w", s.Index, err)
	}
	return nil
}

// WaitEnded waits until the process has ended by itself, with an error, and gives its last words: the last line of its log,
// or the error itself where it runs inside the test's own process.
func (s *Server) WaitEnded(ctx context.Context) (string, error) {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, endTimeout, true, func(context.Context) (bool, error) {
		return !s.Running(), nil
	})
	if err != nil {
		return "", fmt.Errorf("waiting for server %d to end by itself: %w; end of %s:\n%s", s.Index, err, s.log, s.Tail())
	}
	why := s.process.why()
	if why == nil {
		return "", fmt.Errorf("server %d ended without an error", s.Index)
	}
	if s.set.options.Run != nil {
		return why.Error(), nil
	}
	lines := strings.Split(strings.TrimSpace(s.Tail()), "\n")
	return lines[len(lines)-1], nil
}

// LogFile is where the process' output is, over all its lives.
func (s *Server) LogFile() string { return s.log }

// Tail is the end of its log.
func (s *Server) Tail() string { return tail(s.log) }

// URL leads to the server itself, past the aggregator.
func (s *Server) URL() string { return "https://" + s.Address() }

// Address is the host and port of URL.
func (s *Server) Address() string {
	return net.JoinHostPort(s.set.cluster.Info.NodeIP, strconv.Itoa(s.Port))
}

// Direct is a caller's config that leads to this server, past the aggregator. The caller stays who it is.
func (s *Server) Direct(caller *rest.Config) *rest.Config {
	config := rest.CopyConfig(caller)
	config.Host = s.URL()
	config.ServerName = ServerHost
	config.CAData, config.CAFile = nil, s.certFile()
	return config
}

// certArgs say where the serving certificate is.
func (s *Server) certArgs() []string {
	if s.set.options.OwnCertificate {
		return []string{"--serving-cert-secret=" + ServingCertSecret, "--cert-dir=" + filepath.Dir(s.certFile())}
	}
	return []string{"--tls-cert-file=" + s.certFile(), "--tls-private-key-file=" + s.set.file("tls.key")}
}

// certFile is the certificate that the server serves. Whoever holds it trusts the server by it.
func (s *Server) certFile() string {
	if s.set.options.OwnCertificate {
		return s.set.file(fmt.Sprintf("certs-%d/tls.crt", s.Index))
	}
	return s.set.file("tls.crt")
}

// LeaseIdentity is what the server calls itself in the Lease, over all its lives, as a pod's container does.
func (s *Server) LeaseIdentity() string {
	return fmt.Sprintf("%s-%d_%s", ServerName, s.Index, s.set.id)
}

// AddEndpoint lets the aggregator send requests to this server.
func (s *Server) AddEndpoint(ctx context.Context) error {
	return s.set.cluster.applyEndpoint(ctx, s)
}

// RemoveEndpoint keeps the aggregator from sending requests to this server, which runs on.
func (s *Server) RemoveEndpoint(ctx context.Context) error {
	return s.set.cluster.deleteEndpoint(ctx, s)
}

// WaitReady waits until the server's own readyz says so. The error quotes readyz and the log.
func (s *Server) WaitReady(ctx context.Context) error {
	last := errors.New("not asked yet")
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if !s.Running() {
			return false, fmt.Errorf("the process ended: %w", s.process.why())
		}
		last = s.readyz(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for server %d to be ready: %w (readyz: %w)\nend of %s:\n%s", s.Index, err, last, s.log, s.Tail())
	}
	return nil
}

func (s *Server) readyz(ctx context.Context) error {
	served, err := os.ReadFile(s.certFile())
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(served)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: ServerHost, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/readyz?verbose", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(answer.Body)
	return errors.Join(fmt.Errorf("%s: %s", answer.Status, body), err)
}
