// Package report is what a run of the benchmark or of the soak found, and the forms in which it is told: a table for the
// terminal, JSON for other programs, and one HTML file with plots that opens without a network. It refuses to measure
// anything.
package report

import (
	"math"
	"time"
)

// Run is one run.
type Run struct {
	// Title is what was run, for instance "Benchmark".
	Title string `json:"title"`
	// Began is when the run began, by the machine's clock, and Took how long it was.
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"tookNanoseconds"`
	// Form is which of its forms that was, for instance "short form".
	Form string `json:"form"`
	// Machine is what it ran on, as names and values in the order in which they are told.
	Machine []Fact `json:"machine"`
	// Sections are what was measured, in the order in which it was.
	Sections []Section `json:"sections"`
}

// Fact is a name with its value, for instance "CPUs" and "2".
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Section is a scenario beside its floor, or several that belong together.
type Section struct {
	// ID names the section in flags and files: lower case, digits and dashes.
	ID string `json:"id"`
	// Title is what was measured, for a person.
	Title string `json:"title"`
	// About says how, in a sentence or two; it may be empty.
	About string `json:"about,omitempty"`
	// Rows are the figures.
	Rows []Row `json:"rows,omitempty"`
	// Plots show them.
	Plots []Plot `json:"plots,omitempty"`
	// NotMeasured is why there are no figures; empty if there are.
	NotMeasured string `json:"notMeasured,omitempty"`
}

// Unit is what a figure counts.
type Unit string

// Units of figures. Times are in milliseconds throughout.
const (
	Milliseconds Unit = "ms"
	PerSecond    Unit = "1/s"
	Seconds      Unit = "s"
	KiB          Unit = "KiB"
	MiB          Unit = "MiB"
	Count        Unit = ""
)

// Row is one figure, beside its floor where there is one.
type Row struct {
	// What is what was measured, for instance "acquire, aggregated, 32 callers", and Measure which of its figures this is: p50,
	// p99, throughput, writes of a claim.
	What    string `json:"what"`
	Measure string `json:"measure"`
	Unit    Unit   `json:"unit,omitempty"`
	// First is what the figure was in the beginning, for one that is followed over time. Nil if that says nothing.
	First *float64 `json:"first,omitempty"`
	// Value is the figure, and Samples from how many measurements it is; 0 if that says nothing.
	Value   float64 `json:"value"`
	Samples int     `json:"samples,omitempty"`
	// Floor is the same figure of what is compared with, in the same run, and FloorName what that is. Nil if there is none.
	Floor     *float64 `json:"floor,omitempty"`
	FloorName string   `json:"floorName,omitempty"`
	// Target is what is to be reached: by Value/Floor where there is a floor, by Value else. Nil if there is none.
	Target *Target `json:"target,omitempty"`
	// Note is what a reader must know about this figure; it may be empty.
	Note string `json:"note,omitempty"`
}

// Target bounds a figure from one side.
type Target struct {
	// AtMost and AtLeast are the bounds; exactly one is set.
	AtMost  *float64 `json:"atMost,omitempty"`
	AtLeast *float64 `json:"atLeast,omitempty"`
}

// AtMost is a target that a figure must not exceed.
func AtMost(bound float64) *Target { return &Target{AtMost: &bound} }

// AtLeast is a target that a figure must reach.
func AtLeast(bound float64) *Target { return &Target{AtLeast: &bound} }

// PlotKind is how a plot shows its series.
type PlotKind string

const (
	// Distribution plots Y as what share of the samples, 0 to 1, took X or less. X is on a logarithmic scale.
	Distribution PlotKind = "distribution"
	// Lines plots Y over X, each point marked, X on a logarithmic scale.
	Lines PlotKind = "lines"
	// Timeline plots Y over X, a time since the begin, without marking the points: there are many.
	Timeline PlotKind = "timeline"
	// Bars plots one bar per point, named by the series' Labels, one colour per series.
	Bars PlotKind = "bars"
)

// Plot is a picture of several series.
type Plot struct {
	Kind   PlotKind `json:"kind"`
	Title  string   `json:"title"`
	XLabel string   `json:"xLabel"`
	YLabel string   `json:"yLabel"`
	Series []Series `json:"series"`
	// Marks are moments at which something happened; only for Timeline.
	Marks []Mark `json:"marks,omitempty"`
}

// Mark is something that happened at several moments.
type Mark struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
}

// Series is one line, or one colour of bars.
type Series struct {
	Name string    `json:"name"`
	X    []float64 `json:"x,omitempty"`
	Y    []float64 `json:"y"`
	// Labels name the bars; only for Bars.
	Labels []string `json:"labels,omitempty"`
}

// Ratio is Value over Floor; false if there is no floor, or it is 0.
func (r Row) Ratio() (float64, bool) {
	if r.Floor == nil || *r.Floor == 0 {
		return 0, false
	}
	return r.Value / *r.Floor, true
}

// Within says whether the figure is within its target; known is false where it has none, or cannot be held against it.
func (r Row) Within() (within, known bool) {
	if r.Target == nil {
		return false, false
	}
	figure := r.Value
	if r.Floor != nil {
		ratio, ok := r.Ratio()
		if !ok {
			return false, false
		}
		figure = ratio
	}
	if math.IsNaN(figure) || (r.Target.AtMost == nil && r.Target.AtLeast == nil) {
		return false, false
	}
	return r.Target.met(figure), true
}

// met says whether a figure is on the right side of the bound.
func (t Target) met(figure float64) bool {
	if t.AtMost != nil {
		return figure <= *t.AtMost
	}
	return t.AtLeast != nil && figure >= *t.AtLeast
}
