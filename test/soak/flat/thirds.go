package flat

import (
	"math"
	"slices"
	"time"
)

const (
	// growth is how much more a figure may be, for each minute between the middles of two thirds: 10 % from one third of an
	// hour to the next. A leak of 1 % a minute is twice that.
	growth = 0.10 / 20
	// noise is what may lie between two thirds that are nearer to each other: medians of a quantity that is flat differ, too.
	noise = 0.05
	// fewest are the points of which there are thirds: a median of two is a mean, and one outlier is in it.
	fewest = 9
)

// Point is a figure at a time since the begin.
type Point struct {
	At    time.Duration
	Value float64
}

// Thirds are the medians of the first, the middle and the last third of points, by their number.
type Thirds struct {
	First, Middle, Last float64
	// Apart is the time between the middle third's middle and the last one's.
	Apart time.Duration
	// Points is how many there were in all.
	Points int
}

// ThirdsOf takes the medians of points in the order of time. There are none of too few points.
func ThirdsOf(points []Point) (Thirds, bool) {
	n := len(points)
	if n < fewest {
		return Thirds{}, false
	}
	first, middle, last := points[:n/3], points[n/3:2*n/3], points[2*n/3:]
	return Thirds{First: median(first), Middle: median(middle), Last: median(last),
		Apart: last[len(last)/2].At - middle[len(middle)/2].At, Points: n}, true
}

func median(points []Point) float64 {
	values := make([]float64, 0, len(points))
	for _, p := range points {
		values = append(values, p.Value)
	}
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}

// Bound says how flat a quantity has to be: the last third against the middle one. The first third is where it may still
// grow: caches fill, and connections open.
type Bound struct {
	// Slack is by how much the last third may be larger in any case, in the quantity's unit.
	Slack float64
	// Least is how long a stretch is that can be judged.
	Least time.Duration
	// Why says it to a reader of the report.
	Why string
}

// most is how many times the middle third the last one may be, in thousandths, upwards.
func (b Bound) most(t Thirds) float64 {
	ratio := 1 + max(noise, growth*t.Apart.Minutes())
	if t.Middle > 0 {
		ratio = max(ratio, 1+b.Slack/t.Middle)
	}
	return math.Ceil(ratio*1000) / 1000
}

// excess is how much of what it may be a figure is: above 1 the bound is broken. Of what was 0 the slack alone counts.
func (b Bound) excess(t Thirds) float64 {
	if t.Middle > 0 {
		return t.Last / t.Middle / b.most(t)
	}
	if t.Last <= b.Slack {
		return 0
	}
	return math.Inf(1)
}
