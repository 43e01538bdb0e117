package property

import (
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// tick is how often the passing clock is moved.
const tick = 20 * time.Millisecond

// passingClock passes as the machine's does, so that what is tried again after a moment is tried again; it leaps when the
// test has it leap, and stands still while the test looks for what must not need time.
type passingClock struct {
	*clocktesting.FakeClock
	still *atomic.Bool
}

var _ clock.WithTicker = passingClock{}

func newPassingClock(t *testing.T) passingClock {
	t.Helper()
	c := passingClock{clocktesting.NewFakeClock(time.Now()), &atomic.Bool{}}
	ended := make(chan struct{})
	go func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case now := <-ticker.C:
				if !c.still.Load() {
					c.Step(now.Sub(last))
				}
				last = now
			case <-ended:
				return
			}
		}
	}()
	t.Cleanup(func() { close(ended) })
	return c
}
