package chaos

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// probe is one acquire of a sandbox that stands.
type probe struct {
	agent        int
	began, ended time.Time
	outcome      outcome
}

// probes are all of them.
type probes struct {
	mu   sync.Mutex
	made []probe
}

func (p *probes) add(one probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = append(p.made, one)
}

// since are those that ended since then.
func (p *probes) since(then time.Time) []probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.made), func(one probe) bool { return one.ended.Before(then) })
}

// stretch is how long there was no answer for those who asked.
type stretch struct {
	// whole is all of it, and net what was not kube-apiserver's own failure.
	whole, net time.Duration
}

// longest is the longest stretch in which somebody asked and nobody was served.
func longest(all []probe) stretch {
	slices.SortFunc(all, func(a, b probe) int { return a.ended.Compare(b.ended) })
	var out stretch
	var from time.Time  // when somebody was last served
	var pending []probe // those that ended since, of whatever outcome
	for i, one := range all {
		pending = append(pending, one)
		if one.outcome != served && i < len(all)-1 {
			continue
		}
		begin := slices.MinFunc(pending, func(a, b probe) int { return a.began.Compare(b.began) }).began
		if begin.Before(from) {
			begin = from
		}
		whole := one.ended.Sub(begin)
		out.whole = max(out.whole, whole)
		out.net = max(out.net, whole-unheardWithin(pending, begin, one.ended))
		from, pending = one.ended, nil
	}
	return out
}

// unheardWithin is how much of a time was kube-apiserver's failure: from the beginning of a call that it did not let
// through until it could be asked again.
func unheardWithin(all []probe, begin, end time.Time) time.Duration {
	var failed []probe
	for _, one := range all {
		if one.outcome == unheard {
			failed = append(failed, probe{began: later(one.began, begin), ended: earlier(one.ended.Add(askAgain), end)})
		}
	}
	slices.SortFunc(failed, func(a, b probe) int { return cmp.Or(a.began.Compare(b.began), a.ended.Compare(b.ended)) })
	var sum time.Duration
	covered := begin
	for _, one := range failed {
		if from := later(one.began, covered); one.ended.After(from) {
			sum += one.ended.Sub(from)
			covered = one.ended
		}
	}
	return sum
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// slowest is the longest stretch of any one agent.
func slowest(all []probe) time.Duration {
	by := map[int][]probe{}
	for _, one := range all {
		by[one.agent] = append(by[one.agent], one)
	}
	var out time.Duration
	for _, of := range by {
		out = max(out, longest(of).whole)
	}
	return out
}

func TestLongest(t *testing.T) {
	zero := time.Unix(0, 0)
	at := func(agent int, began, ended time.Duration, what outcome) probe {
		return probe{agent, zero.Add(began * time.Millisecond), zero.Add(ended * time.Millisecond), what}
	}
	for name, c := range map[string]struct {
		probes     []probe
		whole, net time.Duration
		slowest    time.Duration
	}{
		"nobody asked": {},
		"a pause between two calls is no refusal": {
			probes: []probe{at(1, 0, 10, served), at(1, 5000, 5010, served)},
			whole:  10 * time.Millisecond, net: 10 * time.Millisecond, slowest: 10 * time.Millisecond,
		},
		"refused from the first call that failed until one is served": {
			probes: []probe{at(1, 0, 0, served), at(1, 1000, 1000, unserved), at(1, 2000, 2000, unserved), at(1, 3000, 4000, served)},
			whole:  3 * time.Second, net: 3 * time.Second, slowest: 3 * time.Second,
		},
		"one agent is served while another is not": {
			probes: []probe{at(1, 1000, 1000, unserved), at(2, 1500, 2000, served), at(1, 3000, 3000, unserved), at(2, 3500, 4000, served), at(1, 5000, 5000, served)},
			whole:  time.Second, net: time.Second, slowest: 4 * time.Second,
		},
		"what is still refused at the end counts": {
			probes: []probe{at(1, 0, 0, served), at(1, 1000, 2000, unserved), at(1, 2000, 9000, unserved)},
			whole:  8 * time.Second, net: 8 * time.Second, slowest: 8 * time.Second,
		},
		"an answer that hangs while everybody waits is a refusal": {
			probes: []probe{at(1, 0, 7000, served), at(2, 0, 0, served)},
			whole:  7 * time.Second, net: 7 * time.Second, slowest: 7 * time.Second,
		},
		"kube-apiserver's own failure is told apart": {
			probes: []probe{at(1, 0, 0, served), at(1, 1000, 2000, unheard), at(2, 1000, 3000, unheard), at(1, 4000, 4000, unserved), at(1, 5000, 5000, served)},
			whole:  4 * time.Second, net: 2*time.Second - askAgain, slowest: 4 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, stretch{c.whole, c.net}, longest(slices.Clone(c.probes)))
			assert.Equal(t, c.slowest, slowest(c.probes))
		})
	}
}
