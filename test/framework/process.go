package framework

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killGrace bounds the wait for a process that was killed.
const killGrace = 10 * time.Second

// ProcessRecord tells a process from a later one with its pid. It is written as hack/cluster writes its own, so that
// `hack/cluster down` ends the demo's server too.
type ProcessRecord struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"startTime"`
	BootID    string `json:"bootID"`
}

// process is a child of ours.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // why it ended; read after done
}

// spawn starts a program with its output in a log file. A process that does not survive ends with its parent, however
// that ends.
func spawn(log string, survive bool, program string, args ...string) (*process, error) {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if !survive {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	return spawnWith(attributes, log, program, args...)
}

func spawnWith(attributes *syscall.SysProcAttr, log, program string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	fmt.Fprintf(out, "+ %s %s\n", program, strings.Join(args, " "))
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = filepath.Dir(log)
	// Nothing of the shell's environment: a proxy named there would get the cluster's traffic.
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + cmd.Dir}
	cmd.SysProcAttr = attributes
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel sends the death signal when the thread ends that started the child, so that thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	return p, nil
}

// ended says whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends a signal and waits for the end. A process that has ended is no error.
func (p *process) signal(sig syscall.Signal, grace time.Duration) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
		return fmt.Errorf("process %d did not end within %s of %s", p.cmd.Process.Pid, grace, sig)
	}
}

// record describes a live process.
func record(pid int) (ProcessRecord, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ProcessRecord{}, err
	}
	// The program's name may hold blanks and parentheses: fields count from the last closing one. The state is the
	// first after it, the start time, field 22 in proc(5), the twentieth.
	const state, startTime = 0, 19
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= startTime || fields[state] == "Z" || fields[state] == "X" {
		return ProcessRecord{}, fmt.Errorf("process %d has ended", pid)
	}
	start, err := strconv.ParseUint(fields[startTime], 10, 64)
	if err != nil {
		return ProcessRecord{}, fmt.Errorf("reading the start time of process %d: %w", pid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ProcessRecord{}, err
	}
	return ProcessRecord{PID: pid, StartTime: start, BootID: strings.TrimSpace(string(boot))}, nil
}

// alive says whether this very process still runs.
func (r ProcessRecord) alive() bool {
	now, err := record(r.PID)
	return err == nil && now == r
}

func writeRecord(file string, pid int) error {
	r, err := record(pid)
	if err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// stopRecorded ends the process that a file records, if it still runs, and removes the file. It says whether one ran.
func stopRecorded(file string, grace time.Duration) (bool, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var r ProcessRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return false, fmt.Errorf("reading %s: %w (end the process by hand and remove the file)", file, err)
	}
	if !r.alive() {
		return false, forget(file)
	}
	for _, step := range []struct {
		sig   syscall.Signal
		grace time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, killGrace}} {
		_ = syscall.Kill(r.PID, step.sig) // It may end in between; the loop finds out.
		for deadline := time.Now().Add(step.grace); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if !r.alive() {
				return true, forget(file)
			}
		}
	}
	return true, fmt.Errorf("process %d of %s does not end", r.PID, file)
}

// forget removes a record, which may be gone by now.
func forget(file string) error {
	if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
