// Package plan draws what a soak plays: which sessions come and what each does, and what befalls the servers. The same seed
// draws the same plan. It refuses to play it, and to know how long anything takes.
package plan

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/measure"
)

const (
	// Shortest is the least for which there is a plan, and Longest the most: the agents' tokens live for 12 hours.
	Shortest, Longest = time.Minute, 11 * time.Hour
	// Standing is how many claims stand all the time that nobody uses.
	Standing = 100
	// MostHandles is how many sandboxes a session has at most.
	MostHandles = 3
	// IdleTimeout is after how long a sandbox that was abandoned goes. It is short, so that how many stand is soon steady, and
	// long enough for a touch to be late: what a touch writes may be half of it old, and the next comes touchTo later.
	IdleTimeout = 90 * time.Second

	// sessionsPerSecond come, with some two sandboxes each. It is a small part of what two cores serve: a soak is to last, and
	// not to measure.
	sessionsPerSecond = 0.25
	// A session asks for its next sandbox after at most askWithin, holds all of them for from holdFrom to holdTo, touches each
	// once every touchFrom to touchTo, and at the end leaves abandoned of a hundred sessions without a word.
	askWithin          = 10 * time.Second
	holdFrom, holdTo   = 20 * time.Second, 60 * time.Second
	touchFrom, touchTo = 8 * time.Second, 15 * time.Second
	abandoned          = 20
	restFrom, restTo   = 2 * time.Minute, 5 * time.Minute // between two faults
	longestDown        = 30 * time.Second
	leasesTaken        = 20 // of a hundred faults
	leastFaults        = 3  // in a soak too short for restTo

	// Series of numbers beside that of the arrivals, which has the seed itself.
	sessionsSeed, faultsSeed = 1 << 32, 2 << 32
)

// Plan is what is played.
type Plan struct {
	// Sessions come at their times, whether or not earlier ones have ended.
	Sessions []Session
	// Faults befall the servers, one after the other.
	Faults []Fault
	// Spared is the server that is never ended. It is what a leak has all the time to show in, and who is left when another is
	// down.
	Spared int
}

// Session is one conversation of an agent.
type Session struct {
	// At is when it comes, since the begin.
	At time.Duration
	// Name is its ID.
	Name string
	// Asks are its sandboxes, by how long after the one before it asks for each.
	Asks []time.Duration
	// Hold is how long it has all of them, and Touch how often it touches each.
	Hold, Touch time.Duration
	// Abandoned says that it releases nothing.
	Abandoned bool
}

// Kind is what befalls a server, as a person reads it.
type Kind string

// Kinds of faults.
const (
	Terminated Kind = "server ended by SIGTERM"
	Killed     Kind = "server ended by SIGKILL"
	// LeaseTaken is that somebody else holds the Lease for once: the leader builds its controllers again, in the same process.
	LeaseTaken Kind = "Lease taken from the leader"
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{Terminated, Killed, LeaseTaken} }

// Fault is one thing that befalls the servers.
type Fault struct {
	// At is when, since the begin.
	At   time.Duration
	Kind Kind
	// Server is who is ended, and Down how long it stays so. They mean nothing where the Lease is taken.
	Server int
	Down   time.Duration
}

// New draws a plan for so many servers.
func New(seed uint64, during time.Duration, servers int) (*Plan, error) {
	if err := Check(during); err != nil {
		return nil, err
	}
	if servers < 2 {
		return nil, fmt.Errorf("a soak of %d servers: one is always left, so give it 2 at least", servers)
	}
	p := &Plan{}
	p.drawSessions(seed, during)
	p.drawFaults(seed, during, servers)
	return p, nil
}

// Check says whether there is a plan for so long.
func Check(during time.Duration) error {
	if during < Shortest || during > Longest {
		return fmt.Errorf("a soak of %s: give it %s at least, and %s at most", during, Shortest, Longest)
	}
	return nil
}

// drawSessions uses another series of numbers than drawFaults, so that a change of one leaves the other as it was.
func (p *Plan) drawSessions(seed uint64, during time.Duration) {
	random := numbers(seed, sessionsSeed)
	for i, at := range measure.Poisson(seed, sessionsPerSecond, during) {
		s := Session{At: at, Name: fmt.Sprintf("session-%d", i), Asks: []time.Duration{0}}
		for range random.IntN(MostHandles) {
			s.Asks = append(s.Asks, between(random, 0, askWithin))
		}
		s.Hold, s.Touch = between(random, holdFrom, holdTo), between(random, touchFrom, touchTo)
		s.Abandoned = random.IntN(100) < abandoned
		p.Sessions = append(p.Sessions, s)
	}
}

// drawFaults leaves the last minutes in peace, so that each server has come back when the load ends.
func (p *Plan) drawFaults(seed uint64, during time.Duration, servers int) {
	random := numbers(seed, faultsSeed)
	p.Spared = random.IntN(servers)
	from, to := min(restFrom, during/(2*leastFaults)), min(restTo, during/leastFaults)
	for at := between(random, from, to); at < during-from; at += between(random, from, to) {
		f := Fault{At: at, Kind: LeaseTaken}
		if random.IntN(100) >= leasesTaken {
			f.Kind = []Kind{Terminated, Killed}[random.IntN(2)]
			f.Server = (p.Spared + 1 + random.IntN(servers-1)) % servers
			f.Down = between(random, 0, min(longestDown, from/2))
		}
		p.Faults = append(p.Faults, f)
	}
}

func numbers(seed, series uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, series)) //nolint:gosec // a plan is no secret, and is to be the same again
}

func between(random *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(random.Int64N(int64(to-from)))
}
