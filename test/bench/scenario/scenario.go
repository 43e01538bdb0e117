// Package scenario plays what the benchmark measures: agents that acquire, touch and release sandboxes, each beside the
// floor of the same path, taken in turns. It gives sections of figures; it refuses to print them, and to say whether they
// are good but by the targets beside them.
package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// Scenario is one thing that can be measured by itself.
type Scenario struct {
	// ID names it in flags; it is the first of its sections' too.
	ID string
	// About is what it measures, in a few words.
	About string
	// own says that it needs servers that the benchmark itself runs: it ends them, or goes past the aggregator.
	own bool
	// full says that only the long form plays it, unless it is asked for by its ID.
	full bool
	// play measures.
	play func(ctx context.Context, b *Bench) ([]report.Section, error)
}

// All are the scenarios in the order in which they are played. What kube-controller-manager's garbage collector has to know
// our group for comes later than what it does not, since it learns of a new group some half a minute late.
func All() []Scenario {
	return []Scenario{
		{ID: "bound", About: "acquire of a Bound claim beside a GET of it: serial and with many callers, aggregated and direct", play: playBound},
		{ID: "touch", About: "touch within and past its throttle beside a GET and a status patch", play: playTouch},
		{ID: "waiters", About: "what a hundred acquires that wait cost others, and what each costs the server", play: playWaiters},
		{ID: "fresh", About: "a new claim to Bound and its release to all gone beside its three objects made bare, step by step", play: playFresh},
		{ID: "pod", About: "what a Deployment costs against a bare Pod", full: true, play: playPod},
		{ID: "queue", About: "a freed slot to the next waiter Bound with a thousand claims Queued", play: playQueue},
		{ID: "standing", About: "many at once and Poisson loads; the serial ones, memory, idleness, start and failover with many claims standing", own: true, play: playStanding},
		{ID: "default", About: "new claims in parallel at kube-controller-manager's default rate", own: true, full: true, play: playDefault},
	}
}

// IDs are the scenarios' names.
func IDs() []string {
	var out []string
	for _, s := range All() {
		out = append(out, s.ID)
	}
	return out
}

// Play plays the scenarios whose IDs are given, or all, and gives the sections of those that were played to their end.
func (b *Bench) Play(ctx context.Context, only []string) ([]report.Section, error) {
	var out []report.Section
	for _, s := range All() {
		if len(only) > 0 && !slices.Contains(only, s.ID) {
			continue
		}
		if s.full && !b.full && len(only) == 0 {
			out = append(out, report.Section{ID: s.ID, Title: s.About, NotMeasured: "the short form leaves it out: ask for it with -only=" + s.ID + ", or for the long form"})
			continue
		}
		if s.own && b.Servers == nil {
			out = append(out, report.Section{ID: s.ID, Title: s.About, NotMeasured: "it needs servers that the benchmark itself starts and ends: run it on the local cluster"})
			continue
		}
		began := time.Now()
		b.say("%-10s %s", s.ID, s.About)
		sections, err := s.play(ctx, b)
		out = append(out, sections...)
		if err != nil {
			return out, fmt.Errorf("%s: %w", s.ID, err)
		}
		b.say("%-10s done in %s", s.ID, time.Since(began).Round(100*time.Millisecond))
	}
	return out, nil
}

// Check gives an error if one of the IDs is no scenario's.
func Check(ids []string) error {
	for _, id := range ids {
		if !slices.Contains(IDs(), id) {
			return fmt.Errorf("there is no scenario %q: choose from %s", id, strings.Join(IDs(), ", "))
		}
	}
	return nil
}
