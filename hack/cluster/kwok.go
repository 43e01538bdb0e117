package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	fakeNodePrefix   = "fake-"
	fakeNodeSelector = "type=kwok"
	fakeNodeKey      = "kwok.x-k8s.io/node" // annotation and taint
	// fakeNodeWorkers are the requests under way when nodes are made or removed.
	fakeNodeWorkers = 8
)

// kwokStages are KWOK's own rules for how a node gets Ready and a pod lives and ends at once, as paths in its module.
var kwokStages = []string{
	"kustomize/stage/node/fast/node-initialize.yaml",
	"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"kustomize/stage/pod/fast/pod-ready.yaml",
	"kustomize/stage/pod/fast/pod-complete.yaml",
	"kustomize/stage/pod/fast/pod-delete.yaml",
}

// kwok plays the fake nodes: their heartbeats and their pods' life, without a container.
func (c *cluster) kwok() (component, error) {
	if err := c.writeKwokConfig(); err != nil {
		return component{}, fmt.Errorf("configuring KWOK: %w", err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", kwokPort)
	return component{
		name: "kwok",
		args: []string{
			"--kubeconfig=" + c.kubeconfig("kwok"),
			"--config=" + c.config("kwok.yaml"),
			"--manage-all-nodes=false",
			"--manage-nodes-with-label-selector=" + fakeNodeSelector,
			"--cidr=" + fakePodCIDR,
			"--node-ip=" + c.nodeIP,
			"--server-address=" + address,
		},
		ready: c.healthy("http://"+address+"/healthz", "", ""),
	}, nil
}

// writeKwokConfig joins our settings with the stages, which are read from the module that the binary was built from.
func (c *cluster) writeKwokConfig() error {
	config, err := configFiles.ReadFile("config/kwok.yaml")
	if err != nil {
		return err
	}
	dir, err := commandOutput("", "go", "-C", c.toolModule("kwok"), "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	buf.Write(config)
	for _, stage := range kwokStages {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(dir), stage))
		if err != nil {
			return err
		}
		buf.WriteString("---\n")
		buf.Write(data)
	}
	return os.WriteFile(c.config("kwok.yaml"), buf.Bytes(), 0o644)
}

// setFakeNodes makes the cluster have exactly as many fake nodes as wanted, all Ready.
func (c *cluster) setFakeNodes(ctx context.Context, client kubernetes.Interface) error {
	if c.fakeNodes > 0 && !running(c.layout, "kwok") {
		part, err := c.kwok()
		if err != nil {
			return err
		}
		if err := c.startAndAwait(ctx, part); err != nil {
			return err
		}
	}
	return c.progress.step(fmt.Sprintf("%d fake nodes", c.fakeNodes), func() error {
		if err := c.changeFakeNodes(ctx, client); err != nil {
			return err
		}
		return poll(ctx, func(ctx context.Context) (bool, error) {
			ready, err := readyFakeNodes(ctx, client)
			if err == nil && ready != c.fakeNodes {
				err = fmt.Errorf("%d of %d fake nodes are Ready", ready, c.fakeNodes)
			}
			return err == nil, err
		})
	})
}

// changeFakeNodes creates the missing nodes and deletes those beyond the wanted number.
func (c *cluster) changeFakeNodes(ctx context.Context, client kubernetes.Interface) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: fakeNodeSelector})
	if err != nil {
		return err
	}
	have := map[string]bool{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fakeNodeWorkers)
	for _, node := range list.Items {
		have[node.Name] = true
		if isSurplus(node.Name, c.fakeNodes) {
			group.Go(func() error {
				err := client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				return err
			})
		}
	}
	for i := range c.fakeNodes {
		node := fakeNode(i)
		if !have[node.Name] {
			group.Go(func() error {
				_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
				return err
			})
		}
	}
	return group.Wait()
}

// isSurplus tells whether a node has one of our names and a number from wanted on.
func isSurplus(name string, wanted int) bool {
	number, ours := strings.CutPrefix(name, fakeNodePrefix)
	i, err := strconv.Atoi(number)
	return ours && err == nil && i >= wanted
}

// fakeNode is a node that no pod gets on without tolerating its taint, and that is never full.
func fakeNode(i int) *corev1.Node {
	name := fmt.Sprintf("%s%d", fakeNodePrefix, i)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1000"),
		corev1.ResourceMemory:           resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Ti"),
		corev1.ResourcePods:             resource.MustParse("10000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"type":                 "kwok",
				corev1.LabelHostname:   name,
				corev1.LabelArchStable: "amd64",
				corev1.LabelOSStable:   "linux",
				"kubernetes.io/role":   "agent",
				"sandbox.omnia/node":   "fake",
			},
			Annotations: map[string]string{fakeNodeKey: "fake"},
		},
		Spec: corev1.NodeSpec{
			Taints: []corev1.Taint{{Key: fakeNodeKey, Value: "fake", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

func readyFakeNodes(ctx context.Context, client kubernetes.Interface) (int, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: fakeNodeSelector, ResourceVersion: "0"})
	if err != nil {
		return 0, err
	}
	ready := 0
	for i := range list.Items {
		if readyCondition(&list.Items[i]) {
			ready++
		}
	}
	return ready, nil
}
