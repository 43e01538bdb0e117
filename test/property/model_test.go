package property

import (
	"slices"
	"sync"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

// floor is how long a claim that is not Bound has at least.
const floor = 10 * time.Minute

// model is what the test knows of what it did itself: what its runtimes allow, and what was called.
type model struct {
	clock    passingClock
	runtimes map[string]*allowed
	calls    *calls
	journal  *judge.Journal
}

func (m *model) say(format string, args ...any) { m.journal.Say(m.clock.Now(), format, args...) }

// allowed is what a runtime allows.
type allowed struct {
	concurrent, perSession setting
	idle, grace            time.Duration
}

// patience is how long a claim that is not Bound may go untouched.
func (a *allowed) patience() time.Duration { return max(a.idle, floor) }

// setting is a number that is changed, which some server may not know yet.
type setting struct {
	mu     sync.Mutex
	values []valued
}

type valued struct {
	value int
	until time.Time // by the machine's clock; zero for the one that holds
}

func (s *setting) set(value int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.values {
		if s.values[i].until.IsZero() {
			s.values[i].until = time.Now()
		}
	}
	s.values = append(s.values, valued{value: value})
}

// current is the newest value.
func (s *setting) current() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[len(s.values)-1].value
}

// known are the values that a server may go by.
func (s *setting) known(within time.Duration) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []int
	for _, v := range s.values {
		if v.until.IsZero() || time.Since(v.until) < within {
			out = append(out, v.value)
		}
	}
	return out
}

func (s *setting) most(within time.Duration) int  { return slices.Max(s.known(within)) }
func (s *setting) least(within time.Duration) int { return slices.Min(s.known(within)) }
