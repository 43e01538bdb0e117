package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want upOptions
		err  error
	}{
		"up without flags: a real node only": {args: []string{"up"}, want: upOptions{realNode: true}},
		"up with all flags": {
			args: []string{"up", "--real-node=false", "--fake-nodes=3", "--controller-qps=100"},
			want: upOptions{fakeNodes: 3, controllerQPS: 100},
		},
		"help is not an error of the user":        {args: []string{"--help"}, err: flag.ErrHelp},
		"help after a command":                    {args: []string{"up", "-h"}, err: flag.ErrHelp},
		"nothing":                                 {args: nil, err: errUsage},
		"unknown command":                         {args: []string{"upp"}, err: errUsage},
		"unknown flag":                            {args: []string{"up", "--nodes=1"}, err: errUsage},
		"a flag of up given to down":              {args: []string{"down", "--fake-nodes=1"}, err: errUsage},
		"an argument where none is taken":         {args: []string{"up", "3"}, err: errUsage},
		"a boolean with a blank before its value": {args: []string{"up", "--real-node", "false"}, err: errUsage},
		"negative number of nodes":                {args: []string{"up", "--fake-nodes=-1"}, err: errUsage},
		"too many nodes":                          {args: []string{"up", "--fake-nodes=100000"}, err: errUsage},
		"negative rate":                           {args: []string{"up", "--controller-qps=-1"}, err: errUsage},
		"load without a tarball":                  {args: []string{"load"}, err: errUsage},
		"kill without a program":                  {args: []string{"kill"}, err: errUsage},
		"start of two programs":                   {args: []string{"start", "etcd", "kubelet"}, err: errUsage},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(c.args)
			if !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
				t.Fatalf("error = %v, want %v", err, c.err)
			}
			if err == nil && got.up != c.want {
				t.Errorf("options = %+v, want %+v", got.up, c.want)
			}
		})
	}
}

func TestParseLoad_KeepsTarballs(t *testing.T) {
	got, err := parse([]string{"load", "a.tar", "b.tar"})
	if err != nil || !slices.Equal(got.images, []string{"a.tar", "b.tar"}) {
		t.Errorf("images = %q, error = %v", got.images, err)
	}
}

func TestParseKill_KeepsTheProgram(t *testing.T) {
	got, err := parse([]string{"kill", "etcd"})
	if err != nil || got.name != "kill" || got.program != "etcd" {
		t.Errorf("command = %+v, error = %v", got, err)
	}
}

func TestKubernetesVersion_IsWhatTheModuleRequires(t *testing.T) {
	mod, err := os.ReadFile("../tools/kubernetes/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "k8s.io/kubernetes "+kubernetesVersion) {
		t.Errorf("hack/tools/kubernetes/go.mod does not require k8s.io/kubernetes %s: change kubernetesVersion too", kubernetesVersion)
	}
}

func TestUpToDate(t *testing.T) {
	for name, c := range map[string]struct {
		binaryAge time.Duration
		want      bool
	}{
		"binary newer than the module": {binaryAge: 0, want: true},
		"module changed since":         {binaryAge: 2 * time.Hour, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			l := layout{root: t.TempDir()}
			modified := time.Now().Add(-time.Hour)
			module := l.toolModule("kwok")
			for file, age := range map[string]time.Time{
				filepath.Join(module, "go.mod"): modified,
				filepath.Join(module, "go.sum"): modified,
				l.bin("kwok"):                   time.Now().Add(-c.binaryAge),
			} {
				writeFile(t, file, "")
				if err := os.Chtimes(file, age, age); err != nil {
					t.Fatal(err)
				}
			}
			if got := upToDate(l, tool{name: "kwok", module: "kwok"}); got != c.want {
				t.Errorf("upToDate = %v, want %v", got, c.want)
			}
		})
	}
	if upToDate(layout{root: t.TempDir()}, tool{name: "kwok", module: "kwok"}) {
		t.Error("a binary that does not exist is up to date")
	}
}

func TestMissingPackages_OnlyThoseNotFound(t *testing.T) {
	missing := missingPackages(func(pattern string) bool {
		return !strings.Contains(pattern, "runc") && !strings.HasSuffix(pattern, "/ip")
	})
	if !slices.Equal(missing, []string{"iproute2", "runc"}) {
		t.Errorf("missing = %q", missing)
	}
}

func TestClear_LeavesThePrograms(t *testing.T) {
	l := layout{root: t.TempDir()}
	writeFile(t, l.bin("etcd"), "program")
	writeFile(t, l.state("etcd/member/wal"), "data")
	writeFile(t, l.dir("cluster.json"), "{}")
	if err := l.clear(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(l.dir())
	if err != nil || len(entries) != 1 || entries[0].Name() != "bin" {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := (layout{root: t.TempDir()}).clear(); err != nil {
		t.Errorf("clearing where nothing is: %v", err)
	}
}

func TestKubeletDir_SocketsFit(t *testing.T) {
	for _, root := range []string{"/src/clone", "/tmp/" + strings.Repeat("deep/", 30) + "clone"} {
		socket := layout{root: root}.kubeletDir() + "/pod-resources/kubelet.sock"
		if len(socket) > 107 {
			t.Errorf("%s has %d bytes", socket, len(socket))
		}
	}
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
