package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

const (
	startTurns = 2
	// askAgain is how soon a server that does not answer yet is asked again.
	askAgain = 5 * time.Millisecond
	// askSeldom is the same where nothing is measured.
	askSeldom = 100 * time.Millisecond
)

// started is how long servers took to be of use again.
type started struct {
	// answers is from a process' start until it answers an acquire of a Bound claim, and bound until it has made a new one Bound.
	answers, bound measure.Times
	// handedOver is from the leader's SIGTERM, and takenOver from its SIGKILL, until another server has made a new claim Bound.
	handedOver, takenOver measure.Times
}

// restart ends and starts servers with the claims that stand. A server that is alone leads; of two, the one that was there first.
func (f *field) restart(ctx context.Context, at *atSize) error {
	leader := f.Servers.List[0]
	for range startTurns {
		if err := leader.Stop(); err != nil {
			return err
		}
		if err := f.startAlone(ctx, leader, at); err != nil {
			return err
		}
	}
	if !f.full {
		return nil // a failover is some half a minute
	}
	if len(f.Servers.List) == 1 {
		if _, err := f.Servers.Add(ctx); err != nil {
			return err
		}
	} else if err := errors.Join(f.Servers.List[1].Start(ctx), f.Servers.List[1].AddEndpoint(ctx)); err != nil {
		return err
	}
	follower := f.Servers.List[1]
	took, err := f.failover(ctx, follower, leader.Stop)
	if err != nil {
		return err
	}
	at.started.handedOver = append(at.started.handedOver, took)
	if err := leader.Start(ctx); err != nil {
		return err
	}
	if took, err = f.failover(ctx, leader, follower.Kill); err != nil {
		return err
	}
	at.started.takenOver = append(at.started.takenOver, took)
	return follower.RemoveEndpoint(ctx) // else the aggregator goes on to try it
}

// startAlone starts the only server.
func (f *field) startAlone(ctx context.Context, server *framework.Server, at *atSize) error {
	agent, err := versioned.NewForConfig(server.Direct(f.agentConfig))
	if err != nil {
		return err
	}
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	if err := f.untilAcquired(ctx, agent, f.standingSession(0)); err != nil {
		return err
	}
	at.started.answers = append(at.started.answers, time.Since(began))
	session := fmt.Sprintf("start-%d", time.Now().UnixNano())
	if err := f.untilAcquired(ctx, agent, session); err != nil {
		return err
	}
	at.started.bound = append(at.started.bound, time.Since(began))
	return errors.Join(<-ended, f.untilEnded(ctx, session))
}

// failover ends the leader, and gives how long it takes until the other server has made a new claim Bound.
func (f *field) failover(ctx context.Context, other *framework.Server, end func() error) (time.Duration, error) {
	agent, err := versioned.NewForConfig(other.Direct(f.agentConfig))
	if err != nil {
		return 0, err
	}
	session := fmt.Sprintf("failover-%d", time.Now().UnixNano())
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	// The claim must be the new leader's work, so it is made once the old one can no longer do it.
	select {
	case err := <-ended:
		if err != nil {
			return 0, err
		}
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := f.untilAcquired(ctx, agent, session); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, f.untilEnded(ctx, session)
}

// untilAcquired acquires as soon as the server can be asked.
func (f *field) untilAcquired(ctx context.Context, agent versioned.Interface, session string) error {
	return untilServed(ctx, askAgain, func(ctx context.Context) error {
		_, err := f.acquire(ctx, agent, session, f.place())
		return err
	})
}

// untilEnded ends a session as soon as the group is served: the aggregator takes a while to hear of a server that has gone.
func (f *field) untilEnded(ctx context.Context, session string) error {
	return untilServed(ctx, askSeldom, func(ctx context.Context) error { return f.end(ctx, session) })
}

// untilServed does what a server must serve, again and again until it does.
func untilServed(ctx context.Context, every time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		if pause(ctx, every) != nil {
			return fmt.Errorf("no server came to be of use: %w", err)
		}
	}
}

// startSection tells it, each size held against the first.
func startSection(sizes []atSize) report.Section {
	section := report.Section{ID: "start", Title: "Start and failover",
		About: fmt.Sprintf("From the start of the only server's process, or the end of the leader's, with so many claims standing; the floor is the same with %d. A leader that is killed holds its Lease for 15 s more.", sizes[0].claims)}
	for _, thing := range []struct {
		name string
		of   func(started) measure.Times
	}{
		{"start to the first answer", func(s started) measure.Times { return s.answers }},
		{"start to a new claim Bound", func(s started) measure.Times { return s.bound }},
		{"leader ended by SIGTERM to a new claim Bound", func(s started) measure.Times { return s.handedOver }},
		{"leader ended by SIGKILL to a new claim Bound", func(s started) measure.Times { return s.takenOver }},
	} {
		section.Rows = append(section.Rows, againstFirst(thing.name, sizes, func(a atSize) measure.Times { return thing.of(a.started) }, report.AtMost(1.2))...)
	}
	return section
}
