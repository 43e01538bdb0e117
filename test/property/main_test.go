// Package property plays agents, people and time at random against the real registry and controllers, on a real etcd
// and fake nodes, and holds everything that becomes of the claims against the specification. The two servers run inside
// the test's own process, because the test tells them the time. It refuses to look at one case: each package's own
// tests do that.
//
// What it checks is written down anew here, naively, and asks nothing of pkg/lifecycle: else it would check that the
// rules are what they are.
package property

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// defaults are rapid's flags as they suit a test in which each step takes a while. What a run does depends on more than
// its seed, so it is not made smaller once it has failed, and the history that it prints is what to go by.
var defaults = map[string]string{"rapid.checks": "6", "rapid.steps": "60", "rapid.shrinktime": "0s", "rapid.nofailfile": "true"}

var showHistory = flag.Bool("history", false, "show what happened also where no promise was broken")

func TestMain(m *testing.M) {
	for name, value := range defaults {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, "setting", name, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run()) // the command line's flags are read here, and go before
}

func TestClaimsKeepTheirPromises(t *testing.T) {
	cluster := framework.Get(t)
	clock := newPassingClock(t)
	servers := startServers(t, cluster, clock)
	cluster.AwaitCollector(t)
	var failed bool
	rapid.Check(t, func(rt *rapid.T) {
		if failed {
			rt.Fatal("it failed already: its history stands above")
		}
		w := newWorld(t, cluster, servers, clock, rt)
		defer func() {
			failed = rt.Failed() || w.events.firstFault() != ""
			w.end(failed)
		}()
		rt.Repeat(w.actions())
		w.settle(rt, "at the end")
	})
}
