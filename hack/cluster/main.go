// Command cluster runs a real Kubernetes on this machine for development, tests and the demo: etcd, the control plane,
// one node that runs containers, and as many fake nodes as wanted. Everything is built from the Go module proxy, so no
// image registry and no download page is needed.
//
//	go run ./hack/cluster build
//	go run ./hack/cluster up [--real-node=true] [--fake-nodes=0] [--controller-qps=0]
//	go run ./hack/cluster status
//	go run ./hack/cluster load <image.tar>...
//	go run ./hack/cluster kill|start <program>
//	go run ./hack/cluster down
//
// Run it as root from the repository's root. All files lie in .cluster, sockets in /run/omnia-cluster. A machine has
// one such cluster at a time: up from another clone ends the earlier one.
//
// It refuses to be a production installer: state does not survive down, nothing restarts a process that dies, nothing
// listens beyond loopback and the machine's own address, no pod can send a packet out of the machine, and a machine
// that already runs another Kubernetes is not for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: go run ./hack/cluster <command>

  build                 build the cluster's programs into .cluster/bin and install missing Debian packages
  up [flags]            build, start the cluster, wait until it is ready
      --real-node=true      run a node with containers (false: control plane and fake nodes only)
      --fake-nodes=0        nodes played by KWOK; may be changed while the cluster is up
      --controller-qps=0    kube-controller-manager's --kube-api-qps (0: Kubernetes' default of 20)
  status                which programs run, and the nodes
  load <image.tar>...   import image tarballs on the real node
  kill <program>        end one of the programs of status by SIGKILL, for whoever tries what that does
  start <program>       start it again as it was started, and wait until it is ready
  down                  stop everything and clean the machine; .cluster/bin stays
`

// errUsage marks an error that the usage text helps with.
var errUsage = errors.New("wrong usage")

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "%v\n\n%s", err, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// run does one command.
func run(ctx context.Context, args []string, out io.Writer) error {
	cmd, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	l := layout{root: dir}
	if err := l.check(); err != nil {
		return err
	}
	p := &progress{out: out}
	if cmd.name == "status" {
		return status(ctx, l, out)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%s needs root: it makes network namespaces, mounts and firewall rules", cmd.name)
	}
	if cmd.name == "load" {
		return load(ctx, l, p, cmd.images)
	}
	unlock, err := lock()
	if err != nil {
		return err
	}
	defer unlock()
	switch cmd.name {
	case "build":
		return build(ctx, l, p)
	case "up":
		return up(ctx, l, p, cmd.up)
	case "kill":
		return kill(l, p, cmd.program)
	case "start":
		return startAgain(ctx, l, p, cmd.program)
	default:
		return down(ctx, l, p)
	}
}
