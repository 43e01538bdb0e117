package play

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/soak/plan"
)

const (
	// releaseWithin is how long an agent goes on to release what it had, once a second.
	releaseWithin = time.Minute
	releaseEvery  = time.Second
)

// serveSessions has the sessions come at their times, and waits for the end of all. One that fails is told, and ends nothing
// else.
func (s *Soak) serveSessions(ctx context.Context) error {
	arrivals := make([]time.Duration, 0, len(s.plan.Sessions))
	for _, of := range s.plan.Sessions {
		arrivals = append(arrivals, of.At)
	}
	_, err := measure.Open(ctx, arrivals, func(ctx context.Context, i int) error {
		of := s.plan.Sessions[i]
		err := s.session(ctx, of)
		if ctx.Err() != nil {
			return ctx.Err() // it was called off
		}
		if err != nil {
			err = fmt.Errorf("%s, %s after the begin: %w", of.Name, time.Since(s.began).Round(time.Second), err)
			s.say("FAILED: %v", err)
		}
		s.ended(err)
		return nil
	})
	return err
}

// session plays one session as an agent does: it asks for its sandboxes, keeps them, and releases them unless it leaves without
// a word.
func (s *Soak) session(ctx context.Context, of plan.Session) error {
	using, done := context.WithCancel(ctx)
	defer done()
	var kept errgroup.Group
	var has []*client.Sandbox
	for number, after := range of.Asks {
		if err := pause(ctx, after); err != nil {
			return err
		}
		asked := time.Now()
		sandbox, err := s.agents.Acquire(ctx, acquireOf(agentsRuntime, of.Name, number))
		if err != nil {
			return err
		}
		s.waited(time.Since(asked))
		has = append(has, sandbox)
		if of.Touch > 0 {
			kept.Go(func() error { return sandbox.KeepAlive(using, of.Touch) })
		}
	}
	if err := pause(ctx, of.Hold); err != nil {
		return err
	}
	done()
	if err := kept.Wait(); err != nil {
		return fmt.Errorf("keeping a sandbox that is in use: %w", err)
	}
	if of.Abandoned {
		return nil
	}
	errs := make([]error, 0, len(has))
	for _, sandbox := range has {
		errs = append(errs, release(ctx, sandbox))
	}
	return errors.Join(errs...)
}

// release releases a sandbox, and tries again for a while, as an agent does whose server ends.
func release(ctx context.Context, sandbox *client.Sandbox) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, releaseEvery, releaseWithin, true, func(ctx context.Context) (bool, error) {
		last = sandbox.Release(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("releasing sandbox %s: %w (%w)", sandbox.Name, err, last)
	}
	return nil
}
