package main

import (
	"context"
	"fmt"
)

// controllerManager is kube-controller-manager with all its default controllers.
func (c *cluster) controllerManager() component {
	kubeconfig := c.kubeconfig("kube-controller-manager")
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", controllerManagerPort),
		"--leader-elect=false",
		"--flex-volume-plugin-dir=" + c.state("volume-plugins"), // Its default is a folder in /usr, which it makes.
		"--use-service-account-credentials=true",
		"--root-ca-file=" + c.pki(clusterCA+".crt"),
		"--service-account-private-key-file=" + c.pki("sa.key"),
		"--cluster-signing-cert-file=" + c.pki(clusterCA+".crt"),
		"--cluster-signing-key-file=" + c.pki(clusterCA+".key"),
	}
	if c.controllerQPS > 0 { // The default of 20 caps a cluster near four Deployments a second.
		args = append(args,
			fmt.Sprintf("--kube-api-qps=%d", c.controllerQPS),
			fmt.Sprintf("--kube-api-burst=%d", 2*c.controllerQPS))
	}
	return component{
		name:  "kube-controller-manager",
		args:  args,
		ready: c.healthy(fmt.Sprintf("https://127.0.0.1:%d/healthz", controllerManagerPort), "", ""),
	}
}

// restartControllerManager puts a changed --controller-qps into effect in a cluster that is up.
func (c *cluster) restartControllerManager(ctx context.Context) error {
	part := c.controllerManager()
	if p, ok := recorded(c.layout, part.name); ok {
		if err := stopAll([]process{p}); err != nil {
			return err
		}
	}
	return c.startAndAwait(ctx, part)
}
