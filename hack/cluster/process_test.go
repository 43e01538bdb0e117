package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const tail = " 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 "
	for name, c := range map[string]struct {
		stat  string
		ended bool
		start uint64
		fails bool
	}{
		"running":                               {stat: "7 (kubelet) S" + tail + "9 0 1234 99", start: 1234},
		"name with blanks and parentheses":      {stat: "7 (a) b (c) R" + tail + "1 0 55 99", start: 55},
		"zombie":                                {stat: "7 (etcd) Z" + tail + "1 0 1234 99", ended: true, start: 1234},
		"zombie whose threads still hold files": {stat: "7 (etcd) Z" + tail + "4 0 1234 99", start: 1234},
		"cut short":                             {stat: "7 (etcd) S 1 7", fails: true},
		"not a status":                          {stat: "", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			ended, start, err := parseStat([]byte(c.stat))
			if (err != nil) != c.fails {
				t.Fatalf("error = %v", err)
			}
			if ended != c.ended || start != c.start {
				t.Errorf("ended, start = %v, %d; want %v, %d", ended, start, c.ended, c.start)
			}
		})
	}
}

func TestAlive_OnlyTheVeryProcess(t *testing.T) {
	me, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !me.alive() {
		t.Error("this process is not alive")
	}
	recycled := me
	recycled.StartTime--
	if recycled.alive() {
		t.Error("a process that started at another time passes for the recorded one")
	}
	otherBoot := me
	otherBoot.BootID = "another"
	if otherBoot.alive() {
		t.Error("a process of another boot passes for the recorded one")
	}
}

func TestStopAll_RecycledPidIsLeftAlone(t *testing.T) {
	victim := exec.Command("sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	now, err := identify(victim.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	recycled := now
	recycled.StartTime--
	if err := stopAll([]process{recycled}); err != nil {
		t.Fatal(err)
	}
	if !now.alive() {
		t.Fatal("a process that only has a recorded pid was ended")
	}
	if err := stopAll([]process{now}); err != nil {
		t.Fatal(err)
	}
	if now.alive() {
		t.Error("the recorded process still runs")
	}
}

func TestStart_TheProgramGetsNoneOfTheCallersFiles(t *testing.T) {
	l := layout{root: t.TempDir()}
	for _, dir := range []string{"log", "run"} {
		if err := os.MkdirAll(l.dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	held := filepath.Join(t.TempDir(), "lock")
	fd, err := syscall.Open(held, syscall.O_CREAT|syscall.O_RDWR, 0o600) // As a shell opens it: to be inherited.
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := start(l, "sleep", "/bin/sleep", "60"); err != nil {
		t.Fatal(err)
	}
	p, ok := recorded(l, "sleep")
	if !ok {
		t.Fatal("it is not recorded")
	}
	defer func() { _ = stopAll([]process{p}) }()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID))
	if err != nil || len(files) == 0 {
		t.Fatalf("files = %q, %v", files, err)
	}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == held {
			t.Errorf("it has %s open", held)
		}
	}
}

func TestRecorded_UnreadableIsNone(t *testing.T) {
	l := layout{root: t.TempDir()}
	for _, content := range []string{"", "12", `{"pid":-1}`, "not json"} {
		writeFile(t, l.pidFile("etcd"), content)
		if p, ok := recorded(l, "etcd"); ok {
			t.Errorf("%q gives %+v", content, p)
		}
	}
	data, err := json.Marshal(process{PID: 5, StartTime: 6, BootID: "b"})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, l.pidFile("etcd"), string(data))
	if p, ok := recorded(l, "etcd"); !ok || p != (process{5, 6, "b"}) {
		t.Errorf("recorded = %+v, %v", p, ok)
	}
}

func TestIsComponent(t *testing.T) {
	l := layout{root: "/clone"}
	for executable, want := range map[string]bool{
		"/clone/.cluster/bin/containerd-shim-runc-v2":             true,
		"/clone/.cluster/bin/etcd (deleted)":                      true,
		"/clone/.cluster/bin/kubectl":                             false,
		"/usr/bin/etcd":                                           false,
		"/other/.cluster/bin/etcd":                                false,
		"/clone/.cluster/state/containerd/some/.cluster/bin/etcd": false,
	} {
		if got := isComponent(l, executable); got != want {
			t.Errorf("isComponent(%s) = %v", executable, got)
		}
	}
}

func TestWaitFor_StopsAtTheLimit(t *testing.T) {
	if waitFor(30*time.Millisecond, func() bool { return false }) {
		t.Error("waited for what never comes, successfully")
	}
}
