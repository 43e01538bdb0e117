package framework

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// killGrace bounds the wait for a process that was killed.
	killGrace = 10 * time.Second

	logTail = 4 << 10
)

// running is a server that was started.
type running interface {
	ended() bool
	// why is why it ended, once it has.
	why() error
	// signal has it end, and waits for that.
	signal(sig syscall.Signal, grace time.Duration) error
	pid() int
}

var _ running = &process{}

// process is a child of ours.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // why it ended; read after done
}

// spawn starts a program with its output in a log file. It ends with its parent, however that ends.
func spawn(log, program string, args ...string) (*process, error) {
	return spawnWith(&syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}, log, program, args...)
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

func (p *process) why() error { return p.err }

func (p *process) pid() int { return p.cmd.Process.Pid }

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

// tail is the end of a log.
func tail(log string) string {
	file, err := os.Open(log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	if size, err := file.Seek(0, io.SeekEnd); err == nil {
		_, _ = file.Seek(max(0, size-logTail), io.SeekStart)
	}
	data, _ := io.ReadAll(file) // What could be read helps; the rest does not matter in a message.
	return string(data)
}
