package main

import (
	"fmt"
	"os"
)

// kubeProxy makes Services reachable, from pods and from the machine itself.
func (c *cluster) kubeProxy() (component, error) {
	config, err := render("kube-proxy.yaml", map[string]any{
		"Kubeconfig":  c.kubeconfig("kube-proxy"),
		"PodCIDR":     podCIDR,
		"NodeName":    nodeName,
		"HealthPort":  kubeProxyHealthPort,
		"MetricsPort": kubeProxyMetricsPort,
	})
	if err != nil {
		return component{}, err
	}
	if err := os.WriteFile(c.config("kube-proxy.yaml"), config, 0o644); err != nil {
		return component{}, err
	}
	return component{
		name:  "kube-proxy",
		args:  []string{"--config=" + c.config("kube-proxy.yaml")},
		ready: c.healthy(fmt.Sprintf("http://127.0.0.1:%d/healthz", kubeProxyHealthPort), "", ""),
	}, nil
}
