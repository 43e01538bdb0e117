package framework

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/altairalabs/omnia-sandboxes/hack/cluster/info"
	"github.com/altairalabs/omnia-sandboxes/hack/image"
)

const (
	outsideLink = "omnia-out0"
	// OutsideHost is the outside's address. It is of RFC 5737's 203.0.113.0/24, which nobody has, as is its gateway's.
	OutsideHost    = "203.0.113.10"
	outsideGateway = "203.0.113.9"
	outsideBits    = "/30"
	outsidePort    = "80"

	// MetadataHost is where a cloud's machines find what they may know of themselves, credentials among it.
	MetadataHost = "169.254.169.254"
)

// OutsideOptions say what the outside is.
type OutsideOptions struct {
	// Package is the folder of the main package that serves in it, on port 80 at least; empty is the sample agent's.
	Package string
	// Args are the program's arguments.
	Args []string
	// Metadata lets it answer at MetadataHost, too, to pods alone: this machine's own metadata stays where it is.
	Metadata bool
}

// Outside is a host beyond the cluster, as far as a pod can tell: a network namespace on this machine with a server in it.
// What is not kept from reaching it is answered. There is one at a time.
type Outside struct {
	// Address is host:port of its HTTP server.
	Address string

	server *process
}

// OpenOutside is OpenOutsideWith for an HTTP server that says hello.
func (c *Cluster) OpenOutside(ctx context.Context) (*Outside, error) {
	return c.OpenOutsideWith(ctx, OutsideOptions{Package: "./test/images/agent", Args: []string{"listen", "-addr", ":" + outsidePort}})
}

// OpenOutsideWith makes the network namespace and starts a server in it. Close ends both.
//
// The namespace has no name: the server's process holds it. `ip netns add` would mount /run/netns over itself the first
// time, and the pods that run just then could never be torn down, because their namespaces' first mounts lie below.
func (c *Cluster) OpenOutsideWith(ctx context.Context, options OutsideOptions) (*Outside, error) {
	binary := filepath.Join(c.Info.Dir, "images", "outside")
	if err := image.Compile(ctx, c.Root, options.Package, binary); err != nil {
		return nil, err
	}
	clearOutside()
	log := filepath.Join(c.Info.Dir, "log", "outside.log")
	server, err := spawnWith(&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}, log, binary, options.Args...)
	if err != nil {
		return nil, err
	}
	o := &Outside{Address: net.JoinHostPort(OutsideHost, outsidePort), server: server}
	err = o.connect()
	if err == nil && options.Metadata {
		err = o.answerMetadata()
	}
	if err == nil {
		err = o.await(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (log: %s)", err, log), o.Close())
	}
	return o, nil
}

// connect links the namespace to this machine.
func (o *Outside) connect() error {
	pid := o.pid()
	return steps([][]string{
		{"ip", "link", "add", outsideLink, "type", "veth", "peer", "name", "eth0", "netns", pid},
		{"ip", "address", "add", outsideGateway + outsideBits, "dev", outsideLink},
		{"ip", "link", "set", outsideLink, "up"},
		o.within("address", "add", OutsideHost+outsideBits, "dev", "eth0"),
		o.within("link", "set", "lo", "up"),
		o.within("link", "set", "eth0", "up"),
		o.within("route", "add", "default", "via", outsideGateway),
	})
}

// answerMetadata gives the namespace the metadata address, and leads there what comes from pods alone, by a routing table
// of its own. The main table is left as it is: a cloud's machine goes on reaching its real one.
func (o *Outside) answerMetadata() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+outsideLink+"/rp_filter", []byte("2"), 0); err != nil {
		return fmt.Errorf("letting answers of %s in, to which no main route leads back: %w", MetadataHost, err)
	}
	table := strconv.Itoa(info.OutsideTable)
	return steps([][]string{
		o.within("address", "add", MetadataHost+"/32", "dev", "eth0"),
		{"ip", "route", "add", MetadataHost + "/32", "via", OutsideHost, "dev", outsideLink, "table", table},
		{"ip", "rule", "add", "iif", info.Bridge, "to", MetadataHost + "/32", "lookup", table, "priority", table},
	})
}

// await waits until the server answers.
func (o *Outside) await(ctx context.Context) error {
	last := errors.New("not tried yet")
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, Shortly, true, func(context.Context) (bool, error) {
		if o.server.ended() {
			return false, fmt.Errorf("its server ended: %w", o.server.err)
		}
		var conn net.Conn
		if conn, last = net.DialTimeout("tcp", o.Address, time.Second); last == nil {
			_ = conn.Close() // It came about, which is all that was asked.
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the outside to answer on %s: %w (%w)", o.Address, err, last)
	}
	return nil
}

func (o *Outside) pid() string { return strconv.Itoa(o.server.pid()) }

// within is a step that `ip` does inside the namespace.
func (o *Outside) within(args ...string) []string {
	return append([]string{"nsenter", "--target", o.pid(), "--net", "ip"}, args...)
}

func steps(list [][]string) error {
	for _, step := range list {
		if output, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("making the outside: %s: %w: %s", strings.Join(step, " "), err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}

// Close ends the server, and with it the namespace, the link and the routes.
func (o *Outside) Close() error {
	err := o.server.signal(syscall.SIGKILL, killGrace)
	clearOutside()
	return err
}

// clearOutside removes a link and a rule that are left. None being there is the usual case: the link goes with its
// namespace, and its routes with it; the rule stays when a test is killed.
func clearOutside() {
	_ = exec.Command("ip", "link", "delete", outsideLink).Run()
	for exec.Command("ip", "rule", "delete", "priority", strconv.Itoa(info.OutsideTable)).Run() == nil {
		continue // One that was killed may have left another beside it.
	}
}
