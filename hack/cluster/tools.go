package main

// tool is a program that `build` makes from a module of hack/tools.
type tool struct {
	// name of the binary.
	name string
	// module is the folder in hack/tools whose go.mod fixes the version.
	module string
	// pkg is the main package.
	pkg string
	// args are further arguments of `go build`.
	args []string
}

const (
	stripped = "-ldflags=-s -w"
	// kubernetesVersion must be what hack/tools/kubernetes/go.mod requires; a test compares them. The linker writes it
	// into the programs, which otherwise call themselves v0.0.0.
	kubernetesVersion = "v1.37.2"
	kubernetesStamp   = stripped +
		" -X k8s.io/component-base/version.gitVersion=" + kubernetesVersion +
		" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
	// containerdTags leave out snapshotters that need C libraries or kernel modules.
	containerdTags = "-tags=no_btrfs no_zfs no_devmapper"
)

// tools is everything that comes from another project.
var tools = []tool{
	{"etcd", "kubernetes", "go.etcd.io/etcd/server/v3", []string{stripped}},
	{"kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", []string{kubernetesStamp}},
	{"kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", []string{kubernetesStamp}},
	{"kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", []string{kubernetesStamp}},
	{"kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl", []string{kubernetesStamp}},
	{"kubelet", "kubernetes", "k8s.io/kubernetes/cmd/kubelet", []string{kubernetesStamp}},
	{"kube-proxy", "kubernetes", "k8s.io/kubernetes/cmd/kube-proxy", []string{kubernetesStamp}},
	{"containerd", "containerd", "github.com/containerd/containerd/v2/cmd/containerd", []string{stripped, containerdTags}},
	{"containerd-shim-runc-v2", "containerd", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", []string{stripped, containerdTags}},
	{"ctr", "containerd", "github.com/containerd/containerd/v2/cmd/ctr", []string{stripped, containerdTags}},
	{"kube-router", "kube-router", "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router", []string{stripped}},
	{"kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", []string{stripped}},
}

// hostpathProvisioner is the one program of the cluster that is our own.
const hostpathProvisioner = "hostpath-provisioner"
