package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// testCluster is a cluster in a folder of its own, with nothing started.
func testCluster(t *testing.T) *cluster {
	t.Helper()
	l := layout{root: t.TempDir()}
	for _, dir := range []string{"etc/cni", "pki", "state"} {
		if err := os.MkdirAll(l.dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &cluster{layout: l, machine: machine{nodeIP: "192.0.2.7"}, upOptions: upOptions{realNode: true}}
}

// readYAML reads one field of a rendered config.
func readYAML(t *testing.T, file, field string) any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := yaml.UnmarshalStrict(data, &content); err != nil {
		t.Fatal(err)
	}
	return content[field]
}

func TestKubelet_ConfigAndIdentity(t *testing.T) {
	c := testCluster(t)
	part, err := c.kubelet()
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{"--node-ip=192.0.2.7", "--hostname-override=" + nodeName, "--node-labels=sandbox.omnia/node=real"} {
		if !slices.Contains(part.args, arg) {
			t.Errorf("%s is missing in %q", arg, part.args)
		}
	}
	file := c.config("kubelet.yaml")
	if got := readYAML(t, file, "address"); got != "192.0.2.7" {
		t.Errorf("address = %v", got)
	}
	if got := readYAML(t, file, "failCgroupV1"); got != false {
		t.Errorf("failCgroupV1 = %v", got)
	}
}

func TestKubeProxy_UsesNftables(t *testing.T) {
	c := testCluster(t)
	if _, err := c.kubeProxy(); err != nil {
		t.Fatal(err)
	}
	if got := readYAML(t, c.config("kube-proxy.yaml"), "mode"); got != "nftables" {
		t.Errorf("mode = %v", got)
	}
}

func TestPodNetwork_IsJSONWithTheBridge(t *testing.T) {
	c := testCluster(t)
	if err := c.writePodNetwork(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(c.config("cni/10-pods.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Name    string
		Plugins []struct{ Bridge string }
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	if list.Name != podNetwork || list.Plugins[0].Bridge != bridge {
		t.Errorf("network = %+v", list)
	}
}

func TestContainerd_SocketsOutsideOfTheClone(t *testing.T) {
	c := testCluster(t)
	if _, err := c.containerd(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(c.config("containerd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`socket_dir = "/run/omnia-cluster/s"`, "restrict_oom_score_adj = true", pauseImage,
		"runtimes.runc-other.options]\nRoot = \"/run/omnia-cluster/runc-other\"\n"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestControllerManager_RateOnlyWhenAsked(t *testing.T) {
	c := testCluster(t)
	isRate := func(arg string) bool { return strings.HasPrefix(arg, "--kube-api-") }
	if slices.ContainsFunc(c.controllerManager().args, isRate) {
		t.Error("Kubernetes' default rate is overridden")
	}
	c.controllerQPS = 100
	if args := c.controllerManager().args; !slices.Contains(args, "--kube-api-qps=100") || !slices.Contains(args, "--kube-api-burst=200") {
		t.Errorf("args = %q", args)
	}
}

func TestKubelet_FindsAVolumeOverItsLimitSoon(t *testing.T) {
	c := testCluster(t)
	if _, err := c.kubelet(); err != nil {
		t.Fatal(err)
	}
	if got := readYAML(t, c.config("kubelet.yaml"), "volumeStatsAggPeriod"); got != "10s" {
		t.Errorf("volumeStatsAggPeriod = %v", got)
	}
}

func TestConfigDigest_IsOfTheConfigsContents(t *testing.T) {
	if got := configDigest(); got != configDigest() || len(got) != 64 || got == hex.EncodeToString(sha256.New().Sum(nil)) {
		t.Errorf("digest = %q", got)
	}
}

func TestRender_MissingValueIsAnError(t *testing.T) {
	if _, err := render("kubelet.yaml", map[string]any{}); err == nil {
		t.Error("a config with holes was rendered")
	}
}

func TestIsSurplus(t *testing.T) {
	for name, want := range map[string]bool{"fake-1": false, "fake-2": true, "fake-10": true, "fake-x": false, "real-0": false} {
		if got := isSurplus(name, 2); got != want {
			t.Errorf("isSurplus(%s, 2) = %v", name, got)
		}
	}
}

func TestFakeNode_TaintedAndRoomy(t *testing.T) {
	node := fakeNode(3)
	if node.Name != "fake-3" || node.Labels["type"] != "kwok" {
		t.Errorf("node = %s, labels %v", node.Name, node.Labels)
	}
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].ToString() != "kwok.x-k8s.io/node=fake:NoSchedule" {
		t.Errorf("taints = %v", node.Spec.Taints)
	}
	if pods := node.Status.Allocatable.Pods().Value(); pods != 10000 {
		t.Errorf("pods = %d", pods)
	}
}
