package flat

import (
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// Names of quantities, under which their figures stand in a Sample.
const (
	Resident    = "resident memory"
	Heap        = "live heap"
	Goroutines  = "goroutines"
	Watches     = "watches served"
	Descriptors = "open file descriptors"
	Queue       = "work queued"
	InUse       = "etcd's size in use"
	Keys        = "keys under the servers' prefix"
	HostWatches = "watches that kube-apiserver serves"
)

const (
	// lastingLife is the shortest of which memory is judged. The runtime gives memory back minutes after it was needed.
	lastingLife = 24 * time.Minute
	// anyLife is the shortest of which counts are judged, nearly every one.
	anyLife = 90 * time.Second
	// steadyStore is the shortest time over which keys are: how many claims stand follows the arrivals' chance.
	steadyStore = 10 * time.Minute
)

// Quantity is something that has to be flat.
type Quantity struct {
	Name string
	Unit report.Unit
	Bound
	// id names its section.
	id string
	// whole says that there is only one of it, and not one for each server.
	whole bool
}

// Quantities are all that is judged, in the order in which it is told.
func Quantities() []Quantity {
	return []Quantity{
		{Name: Resident, id: "resident", Unit: report.MiB, Bound: Bound{Slack: 8, Least: lastingLife,
			Why: "What a server holds of the machine's memory. 8 MiB more are let pass, since the runtime asks for memory in pieces of 4 MiB."}},
		{Name: Heap, id: "heap", Unit: report.MiB, Bound: Bound{Slack: 1, Least: lastingLife,
			Why: "What is alive after a collection that was asked for. 1 MiB more is let pass: some thirty claims' worth, by which the number that stands may differ."}},
		{Name: Goroutines, id: "goroutines", Bound: Bound{Slack: 60, Least: anyLife,
			Why: "60 more are let pass: a watch has some five and an acquire that waits has two or more, and both come to whoever is there when another server ends."}},
		{Name: Watches, id: "watches", Bound: Bound{Slack: 8, Least: anyLife,
			Why: "Watches of our group that a server serves, its own controllers' among them. 8 more are let pass: those of kube-controller-manager come to whoever is there when another ends."}},
		{Name: Descriptors, id: "descriptors", Bound: Bound{Slack: 12, Least: anyLife,
			Why: "Connections above all. 12 more are let pass: kube-apiserver opens some to whoever is there when another server ends."}},
		{Name: Queue, id: "queue", Bound: Bound{Slack: 10, Least: anyLife,
			Why: "Objects that the controllers have yet to look at. It is 0 most of the time; 10 more are let pass, for what comes in at once."}},
		{Name: InUse, id: "etcd", Unit: report.MiB, whole: true, Bound: Bound{Slack: 2, Least: lastingLife,
			Why: "What etcd holds without what it has free, of kube-apiserver's and of ours. History is compacted every five minutes, so it rises and falls; Events, which Kubernetes keeps for an hour, are removed every minute. 2 MiB more are let pass: what a third's share of such a rise may differ by."}},
		{Name: Keys, id: "keys", whole: true, Bound: Bound{Slack: 20, Least: steadyStore,
			Why: "Claims, and little else. 20 more are let pass: by so many the number that stands differs by the arrivals' chance."}},
		{Name: HostWatches, id: "host-watches", whole: true, Bound: Bound{Slack: 10, Least: steadyStore,
			Why: "Those of our controllers are among them: a leader that is built again in its process must end its earlier ones. 10 more are let pass: a leader that was killed leaves its own until their connections are given up."}},
	}
}
