// Package flat says whether what was followed over a soak stayed flat: memory, goroutines, watches, descriptors, queues, etcd's
// size. A process is compared with itself alone, and only with what it was in the same role, since a leader holds more. It
// refuses to read anything, and to know what was played.
package flat

import (
	"cmp"
	"slices"
	"time"
)

// Sample is what was read at one time.
type Sample struct {
	// At is when, since the begin of the load.
	At time.Duration
	// Server is whose figures these are, by its index, Life which of its processes it was, from 1, and Leads whether that ran
	// the controllers. Of what there is only once they are 0.
	Server, Life int
	Leads        bool
	// Values are the figures, by the quantity's name.
	Values map[string]float64
}

// Fault is something that happened to the servers, by the kind that it is of.
type Fault struct {
	At   time.Duration
	Kind string
}

// Record is what was seen of a soak.
type Record struct {
	// Full is from when on the load was full, and Until when it ended. What was read before or after is shown, not judged.
	Full, Until time.Duration
	// Settle is how long a process, or a new leader, may take to fill its caches.
	Settle time.Duration
	// Servers are the samples of the servers, and Whole those of what there is once, each in the order of time.
	Servers, Whole []Sample
	// Faults are in the order of time.
	Faults []Fault
}

// stretch is what was read of one process in one role. It may have been out of that role in between.
type stretch struct {
	server, life int
	leads        bool
	points       []Point
}

// stretches gives a quantity's points of each process in each role, in the order of servers and lives, without those in
// which nothing can be expected to be flat.
func (r *Record) stretches(quantity string) []*stretch {
	type process struct{ server, life int }
	type role struct {
		process
		leads bool
	}
	type spell struct {
		leads bool
		since time.Duration
	}
	now := map[process]spell{}
	found := map[role]*stretch{}
	var all []*stretch
	for _, s := range r.Servers {
		who := process{s.Server, s.Life}
		current, seen := now[who]
		if !seen || current.leads != s.Leads {
			current = spell{s.Leads, s.At}
			now[who] = current
		}
		value, read := s.Values[quantity]
		if !read || s.At-current.since < r.Settle || s.At < r.Full || s.At > r.Until {
			continue
		}
		of := found[role{who, s.Leads}]
		if of == nil {
			of = &stretch{server: s.Server, life: s.Life, leads: s.Leads}
			found[role{who, s.Leads}] = of
			all = append(all, of)
		}
		of.points = append(of.points, Point{s.At, value})
	}
	slices.SortStableFunc(all, func(a, b *stretch) int {
		return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.life, b.life))
	})
	return all
}

// whole gives the points of a quantity that there is once.
func (r *Record) whole(quantity string) []Point {
	var points []Point
	for _, s := range r.Whole {
		if value, read := s.Values[quantity]; read && s.At >= r.Full && s.At <= r.Until {
			points = append(points, Point{s.At, value})
		}
	}
	return points
}

func long(points []Point) time.Duration {
	if len(points) == 0 {
		return 0
	}
	return points[len(points)-1].At - points[0].At
}
