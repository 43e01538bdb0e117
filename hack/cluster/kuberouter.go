package main

import "context"

// kubeRouter enforces NetworkPolicy, and does nothing else of what it could.
func (c *cluster) kubeRouter() component {
	return component{
		name: "kube-router",
		args: []string{
			"--kubeconfig=" + c.kubeconfig("kube-router"),
			"--hostname-override=" + nodeName,
			"--run-firewall=true",
			"--run-router=false",
			"--run-service-proxy=false",
			"--run-loadbalancer=false",
			"--service-cluster-ip-range=" + serviceCIDR,
			"--health-port=0", // It would listen on every address.
		},
		ready: func(context.Context) error {
			return runCommand("iptables", "--wait", "--list-rules", "KUBE-ROUTER-FORWARD")
		},
	}
}
