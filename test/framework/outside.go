package framework

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/altairalabs/omnia-sandboxes/hack/image"
)

const (
	outsideLink = "omnia-out0"
	// The addresses are of RFC 5737's 203.0.113.0/24, which nobody has.
	outsideGateway = "203.0.113.9"
	outsideHost    = "203.0.113.10"
	outsideBits    = "/30"
	outsidePort    = "80"
)

// Outside is a host beyond the cluster, as far as a pod can tell: a network namespace on this machine with an HTTP server
// in it. What is not kept from reaching it is answered. There is one at a time.
type Outside struct {
	// Address is host:port of its server.
	Address string

	server *process
}

// OpenOutside makes the network namespace and starts the server in it. Close ends both.
//
// The namespace has no name: the server's process holds it. `ip netns add` would mount /run/netns over itself the first
// time, and the pods that run just then could never be torn down, because their namespaces' first mounts lie below.
func (c *Cluster) OpenOutside(ctx context.Context) (*Outside, error) {
	binary := filepath.Join(c.Info.Dir, "images", "outside")
	if err := image.Compile(ctx, c.Root, "./test/images/agent", binary); err != nil {
		return nil, err
	}
	clearOutside()
	log := filepath.Join(c.Info.Dir, "log", "outside.log")
	server, err := spawnWith(&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL},
		log, binary, "listen", "-addr", ":"+outsidePort)
	if err != nil {
		return nil, err
	}
	o := &Outside{Address: net.JoinHostPort(outsideHost, outsidePort), server: server}
	if err := o.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (log: %s)", err, log), o.Close())
	}
	return o, nil
}

// connect links the namespace to this machine and waits until the server answers.
func (o *Outside) connect(ctx context.Context) error {
	pid := strconv.Itoa(o.server.cmd.Process.Pid)
	within := []string{"nsenter", "--target", pid, "--net", "ip"}
	for _, step := range [][]string{
		{"ip", "link", "add", outsideLink, "type", "veth", "peer", "name", "eth0", "netns", pid},
		{"ip", "address", "add", outsideGateway + outsideBits, "dev", outsideLink},
		{"ip", "link", "set", outsideLink, "up"},
		append(within, "address", "add", outsideHost+outsideBits, "dev", "eth0"),
		append(within, "link", "set", "lo", "up"),
		append(within, "link", "set", "eth0", "up"),
		append(within, "route", "add", "default", "via", outsideGateway),
	} {
		if output, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("making the outside: %s: %w: %s", strings.Join(step, " "), err, strings.TrimSpace(string(output)))
		}
	}
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

// Close ends the server, and with it the namespace, the link and the route.
func (o *Outside) Close() error {
	err := o.server.signal(syscall.SIGKILL, killGrace)
	clearOutside()
	return err
}

// clearOutside removes a link that is left. None being there is the usual case: it goes with its namespace.
func clearOutside() { _ = exec.Command("ip", "link", "delete", outsideLink).Run() }
