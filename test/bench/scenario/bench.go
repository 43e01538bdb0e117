package scenario

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// Bench is a cluster with sandbox servers on which scenarios are played.
type Bench struct {
	*framework.Cluster
	// Servers are the benchmark's own; nil where the group was served before.
	Servers *framework.Servers

	full    bool
	given   []int // how many claims stand; empty means as many as the form says
	said    func(string)
	image   string // of sandboxes; empty means the sample's
	found   []place
	anyNode bool // sandboxes run wherever the cluster places them
}

// Options say where and how long to measure.
type Options struct {
	// Full is the long form: more turns, and 5,000 claims.
	Full bool
	// Sizes are how many claims stand when the serial ones are measured again, the first being what the others are held against;
	// empty means 100 and 300, or 100, 1,000 and 5,000 in the long form.
	Sizes []int
	// Kubeconfig leads to a cluster that serves the group already; empty means the local cluster, with servers of its own.
	Kubeconfig string
	// Image is the sandboxes' on another cluster: it answers GET /healthz on port 8080. Empty means the sample sandbox's.
	Image string
	// Said is told what is being done.
	Said func(string)
}

// Open connects to the cluster, and on the local one starts a server. Close ends it.
func Open(ctx context.Context, options Options) (*Bench, error) {
	b := &Bench{full: options.Full, given: options.Sizes, said: options.Said, image: options.Image}
	var err error
	if options.Kubeconfig != "" {
		if b.Cluster, err = framework.Connect(options.Kubeconfig); err != nil {
			return nil, err
		}
		return b, errors.Join(b.WaitServed(ctx), b.look(ctx))
	}
	if b.Cluster, err = framework.Open(); err != nil {
		return nil, err
	}
	if b.Info.RealNode {
		if err := b.LoadSampleImages(ctx); err != nil {
			return nil, err
		}
	}
	if err := b.look(ctx); err != nil {
		return nil, err
	}
	b.Servers, err = b.StartServers(ctx, framework.ServerOptions{})
	return b, err
}

// Close ends what Open started.
func (b *Bench) Close() error {
	if b.Servers == nil {
		return nil
	}
	return b.Servers.Close()
}

func (b *Bench) say(format string, args ...any) {
	if b.said != nil {
		b.said(fmt.Sprintf(format, args...))
	}
}

// turns is how often something is measured: as often as given in the short form, and several times that in the long one.
func (b *Bench) turns(short int) int {
	if b.full {
		return 5 * short
	}
	return short
}

// long is a time in the short form, and several times that in the long one.
func (b *Bench) long(short time.Duration) time.Duration {
	if b.full {
		return 5 * short
	}
	return short
}

// setControllerQPS has kube-controller-manager of the local cluster ask its API server so often a second at most; 0 is its
// own default.
func (b *Bench) setControllerQPS(ctx context.Context, qps int) error {
	if b.Servers == nil {
		return errors.New("kube-controller-manager of another cluster is not the benchmark's to change")
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./hack/cluster", "up",
		"--fake-nodes="+strconv.Itoa(b.Info.FakeNodes), fmt.Sprintf("--real-node=%t", b.Info.RealNode), "--controller-qps="+strconv.Itoa(qps))
	cmd.Dir = b.Root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("restarting kube-controller-manager: %w\n%s", err, output)
	}
	return nil
}
