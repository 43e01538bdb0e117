package framework

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// fieldOwner is whose the fields are that tests and the demo apply.
const fieldOwner = "omnia-sandboxes"

// Kubectl runs the cluster's kubectl as cluster-admin in the repository's root and gives what it printed. The error
// quotes what kubectl said.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.KubectlAs(ctx, c.Info.Kubeconfig(), args...)
}

// KubectlAs is Kubectl with another kubeconfig.
func (c *Cluster) KubectlAs(ctx context.Context, kubeconfig string, args ...string) (string, error) {
	cmd := c.kubectl(ctx, kubeconfig, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// KubectlCommand is Kubectl that was not started yet, for whoever gives it input or variables, or reads while it runs.
func (c *Cluster) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	return c.kubectl(ctx, c.Info.Kubeconfig(), args...)
}

func (c *Cluster) kubectl(ctx context.Context, kubeconfig string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Info.Bin("kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	cmd.Dir = c.Root
	return cmd
}

// Apply applies a kustomization of the repository, for instance manifests/samples.
func (c *Cluster) Apply(ctx context.Context, kustomization string) error {
	_, err := c.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--field-manager", fieldOwner,
		"--kustomize", filepath.Join(c.Root, kustomization))
	return err
}

// install applies what servers that run as processes need in the cluster before they start: Omnia's CRDs, the server's
// identity and permissions, and the right of every ServiceAccount to ask. It may be done again.
func (c *Cluster) install(ctx context.Context) error {
	for _, kustomization := range []string{"manifests/base/prerequisites", "manifests/components/acquire-for-serviceaccounts"} {
		if err := c.Apply(ctx, kustomization); err != nil {
			return fmt.Errorf("installing: %w", err)
		}
	}
	return c.InstallOmnia(ctx)
}

// InstallOmnia applies Omnia's CRDs, as a cluster without Omnia needs them. It may be done again.
func (c *Cluster) InstallOmnia(ctx context.Context) error {
	if err := c.Apply(ctx, "manifests/omnia-crds"); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	_, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=30s", "crd/agentruntimes.omnia.altairalabs.ai",
		"crd/toolregistries.omnia.altairalabs.ai", "crd/workspaces.omnia.altairalabs.ai", "crd/connections.omnia.altairalabs.ai")
	return err
}
