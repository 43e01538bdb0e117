package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/altairalabs/omnia-sandboxes/hack/cluster/info"
)

// Addresses of the cluster. They are private to the machine: nothing routes to them from elsewhere.
const (
	podCIDR     = "10.244.0.0/16"
	podGateway  = "10.244.0.1"
	fakePodCIDR = "10.245.0.0/16"
	serviceCIDR = "10.96.0.0/16"
	// apiServiceIP is the first of serviceCIDR: kube-apiserver gives it to the Service "kubernetes".
	apiServiceIP = "10.96.0.1"
	// ownNodeIP is the address of last resort, for a machine that has none but loopback.
	ownNodeIP = "10.243.0.1"
)

// outsideCIDRs are the ranges of RFC 5737 but 192.0.2.0/24: a machine may have its own address there.
var outsideCIDRs = []string{"198.51.100.0/24", "203.0.113.0/24"}

// Ports that the cluster listens on. All but apiServerPort, kubeletPort and etcdPort are on loopback alone.
const (
	etcdPort              = 2379
	etcdPeerPort          = 2380
	apiServerPort         = 6443
	kwokPort              = 10247
	kubeletHealthPort     = 10248
	kubeProxyMetricsPort  = 10249
	kubeletPort           = 10250
	kubeProxyHealthPort   = 10256
	controllerManagerPort = 10257
	schedulerPort         = 10259
)

const (
	// machineDir holds what must be found again from any clone, or must have a short path: the record of the active
	// cluster, and the sockets and run-time state of containerd. A Unix socket's path has at most 107 bytes.
	machineDir = "/run/omnia-cluster"
	// lockFile keeps two launchers from working at once. It lies beside machineDir, since down removes that.
	lockFile = "/run/omnia-cluster.lock"

	nodeName  = "real-0"
	bridge    = info.Bridge
	dummyLink = "omnia0"
)

// layout says where things lie in one clone of the repository.
type layout struct{ root string }

// dir is a path in the cluster's folder.
func (l layout) dir(elem ...string) string {
	return filepath.Join(append([]string{l.root, ".cluster"}, elem...)...)
}

func (l layout) bin(name string) string        { return l.dir("bin", name) }
func (l layout) pki(name string) string        { return l.dir("pki", name) }
func (l layout) config(name string) string     { return l.dir("etc", name) }
func (l layout) state(name string) string      { return l.dir("state", name) }
func (l layout) kubeconfig(name string) string { return l.dir("etc", name+".kubeconfig") }
func (l layout) adminKubeconfig() string       { return l.dir("admin.kubeconfig") }

// kubeletDir is the kubelet's root. It makes sockets in there, so a deeply nested clone needs a shorter one.
func (l layout) kubeletDir() string {
	const longestSocket = "/pod-resources/kubelet.sock"
	if dir := l.state("kubelet"); len(dir)+len(longestSocket) <= 107 {
		return dir
	}
	return filepath.Join(machineDir, "kubelet")
}

func containerdSocket() string { return filepath.Join(machineDir, "containerd.sock") }

// check tells whether the launcher runs where it should.
func (l layout) check() error {
	data, err := os.ReadFile(filepath.Join(l.root, "go.mod"))
	if err != nil || !strings.HasPrefix(string(data), "module github.com/altairalabs/omnia-sandboxes\n") {
		return fmt.Errorf("%s is not the repository's root: change there first, then `go run ./hack/cluster …`", l.root)
	}
	return nil
}

// makeDirs creates the folders that programs expect to exist.
func (l layout) makeDirs() error {
	for _, dir := range []string{"bin", "etc", "etc/cni", "log", "pki", "run", "state", "state/volumes"} {
		if err := os.MkdirAll(l.dir(dir), 0o755); err != nil {
			return err
		}
	}
	return os.MkdirAll(machineDir, 0o755)
}

// clear removes everything in the cluster's folder but the built programs.
func (l layout) clear() error {
	entries, err := os.ReadDir(l.dir())
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == "bin" {
			continue
		}
		if err := os.RemoveAll(l.dir(entry.Name())); err != nil {
			return fmt.Errorf("clearing the cluster's folder: %w", err)
		}
	}
	return nil
}
