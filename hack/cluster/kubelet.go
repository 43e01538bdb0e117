package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// realNodeLabel marks the node that runs containers.
const realNodeLabel = "sandbox.omnia/node=real"

// kubelet is the real node.
func (c *cluster) kubelet() (component, error) {
	config, err := render("kubelet.yaml", map[string]any{
		"NodeIP":        c.nodeIP,
		"Port":          kubeletPort,
		"HealthPort":    kubeletHealthPort,
		"PKI":           c.dir("pki"),
		"Containerd":    containerdSocket(),
		"ResolvConf":    c.config("resolv.conf"),
		"Logs":          c.state("pod-logs"),
		"VolumePlugins": c.state("volume-plugins"),
	})
	if err != nil {
		return component{}, err
	}
	if err := os.WriteFile(c.config("resolv.conf"), nil, 0o644); err != nil {
		return component{}, err
	}
	if err := os.WriteFile(c.config("kubelet.yaml"), config, 0o644); err != nil {
		return component{}, err
	}
	return component{
		name: "kubelet",
		args: []string{
			"--config=" + c.config("kubelet.yaml"),
			"--kubeconfig=" + c.kubeconfig("kubelet"),
			"--root-dir=" + c.kubeletDir(),
			"--cert-dir=" + c.state("kubelet-pki"),
			"--node-ip=" + c.nodeIP,
			"--hostname-override=" + nodeName,
			"--node-labels=" + realNodeLabel,
		},
		ready: c.healthy(fmt.Sprintf("http://127.0.0.1:%d/healthz", kubeletHealthPort), "", ""),
	}, nil
}

// nodeIsReady tells whether a node is there, Ready and open to pods.
func nodeIsReady(ctx context.Context, client kubernetes.Interface, name string) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("node %s still has taint %s", name, node.Spec.Taints[0].Key)
	}
	if !readyCondition(node) {
		return fmt.Errorf("node %s is not Ready", name)
	}
	return nil
}

func readyCondition(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
