package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// readyTimeout is how long a program may take until it can work. Seconds are usual; the rest is for a busy machine.
const readyTimeout = 2 * time.Minute

// cluster is one cluster that is being started or changed.
type cluster struct {
	layout
	machine
	upOptions
	progress *progress
}

// component is one program of the cluster.
type component struct {
	// name of its log and pid file, and of its binary in .cluster/bin.
	name string
	args []string
	// ready is asked until it returns nil.
	ready func(ctx context.Context) error
}

// server is kube-apiserver's URL.
func (c *cluster) server() string { return fmt.Sprintf("https://%s:%d", c.nodeIP, apiServerPort) }

// run starts a component. It comes back at once; await waits.
func (c *cluster) run(parts ...component) error {
	for _, part := range parts {
		if err := start(c.layout, part.name, c.bin(part.name), part.args...); err != nil {
			return err
		}
	}
	return nil
}

// await waits until the component can do its work, and shows its log if it ended instead.
func (c *cluster) await(ctx context.Context, part component) error {
	return c.progress.step(part.name, func() error {
		err := poll(ctx, func(ctx context.Context) (bool, error) {
			if !running(c.layout, part.name) {
				return true, fmt.Errorf("it ended")
			}
			err := part.ready(ctx)
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("%w\nlast lines of %s:\n%s", err, c.dir("log", part.name+".log"), c.logTail(part.name))
		}
		return nil
	})
}

// startAndAwait does both for one component after the other.
func (c *cluster) startAndAwait(ctx context.Context, parts ...component) error {
	for _, part := range parts {
		if err := c.run(part); err != nil {
			return err
		}
		if err := c.await(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// logTail is the end of a component's log.
func (c *cluster) logTail(name string) string {
	const lines = 12
	data, err := os.ReadFile(c.dir("log", name+".log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// poll asks until done, the context's end or the timeout. An error that comes with done is final; any other is given
// back only when time runs out.
func poll(ctx context.Context, ask func(context.Context) (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := ask(ctx)
		if done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w (last: %w)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// healthy is a readiness check that wants the answer 200 from a URL. The CA and the client certificate are names of
// files in pki; without a CA the server's certificate is not checked, which is meant for programs that make their own
// and listen on loopback alone.
func (c *cluster) healthy(url, ca, client string) func(context.Context) error {
	return func(ctx context.Context) error {
		config := &tls.Config{InsecureSkipVerify: ca == ""} //nolint:gosec // loopback only, see above
		if ca != "" {
			data, err := os.ReadFile(c.pki(ca + ".crt"))
			if err != nil {
				return err
			}
			config.RootCAs = x509.NewCertPool()
			config.RootCAs.AppendCertsFromPEM(data)
		}
		if client != "" {
			pair, err := tls.LoadX509KeyPair(c.pki(client+".crt"), c.pki(client+".key"))
			if err != nil {
				return err
			}
			config.Certificates = []tls.Certificate{pair}
		}
		return get(ctx, url, config)
	}
}

// get wants the answer 200. It uses no proxy, whatever the environment says.
func get(ctx context.Context, url string, config *tls.Config) error {
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}
