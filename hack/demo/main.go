// Command demo shows the whole of it on this machine: a cluster, the server behind its aggregator, an agent in a pod
// that gets a sandbox and works in it, the same by hand, and what a sandbox cannot reach. It may be run again; what an
// earlier run left is replaced. The cluster and the server stay, to be tried by hand.
//
//	go run ./hack/demo           show everything
//	go run ./hack/demo images    only build and load the sample images
//	go run ./hack/demo stop      end the server that the demo left running, with its data
//
// It refuses to send anything out of the machine: the "outside" that a sandbox must not reach is a network namespace
// with a server of its own, and is gone afterwards.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// limit bounds the whole demo; the first run builds Kubernetes.
const limit = 45 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, limit)
	err := run(ctx, os.Args[1:])
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return show(ctx, os.Stdout)
	}
	cluster, err := framework.Open()
	if err != nil {
		return err
	}
	switch args[0] {
	case "images":
		return cluster.LoadSampleImages(ctx)
	case "stop":
		return cluster.StopInstallation(ctx)
	default:
		return fmt.Errorf("unknown command %q: give none, images or stop", args[0])
	}
}
