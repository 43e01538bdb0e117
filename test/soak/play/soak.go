// Package play plays a soak on the local cluster, with servers of its own: sessions that come and go, claims that only
// stand, and servers that end and come back. It reads all the while what the servers hold, and at the end what is left. It
// refuses to say whether that is flat, which package flat does, and to bring up a cluster.
package play

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/report"
	"github.com/altairalabs/omnia-sandboxes/test/soak/flat"
	"github.com/altairalabs/omnia-sandboxes/test/soak/plan"
)

const (
	// servers are as many as the documentation advises.
	servers = 3
	// fullAfter is when the load is full: the first sessions have ended, and the first sandboxes that were abandoned are gone.
	fullAfter = 5 * time.Minute
	// settles is how long a server may take to fill its caches, with margin.
	settles = time.Minute
)

// Options say what is played.
type Options struct {
	// During is how long sessions come, and Seed what is drawn.
	During time.Duration
	Seed   uint64
	// Said is told what is being done.
	Said func(string)
}

// Soak is the cluster, the servers, and what was seen of them.
type Soak struct {
	*framework.Cluster
	servers *framework.Servers
	plan    *plan.Plan
	during  time.Duration
	said    func(string)

	namespace        string
	agents, standing *client.Client
	stood            map[types.UID]string // the standing claims' names
	sources          []source             // of each server
	etcd             *etcd
	atRest           map[bool]float64 // a server's goroutines before the load, by whether it leads
	transitions      int32            // of the Lease before the load
	began            time.Time
	// lives count for each server how often it was started and ended, so that an odd number is one that runs.
	lives []atomic.Int64

	mu     sync.Mutex // guards what follows
	record flat.Record
	outcome
}

// Open connects to the local cluster, starts servers and makes what agents need. Close ends it.
func Open(ctx context.Context, o Options) (*Soak, error) {
	drawn, err := plan.New(o.Seed, o.During, servers)
	if err != nil {
		return nil, err
	}
	s := &Soak{plan: drawn, during: o.During, said: o.Said, lives: make([]atomic.Int64, servers), stood: map[types.UID]string{},
		record: flat.Record{Full: min(fullAfter, o.During/6), Until: o.During, Settle: min(settles, o.During/12)}}
	if s.Cluster, err = framework.Open(); err != nil {
		return nil, err
	}
	s.say("starting %d servers", servers)
	if s.servers, err = s.StartServers(ctx, framework.ServerOptions{Replicas: servers}); err != nil {
		return nil, err
	}
	for i := range s.lives {
		s.lives[i].Add(1)
	}
	if err := errors.Join(s.openSources(), s.furnish(ctx)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends what Open started.
func (s *Soak) Close() error {
	return errors.Join(s.clear(), s.etcd.close(), s.servers.Close())
}

func (s *Soak) say(format string, args ...any) {
	if s.said != nil {
		s.said(fmt.Sprintf(format, args...))
	}
}

// Play plays the plan to its end, and gives what was seen of it, also if it came to an end too early.
func (s *Soak) Play(ctx context.Context) ([]report.Section, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	s.say("%d sessions come within %s, and %d faults; server %d is spared", len(s.plan.Sessions), s.during, len(s.plan.Faults), s.plan.Spared)
	s.began = time.Now()
	following, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { s.follow(following) })
	beside.Go(func() { s.clearEvents(following) })

	load, loaded := errgroup.WithContext(ctx)
	load.Go(func() error { return s.serveSessions(loaded) })
	load.Go(func() error { return s.befall(loaded) })
	err := load.Wait()
	var end []report.Row
	if err == nil {
		end, err = s.drain(ctx)
	}
	stop()
	beside.Wait()
	return append(s.sections(end), s.record.Sections()...), err
}

// prepare plays a session through, reads what servers hold at rest, and makes the claims that stand.
func (s *Soak) prepare(ctx context.Context) error {
	if err := s.session(ctx, plan.Session{Name: "first", Asks: []time.Duration{0}}); err != nil {
		return fmt.Errorf("a first session: %w", err)
	}
	if err := s.gone(ctx); err != nil {
		return err
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	s.say("%d claims come to stand", plan.Standing)
	return s.stand(ctx)
}

// pause lets time pass, for that is what a session does.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
