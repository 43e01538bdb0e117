package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/altairalabs/omnia-sandboxes/hack/cluster/info"
)

// up brings the machine to a running cluster with the given options, whatever state it is in.
func up(ctx context.Context, l layout, p *progress, options upOptions) error {
	begin := time.Now()
	if done, err := adjust(ctx, l, p, options); done || err != nil {
		return err
	}
	if err := build(ctx, l, p); err != nil {
		return err
	}
	if err := tearDown(l, p); err != nil {
		return fmt.Errorf("clearing what an earlier cluster left: %w", err)
	}
	m, err := prepareMachine(l)
	if err != nil {
		return err
	}
	p.say("starting a cluster on %s", m.nodeIP)
	c := &cluster{layout: l, machine: m, upOptions: options, progress: p}
	if err := c.start(ctx); err != nil {
		return fmt.Errorf("%w\n(logs are in %s; `go run ./hack/cluster down` cleans up)", err, l.dir("log"))
	}
	if err := c.info().Save(); err != nil {
		return err
	}
	p.say("up in %s", time.Since(begin).Round(100*time.Millisecond))
	printUsage(l, p)
	return nil
}

// adjust handles a cluster of this clone that is up and healthy: it changes what can be changed while it runs. It is
// not done if the cluster must be started anew.
func adjust(ctx context.Context, l layout, p *progress, options upOptions) (done bool, err error) {
	have, err := info.Load(l.dir())
	if err != nil {
		return false, nil //nolint:nilerr // No cluster, or none whose start was completed.
	}
	record, err := readActive()
	if err != nil {
		return false, err
	}
	c := &cluster{layout: l, machine: machine{nodeIP: have.NodeIP}, upOptions: options, progress: p}
	switch reason := c.unusable(ctx, have); {
	case record.Root != l.root:
		return false, nil
	case reason != nil:
		p.say("the earlier cluster cannot be used (%v): starting anew", reason)
		return false, nil
	case have.Configs != configDigest():
		p.say("the cluster is up with the configs of another version of this launcher: starting anew")
		return false, nil
	case have.RealNode != options.realNode:
		p.say("the cluster is up with other options: starting anew")
		return false, nil
	}
	client, err := adminClient(l)
	if err != nil {
		return false, err
	}
	if have.ControllerQPS != options.controllerQPS {
		if err := c.restartControllerManager(ctx); err != nil {
			return false, err
		}
	}
	if have.FakeNodes != options.fakeNodes {
		if err := c.setFakeNodes(ctx, client); err != nil {
			return false, err
		}
	}
	if *have == *c.info() {
		p.say("the cluster is already up and healthy")
		return true, nil
	}
	p.say("the cluster was up; changed what was asked for")
	return true, c.info().Save()
}

// unusable says why a cluster that was started does not work now; nil means that it does.
func (c *cluster) unusable(ctx context.Context, have *info.Cluster) error {
	for _, name := range componentNames(have) {
		if !running(c.layout, name) {
			return fmt.Errorf("%s does not run", name)
		}
	}
	if err := c.apiServer().ready(ctx); err != nil {
		return err
	}
	client, err := adminClient(c.layout)
	if err != nil || !have.RealNode {
		return err
	}
	return nodeIsReady(ctx, client, nodeName)
}

// componentNames are the programs that a cluster must have running.
func componentNames(have *info.Cluster) []string {
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", hostpathProvisioner}
	if have.RealNode {
		names = append(names, "containerd", "kubelet", "kube-proxy", "kube-router")
	}
	if have.FakeNodes > 0 {
		names = append(names, "kwok")
	}
	return names
}

func (c *cluster) info() *info.Cluster {
	return &info.Cluster{
		Dir:           c.dir(),
		NodeIP:        c.nodeIP,
		Server:        c.server(),
		Etcd:          etcdURL,
		EtcdForPods:   c.etcdPodURL(),
		PodCIDR:       podCIDR,
		FakePodCIDR:   fakePodCIDR,
		ServiceCIDR:   serviceCIDR,
		RealNode:      c.realNode,
		NodeName:      nodeName,
		FakeNodes:     c.fakeNodes,
		ControllerQPS: c.controllerQPS,

		OtherHandler:     otherHandler,
		OtherHandlerRoot: filepath.Join(otherRuncRoot(), containerdNamespace),
		Configs:          configDigest(),
	}
}

// prepareMachine records the new cluster, makes its folders and finds the machine's address.
func prepareMachine(l layout) (machine, error) {
	if err := l.makeDirs(); err != nil {
		return machine{}, err
	}
	if err := (active{Root: l.root, Sysctls: readSysctls()}).write(); err != nil {
		return machine{}, err
	}
	m, err := findMachine()
	if err != nil {
		return machine{}, err
	}
	return m, checkPorts(m.nodeIP)
}

// start starts every component in the order of their needs.
func (c *cluster) start(ctx context.Context) error {
	if err := c.closeUplinks(); err != nil {
		return err
	}
	if err := writePKI(c.layout, c.nodeIP); err != nil {
		return err
	}
	if err := writeKubeconfigs(c.layout, c.server()); err != nil {
		return err
	}
	if err := c.startAndAwait(ctx, c.etcd(), c.apiServer()); err != nil {
		return err
	}
	client, err := adminClient(c.layout)
	if err != nil {
		return err
	}
	if err := installStorage(ctx, client); err != nil {
		return err
	}
	if err := c.startAndAwait(ctx, c.controllerManager(), c.scheduler(), c.provisioner()); err != nil {
		return err
	}
	if c.realNode {
		if err := c.startNode(ctx, client); err != nil {
			return err
		}
	}
	if c.fakeNodes > 0 {
		if err := c.setFakeNodes(ctx, client); err != nil {
			return err
		}
	}
	return c.progress.step("default ServiceAccount", func() error { return awaitServiceAccount(ctx, client) })
}

// startNode starts what the real node needs and waits until it takes pods.
func (c *cluster) startNode(ctx context.Context, client kubernetes.Interface) error {
	if err := c.writePodNetwork(); err != nil {
		return err
	}
	if err := allowForwarding(); err != nil {
		return err
	}
	containerd, err := c.containerd()
	if err != nil {
		return err
	}
	kubelet, err := c.kubelet()
	if err != nil {
		return err
	}
	kubeProxy, err := c.kubeProxy()
	if err != nil {
		return err
	}
	if err := c.startAndAwait(ctx, containerd); err != nil {
		return err
	}
	if err := importImage(c.layout, c.bin(pauseTar)); err != nil {
		return err
	}
	if err := c.startAndAwait(ctx, kubelet, kubeProxy, c.kubeRouter()); err != nil {
		return err
	}
	return c.progress.step("node "+nodeName, func() error {
		return poll(ctx, func(ctx context.Context) (bool, error) {
			err := nodeIsReady(ctx, client, nodeName)
			return err == nil, err
		})
	})
}

// awaitServiceAccount waits for what every pod needs and a controller makes: the default ServiceAccount and the CA.
func awaitServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		_, err = client.CoreV1().ConfigMaps(corev1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil, err
	})
}

// printUsage tells how to use the cluster.
func printUsage(l layout, p *progress) {
	p.say(`
use it:    export KUBECONFIG=%s
           %s get nodes
images:    go run ./hack/cluster load <image.tar>   (see hack/image; nothing can be pulled)
for tests: %s
logs:      %s
end it:    go run ./hack/cluster down`, l.adminKubeconfig(), l.bin("kubectl"), l.dir(info.File), l.dir("log"))
}
