package framework

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// RunServer runs one server of these flags until ctx ends.
type RunServer func(ctx context.Context, args []string) error

// inProcess is a server that runs inside the test's own process.
type inProcess struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	err    error         // why it ended; read after done
}

var _ running = &inProcess{}

func startInProcess(run RunServer, args []string) *inProcess {
	ctx, cancel := context.WithCancel(context.Background())
	s := &inProcess{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = run(ctx, args)
	}()
	return s
}

func (s *inProcess) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *inProcess) why() error { return s.err }

func (s *inProcess) pid() int { return syscall.Getpid() }

// signal ends it in good order, whatever the signal: it cannot be killed by itself.
func (s *inProcess) signal(sig syscall.Signal, grace time.Duration) error {
	s.cancel()
	select {
	case <-s.done:
		return s.err
	case <-time.After(grace):
		return fmt.Errorf("a server in this process did not end within %s of %s", grace, sig)
	}
}
