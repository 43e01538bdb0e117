package scenario

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// timeline is how long after the call each step of several lives came.
type timeline map[step]measure.Times

func (t *timeline) add(began time.Time, steps map[step]time.Time) {
	if *t == nil {
		*t = timeline{}
	}
	for name, at := range steps {
		(*t)[name] = append((*t)[name], at.Sub(began))
	}
}

// stepRows tells the steps in the order in which they came, each with the time since the call and since the step before.
func stepRows(ours, floor *timeline) []report.Row {
	var names []step
	for name := range *ours {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b step) int { return cmp.Compare((*ours)[a].At(0.5), (*ours)[b].At(0.5)) })
	var rows []report.Row
	var before time.Duration
	for _, name := range names {
		at := (*ours)[name].At(0.5)
		row := report.Row{What: string(name), Measure: "p50 since the call", Unit: report.Milliseconds, Value: measure.Milliseconds(at), Samples: len((*ours)[name])}
		if bare := (*floor)[name]; len(bare) > 0 {
			row.Floor, row.FloorName = ptr.To(measure.Milliseconds(bare.At(0.5))), "bare"
		}
		rows = append(rows, row, report.Row{What: string(name), Measure: "p50 after the step before", Unit: report.Milliseconds, Value: measure.Milliseconds(at - before)})
		before = at
	}
	return rows
}
