package scenario

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// targets are what is to be reached at the median and at the 99th percentile; nil where nothing is.
type targets struct{ p50, p99 *report.Target }

// beside gives the rows of something that was measured in turns with its floor.
func beside(what string, ours measure.Times, floorName string, floor measure.Times, to targets) []report.Row {
	var out []report.Row
	for _, q := range []struct {
		name   string
		share  float64
		target *report.Target
	}{{"p50", 0.5, to.p50}, {"p90", 0.9, nil}, {"p99", 0.99, to.p99}} {
		row := report.Row{
			What: what, Measure: q.name, Unit: report.Milliseconds, Samples: len(ours), Target: q.target,
			Value: measure.Milliseconds(ours.At(q.share)), FloorName: floorName,
		}
		if len(floor) > 0 {
			row.Floor = ptr.To(measure.Milliseconds(floor.At(q.share)))
		}
		out = append(out, row)
	}
	return out
}

// alone gives the rows of something that has no floor.
func alone(what string, times measure.Times) []report.Row {
	return beside(what, times, "", nil, targets{})
}

// perSecond is the row of a rate beside its floor.
func perSecond(what string, ours float64, floorName string, floor float64, target *report.Target) report.Row {
	return report.Row{What: what, Measure: "throughput", Unit: report.PerSecond, Value: ours, FloorName: floorName, Floor: &floor, Target: target}
}

// line is a set of times as one line of a plot.
type line struct {
	name  string
	times measure.Times
}

// distribution plots how several sets of times are spread.
func distribution(title string, lines ...line) report.Plot {
	plot := report.Plot{Kind: report.Distribution, Title: title, XLabel: "ms", YLabel: "share of calls"}
	for _, l := range lines {
		series := report.Series{Name: l.name}
		for i := range l.times {
			share := float64(i+1) / float64(len(l.times))
			series.X = append(series.X, measure.Milliseconds(l.times.At(share)))
			series.Y = append(series.Y, share)
		}
		plot.Series = append(plot.Series, series)
	}
	return plot
}

// callersOf words a number of callers.
func callersOf(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}
