package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/hack/cluster/info"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const clusterFolder = ".cluster"

// startCluster brings the cluster up, or finds it up, with the fake nodes that it has.
func startCluster(ctx context.Context, s *story) (*framework.Cluster, error) {
	args := []string{"run", "./hack/cluster", "up"}
	if have, err := info.Load(clusterFolder); err == nil {
		args = append(args, fmt.Sprintf("--fake-nodes=%d", have.FakeNodes), fmt.Sprintf("--controller-qps=%d", have.ControllerQPS))
	}
	var cluster *framework.Cluster
	err := s.ask("go "+strings.Join(args, " ")+"   (the first time, this builds Kubernetes)", func() (string, error) {
		if _, err := os.Stat("go.mod"); err != nil {
			return "", errors.New("run the demo from the repository's root")
		}
		up := exec.CommandContext(ctx, "go", args...)
		up.Stdout, up.Stderr = s.out, s.out // building takes minutes, and tells how far it is
		err := up.Run()
		if err != nil {
			return "", err
		}
		if cluster, err = framework.Open(); err != nil {
			return "", err
		}
		return cluster.Kubectl(ctx, "get", "nodes")
	})
	return cluster, err
}

func loadImages(ctx context.Context, s *story, c *framework.Cluster) error {
	return s.ask("build test/images/{sandbox,agent}, each one static binary, and load them on the node", func() (string, error) {
		return framework.SandboxImage + "\n" + framework.AgentImage, c.LoadSampleImages(ctx)
	})
}

// installServer installs the server as people do, by an overlay, as pods. Until the story's end no test may take its place.
func installServer(ctx context.Context, s *story, c *framework.Cluster) error {
	err := s.ask("kubectl apply -k manifests/omnia-crds   (this cluster has no Omnia)", func() (string, error) {
		return "applied", c.InstallOmnia(ctx)
	})
	if err != nil {
		return err
	}
	return s.ask("build the server's image, load it on the node, kubectl apply -k "+framework.LocalOverlay, func() (string, error) {
		installation, err := c.UpdateOverlay(ctx, framework.LocalOverlay)
		if err != nil {
			return "", err
		}
		s.installation = installation
		pods, err := c.Kubectl(ctx, "--namespace", framework.SystemNamespace, "get", "pods")
		if err != nil {
			return "", err
		}
		state, err := c.Kubectl(ctx, "get", "apiservice", "v1alpha1.sandbox.omnia")
		return pods + state, err
	})
}

// applySamples applies the samples and clears what an earlier run left: claims, and the pods that played agents.
func applySamples(ctx context.Context, s *story, c *framework.Cluster) error {
	return s.ask("kubectl apply -k manifests/samples, then -k manifests/samples/classes", func() (string, error) {
		for _, kustomization := range []string{"manifests/samples", "manifests/samples/classes"} {
			if err := c.Apply(ctx, kustomization); err != nil {
				return "", err
			}
		}
		all := metav1.ListOptions{}
		if err := c.Sandbox.SandboxV1alpha1().SandboxClaims(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all); err != nil {
			return "", fmt.Errorf("clearing claims of an earlier run: %w", err)
		}
		if err := c.Kube.CoreV1().Pods(namespace).DeleteCollection(ctx, atOnce(), metav1.ListOptions{LabelSelector: demoLabel}); err != nil {
			return "", fmt.Errorf("clearing pods of an earlier run: %w", err)
		}
		return c.Kubectl(ctx, "--namespace", namespace, "get", "agentruntimes,toolregistries,serviceaccounts")
	})
}
