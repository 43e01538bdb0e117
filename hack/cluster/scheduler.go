package main

import "fmt"

// scheduler is kube-scheduler with its default configuration.
func (c *cluster) scheduler() component {
	kubeconfig := c.kubeconfig("kube-scheduler")
	return component{
		name: "kube-scheduler",
		args: []string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", schedulerPort),
			"--leader-elect=false",
		},
		ready: c.healthy(fmt.Sprintf("https://127.0.0.1:%d/healthz", schedulerPort), "", ""),
	}
}
