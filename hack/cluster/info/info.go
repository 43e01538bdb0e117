// Package info reads what `hack/cluster up` wrote about the local cluster, for tests and the demo. It only reads: it
// neither starts a cluster nor checks that one still runs.
package info

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// File is the name of the file in the cluster's folder.
	File = "cluster.json"
	// Bridge is the interface by which the real node's pods are linked to this machine.
	Bridge = "cni0"
	// OutsideTable is the number of the routing table, and the priority of the rule to it, by which a test leads what pods
	// send to a host that it plays. A test that is killed leaves the rule to whoever comes next.
	OutsideTable = 4169
)

// Cluster describes a local cluster that is up.
type Cluster struct {
	// Dir is the cluster's folder (.cluster in the repository's root). Not stored; Load sets it.
	Dir string `json:"-"`
	// NodeIP is the machine's own address; kube-apiserver and the kubelet listen there, and a pod can reach a host
	// process that does too.
	NodeIP string `json:"nodeIP"`
	// Server is kube-apiserver's URL.
	Server string `json:"server"`
	// Etcd is etcd's URL. It asks for a client certificate of the CA in pki/etcd-ca.crt.
	Etcd string `json:"etcd"`
	// EtcdForPods is the same etcd's URL as a pod reaches it.
	EtcdForPods string `json:"etcdForPods"`
	// PodCIDR is where the real node's pods get their addresses.
	PodCIDR string `json:"podCIDR"`
	// FakePodCIDR is where the pods of fake nodes seem to have theirs. Nothing answers there.
	FakePodCIDR string `json:"fakePodCIDR"`
	// ServiceCIDR is where Services get their ClusterIPs.
	ServiceCIDR string `json:"serviceCIDR"`
	// RealNode says whether there is a node that runs containers.
	RealNode bool `json:"realNode"`
	// NodeName is the real node's name.
	NodeName string `json:"nodeName"`
	// OtherHandler is the second runtime handler that a RuntimeClass may name, and OtherHandlerRoot is the folder in which
	// the containers that it runs are recorded, by their ids.
	OtherHandler     string `json:"otherHandler"`
	OtherHandlerRoot string `json:"otherHandlerRoot"`
	// Configs stands for the configs that the cluster's programs were started with.
	Configs string `json:"configs"`
	// FakeNodes is the number of nodes KWOK plays.
	FakeNodes int `json:"fakeNodes"`
	// ControllerQPS is kube-controller-manager's --kube-api-qps; 0 means Kubernetes' own default.
	ControllerQPS int `json:"controllerQPS"`
}

// Load reads the cluster's description. dir is the cluster's folder, .cluster in the repository's root.
func Load(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no cluster in %s: run `go run ./hack/cluster up` first: %w", dir, err)
	}
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("reading %s: %w (run `go run ./hack/cluster down`, then up)", filepath.Join(dir, File), err)
	}
	return c, nil
}

// Save writes the description into the cluster's folder, whole or not at all.
func (c *Cluster) Save() error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(c.Dir, File+".tmp")
	if err := os.WriteFile(tmp, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(c.Dir, File))
}

// Kubeconfig is the path of the cluster-admin's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "admin.kubeconfig") }

// PKI is the path of a certificate or key, for instance PKI("etcd-client.crt").
func (c *Cluster) PKI(name string) string { return filepath.Join(c.Dir, "pki", name) }

// Bin is the path of one of the cluster's binaries, for instance Bin("kubectl").
func (c *Cluster) Bin(name string) string { return filepath.Join(c.Dir, "bin", name) }
