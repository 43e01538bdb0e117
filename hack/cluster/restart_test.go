package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/altairalabs/omnia-sandboxes/hack/cluster/info"
)

// described is a clone whose cluster is described as up.
func described(t *testing.T) layout {
	t.Helper()
	l := layout{root: t.TempDir()}
	for _, dir := range []string{"etc", "log", "run"} {
		if err := os.MkdirAll(l.dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	have := &info.Cluster{Dir: l.dir(), NodeIP: "192.0.2.1", RealNode: true, FakeNodes: 2}
	if err := have.Save(); err != nil {
		t.Fatal(err)
	}
	return l
}

// Whatever must run can be killed and started by its name.
func TestPart_EveryProgramOfACluster(t *testing.T) {
	l := described(t)
	have, err := info.Load(l.dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range componentNames(have) {
		c, err := clusterOf(l, &progress{out: io.Discard}, name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "kwok" {
			continue // It reads its rules from a module that is not downloaded for unit tests.
		}
		part, err := c.part(name)
		if err != nil || part.name != name || part.ready == nil {
			t.Errorf("%s: %+v, %v", name, part, err)
		}
	}
}

func TestClusterOf_UnknownProgram_NamesThoseThatThereAre(t *testing.T) {
	_, err := clusterOf(described(t), &progress{out: io.Discard}, "apiserver")
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver, kube-controller-manager") {
		t.Errorf("error = %v", err)
	}
}

func TestClusterOf_LinkedFolder_IsThatOfItsOwner(t *testing.T) {
	owner, linked := described(t), layout{root: t.TempDir()}
	if err := os.Symlink(owner.dir(), linked.dir()); err != nil {
		t.Fatal(err)
	}
	c, err := clusterOf(linked, &progress{out: io.Discard}, "etcd")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := filepath.EvalSymlinks(owner.root); c.root != got {
		t.Errorf("root = %s, want %s", c.root, got)
	}
}

func TestKill_EndsTheRecordedProcess_StartLeavesOneThatRuns(t *testing.T) {
	l := described(t)
	if err := start(l, "etcd", "/bin/sleep", "60"); err != nil {
		t.Fatal(err)
	}
	p, ok := recorded(l, "etcd")
	if !ok {
		t.Fatal("it is not recorded")
	}
	defer func() { _ = stopAll([]process{p}) }()
	say := &progress{out: io.Discard}
	if err := startAgain(t.Context(), l, say, "etcd"); err != nil || !p.alive() {
		t.Fatalf("starting what runs: %v, alive: %t", err, p.alive())
	}
	if err := kill(l, say, "etcd"); err != nil || p.alive() {
		t.Fatalf("killing: %v, alive: %t", err, p.alive())
	}
	if err := kill(l, say, "etcd"); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("killing what does not run: %v", err)
	}
}
