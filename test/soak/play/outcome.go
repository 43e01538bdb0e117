package play

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/report"
	"github.com/altairalabs/omnia-sandboxes/test/soak/plan"
)

// failuresTold are as many failed sessions as the report quotes.
const failuresTold = 10

// outcome is what became of the sessions and of the readings.
type outcome struct {
	sessions         int
	failures         []string
	waits            measure.Times // of acquires
	readings, missed int
	keysAtRest       int64
	changed          int32 // hands, the Lease did
}

// ended notes the end of a session; err is nil if it had what it asked for to its end.
func (s *Soak) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	if err != nil {
		s.failures = append(s.failures, err.Error())
	}
}

// waited notes how long an acquire took.
func (s *Soak) waited(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = append(s.waits, d)
}

// sections tell the load and the end.
func (s *Soak) sections(end []report.Row) []report.Section {
	s.mu.Lock()
	defer s.mu.Unlock()
	load := report.Section{ID: "load", Title: "The load",
		About: fmt.Sprintf("Sessions come by themselves for %s, each for one to %d sandboxes; %d claims more only stand. Server %d was never ended.", s.during, plan.MostHandles, plan.Standing, s.plan.Spared),
		Rows: []report.Row{
			{What: "sessions", Measure: "ended", Value: float64(s.sessions)},
			{What: "sessions", Measure: "failed", Value: float64(len(s.failures)), Target: report.AtMost(0), Note: quoted(s.failures)},
			{What: "acquire", Measure: "p50", Unit: report.Milliseconds, Value: measure.Milliseconds(s.waits.At(0.5)), Samples: len(s.waits)},
			{What: "acquire", Measure: "p99", Unit: report.Milliseconds, Value: measure.Milliseconds(s.waits.At(0.99)), Samples: len(s.waits)},
			{What: "acquire", Measure: "longest", Unit: report.Milliseconds, Value: measure.Milliseconds(s.waits.At(1)), Samples: len(s.waits)},
		}}
	for _, kind := range plan.Kinds() {
		count := 0
		for _, f := range s.record.Faults {
			if f.Kind == string(kind) {
				count++
			}
		}
		load.Rows = append(load.Rows, report.Row{What: string(kind), Measure: "count", Value: float64(count)})
	}
	load.Rows = append(load.Rows,
		report.Row{What: "the Lease", Measure: "changed hands", Value: float64(s.changed)},
		report.Row{What: "readings", Measure: "missing", Value: float64(s.missed), Samples: s.readings})
	last := report.Section{ID: "end", Title: "The end", Rows: end,
		About: "What is there when the sessions have ended, the last sandboxes that were abandoned have gone, and the standing claims were released."}
	if len(end) == 0 {
		last.NotMeasured = "the soak did not come to its end"
	}
	return []report.Section{load, last}
}

// quoted are the first of the failures, in one text.
func quoted(failures []string) string {
	if more := len(failures) - failuresTold; more > 0 {
		return strings.Join(failures[:failuresTold], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(failures, "; ")
}

// names are what a list holds, by kind and name.
func names(list runtime.Object) ([]string, error) {
	var out []string
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		out = append(out, strings.TrimPrefix(fmt.Sprintf("%T", item), "*")+" "+object.GetName())
		return nil
	})
	return out, err
}
