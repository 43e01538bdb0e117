package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// firstFile is the first file descriptor after standard error.
const firstFile = 3

// stopGrace is how long a process has to end by itself. State is thrown away anyway, so it is short.
const stopGrace = 3 * time.Second

// process identifies a started program. The pid alone would not do: pids are used again, so the start time and the
// boot that it counts from must match too.
type process struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"startTime"`
	BootID    string `json:"bootID"`
}

// start runs a program in a session of its own, so that it outlives the launcher, with its log and pid in l.
func start(l layout, name string, program string, args ...string) error {
	log, err := os.OpenFile(l.dir("log", name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	fmt.Fprintf(log, "+ %s %s\n", program, strings.Join(args, " "))
	cmd := exec.Command(program, args...)
	cmd.Dir = l.dir("run")
	cmd.Stdout, cmd.Stderr = log, log
	// Nothing of the shell's environment: a proxy named there would get the cluster's traffic.
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + cmd.Dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Nor its open files: a lock that the caller holds would be held for as long as the cluster runs.
	if err := unix.CloseRange(firstFile, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping open files from %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	p, err := identify(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(l.pidFile(name), data, 0o644)
}

func (l layout) pidFile(name string) string { return l.dir("run", name+".pid") }

// recorded reads the process that was started under a name. ok is false if none was.
func recorded(l layout, name string) (p process, ok bool) {
	data, err := os.ReadFile(l.pidFile(name))
	if err != nil {
		return process{}, false
	}
	if err := json.Unmarshal(data, &p); err != nil || p.PID <= 0 {
		return process{}, false
	}
	return p, true
}

// recordedNames lists the names of all started programs.
func recordedNames(l layout) ([]string, error) {
	files, err := filepath.Glob(l.dir("run", "*.pid"))
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".pid"))
	}
	return names, err
}

// running tells whether the program started under a name still runs.
func running(l layout, name string) bool {
	p, ok := recorded(l, name)
	return ok && p.alive()
}

// identify describes a live process.
func identify(pid int) (process, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	ended, startTime, err := parseStat(stat)
	if err != nil {
		return process{}, err
	}
	if ended {
		return process{}, fmt.Errorf("process %d has ended: %w", pid, fs.ErrNotExist)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, err
	}
	return process{PID: pid, StartTime: startTime, BootID: strings.TrimSpace(string(boot))}, nil
}

// parseStat reads from /proc/<pid>/stat whether the process has ended and when it started, in clock ticks since boot.
// The program's name in there may hold blanks and parentheses, so fields count from the last closing one. A zombie has
// ended only with its last thread: until then its files, and so the ports it listened on, stay open.
func parseStat(stat []byte) (ended bool, startTime uint64, err error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return false, 0, fmt.Errorf("process status without a name: %q", stat)
	}
	const state, threads, start = 0, 17, 19 // fields 3, 20 and 22 in proc(5)
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) <= start {
		return false, 0, fmt.Errorf("process status too short: %q", stat)
	}
	startTime, err = strconv.ParseUint(fields[start], 10, 64)
	zombie := fields[state] == "Z" && (fields[threads] == "1" || fields[threads] == "0")
	return zombie || fields[state] == "X", startTime, err
}

// alive tells whether this very process still runs, not another with its pid.
func (p process) alive() bool {
	now, err := identify(p.PID)
	return err == nil && now == p
}

// stopAll ends processes together: asked first, forced after the grace.
func stopAll(processes []process) error {
	for _, p := range processes {
		if p.alive() {
			_ = syscall.Kill(p.PID, syscall.SIGTERM) // It may end in between; the wait below finds out.
		}
	}
	if waitFor(stopGrace, func() bool { return !anyAlive(processes) }) {
		return nil
	}
	for _, p := range processes {
		if p.alive() {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	if !waitFor(10*time.Second, func() bool { return !anyAlive(processes) }) {
		return errors.New("a process did not end after SIGKILL: see the kernel's log (dmesg)")
	}
	return nil
}

func anyAlive(processes []process) bool {
	for _, p := range processes {
		if p.alive() {
			return true
		}
	}
	return false
}

// waitFor looks again and again until done says so; false means that time ran out.
func waitFor(limit time.Duration, done func() bool) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return done()
}
