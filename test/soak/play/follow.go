package play

import (
	"context"
	"sync"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/soak/flat"
)

const (
	// followEvery is how often is read, and collectEvery how many readings apart the servers collect their garbage for it: that
	// costs some processor time.
	followEvery  = 10 * time.Second
	collectEvery = 6
	// leastReadings are made in a soak that is short.
	leastReadings = 60
)

// follow reads everything again and again until ctx ends.
func (s *Soak) follow(ctx context.Context) {
	ticker := time.NewTicker(min(followEvery, s.during/leastReadings))
	defer ticker.Stop()
	for reading := 0; ; reading++ {
		s.readAll(ctx, reading%collectEvery == 0)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// readAll reads everything once.
func (s *Soak) readAll(ctx context.Context, collect bool) {
	at := time.Since(s.began)
	var all sync.WaitGroup
	for server := range s.sources {
		all.Go(func() { s.readServer(ctx, server, at, collect) })
	}
	all.Go(func() {
		values, err := s.readWhole(ctx)
		s.noteReading(ctx, err, func() { s.record.Whole = append(s.record.Whole, flat.Sample{At: at, Values: values}) })
	})
	all.Wait()
}

// readServer reads a server that runs. What was read while it ended or started tells nothing of either life.
func (s *Soak) readServer(ctx context.Context, server int, at time.Duration, collect bool) {
	life := s.lives[server].Load()
	if life%2 == 0 {
		return
	}
	values, leads, err := s.sources[server].read(ctx, collect)
	if s.lives[server].Load() != life {
		return
	}
	s.noteReading(ctx, err, func() {
		s.record.Servers = append(s.record.Servers, flat.Sample{At: at, Server: server, Life: int(life/2) + 1, Leads: leads, Values: values})
	})
}

// noteReading keeps what was read, or counts that it could not be.
func (s *Soak) noteReading(ctx context.Context, err error, keep func()) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readings++
	if err == nil {
		keep()
		return
	}
	s.missed++
	s.say("a reading is missing: %v", err)
}
