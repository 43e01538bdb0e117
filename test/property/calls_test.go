package property

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

// call is one request of an agent or a person.
type call struct {
	verb verb
	key  key       // of an acquire, and of a release of a session, which has no handle
	name string    // of what names a claim
	uid  types.UID // of what names a claim
	wait time.Duration
	must bool // mustExist

	server int
	// began and ended are by the machine's clock, and asked by the test's.
	began, ended, asked time.Time
	cancel              context.CancelFunc
	hungUp              time.Time
	// disturbed says that its server was being ended meanwhile.
	disturbed bool
	// what else its session held while it ran, at least and at most: all claims, and those of the same sandbox.
	fewest, most held
	counted      bool
}

// held is what a session holds.
type held struct{ claims, instances int }

type verb string

const (
	acquire verb = "acquire"
	touch   verb = "touch"
	release verb = "release"
	cancel  verb = "cancel"
	remove  verb = "delete"
)

// calls are all the calls that were made.
type calls struct {
	mu     sync.Mutex
	made   []*call
	ending map[int]bool // servers that are being, or were, ended
}

func newCalls() *calls { return &calls{ending: map[int]bool{}} }

func (c *calls) begin(one *call, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.began, one.asked = time.Now(), now
	one.disturbed = c.ending[one.server]
	c.made = append(c.made, one)
}

func (c *calls) end(one *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.ended = time.Now()
	one.cancel()
}

// hangUp has the caller go away.
func (c *calls) hangUp(one *call) {
	c.mu.Lock()
	one.hungUp = time.Now()
	c.mu.Unlock()
	one.cancel()
}

// stopping marks the calls that a server's end may cut off.
func (c *calls) stopping(server int, ending bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending[server] = ending
	for _, one := range c.made {
		if one.server == server && one.ended.IsZero() {
			one.disturbed = true
		}
	}
}

// any says whether there is a call of this kind.
func (c *calls) any(is func(*call) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.made, is)
}

// underWay are the calls that have not ended.
func (c *calls) underWay() []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*call
	for _, one := range c.made {
		if one.ended.IsZero() {
			out = append(out, one)
		}
	}
	return out
}

// lately says that a call ran at some time since then, as far as an event's time tells.
func (one *call) lately(since time.Time) bool {
	return one.ended.IsZero() || one.ended.After(since.Add(-judge.Lag))
}

// about says whether a release, or its cancel, is about this claim.
func (one *call) about(s *seen) bool {
	if one.name != "" {
		return one.name == s.Name && (one.uid == "" || one.uid == s.UID)
	}
	return one.key.Runtime == s.RuntimeName() && one.key.Session == s.Spec.SessionID
}
