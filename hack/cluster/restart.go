package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/altairalabs/omnia-sandboxes/hack/cluster/info"
)

// killTimeout is how long the kernel may take to clear away what was killed.
const killTimeout = 10 * time.Second

// kill ends one program of a cluster that is up, as a crash would: it is not asked.
func kill(l layout, p *progress, name string) error {
	c, err := clusterOf(l, p, name)
	if err != nil {
		return err
	}
	program, ok := recorded(c.layout, name)
	if !ok || !program.alive() {
		return fmt.Errorf("%s does not run", name)
	}
	return p.step("kill "+name, func() error {
		if err := syscall.Kill(program.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		if !waitFor(killTimeout, func() bool { return !program.alive() }) {
			return errors.New("it did not end after SIGKILL: see the kernel's log (dmesg)")
		}
		return nil
	})
}

// startAgain starts one program of a cluster that is up, after kill or when it died, and waits until it is ready. One that
// runs is left alone.
func startAgain(ctx context.Context, l layout, p *progress, name string) error {
	c, err := clusterOf(l, p, name)
	if err != nil {
		return err
	}
	if running(c.layout, name) {
		p.say("%s runs", name)
		return nil
	}
	part, err := c.part(name)
	if err != nil {
		return err
	}
	return c.startAndAwait(ctx, part)
}

// clusterOf is the cluster that has a program of this name, as it was started.
func clusterOf(l layout, p *progress, name string) (*cluster, error) {
	// A second working tree of a repository has the first one's cluster by a link; programs are started by their own paths.
	dir, err := filepath.EvalSymlinks(l.dir())
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w (run `go run ./hack/cluster up` first)", err)
	}
	have, err := info.Load(dir)
	if err != nil {
		return nil, err
	}
	if names := componentNames(have); !slices.Contains(names, name) {
		return nil, fmt.Errorf("%q is no program of this cluster, which has %s", name, strings.Join(names, ", "))
	}
	return &cluster{
		layout: layout{root: filepath.Dir(dir)}, machine: machine{nodeIP: have.NodeIP}, progress: p,
		upOptions: upOptions{realNode: have.RealNode, fakeNodes: have.FakeNodes, controllerQPS: have.ControllerQPS},
	}, nil
}

// part is a component by its name.
func (c *cluster) part(name string) (component, error) {
	switch name {
	case "etcd":
		return c.etcd(), nil
	case "kube-apiserver":
		return c.apiServer(), nil
	case "kube-controller-manager":
		return c.controllerManager(), nil
	case "kube-scheduler":
		return c.scheduler(), nil
	case hostpathProvisioner:
		return c.provisioner(), nil
	case "containerd":
		return c.containerd()
	case "kubelet":
		return c.kubelet()
	case "kube-proxy":
		return c.kubeProxy()
	case "kube-router":
		return c.kubeRouter(), nil
	case "kwok":
		return c.kwok()
	}
	return component{}, fmt.Errorf("%q is no program that can be started by itself", name)
}
