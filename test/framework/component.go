package framework

import (
	"context"
	"fmt"
	"os/exec"
)

// KillComponent ends one of the cluster's programs (kube-apiserver, kubelet, …) by SIGKILL. StartComponent brings it back.
func (c *Cluster) KillComponent(ctx context.Context, program string) error {
	return c.launcher(ctx, "kill", program)
}

// StartComponent starts one of the cluster's programs as it was started, and waits until it is ready. One that runs is left
// alone.
func (c *Cluster) StartComponent(ctx context.Context, program string) error {
	return c.launcher(ctx, "start", program)
}

// launcher runs a command of hack/cluster.
func (c *Cluster) launcher(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./hack/cluster"}, args...)...)
	cmd.Dir = c.Root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("hack/cluster %s: %w\n%s", args[0], err, output)
	}
	return nil
}
