package report

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"
)

// sample has each kind of row, of plot and of section, and text that every form must escape or bring into one line.
func sample() *Run {
	return &Run{
		Title: "Benchmark",
		Began: time.Date(2026, 11, 30, 14, 4, 5, 0, time.UTC), Took: 12*time.Minute + 3*time.Second, Form: "long form",
		Machine: []Fact{{"CPUs", "2 × fast & <cheap>"}, {"Memory", "7.8 GiB"}},
		Sections: []Section{
			{
				ID: "bound", Title: "A Bound sandbox", About: "Both are taken\nin turns.",
				Rows: []Row{
					{What: "acquire, 1 caller", Measure: "p50", Unit: Milliseconds, Value: 3.4567, Samples: 400, Floor: ptr.To(3.0), FloorName: "GET of its claim", Target: AtMost(1.3)},
					{What: "acquire, 1 caller", Measure: "p99", Unit: Milliseconds, Value: 13.04, Samples: 400, Floor: ptr.To(10.0), FloorName: "GET of its claim", Target: AtMost(1.3), Note: "Garbage is\ncollected."},
					{What: "acquire, 1 caller", Measure: "throughput", Unit: PerSecond, Value: 1543.2, Floor: ptr.To(2000.0), FloorName: "GET of its claim", Target: AtLeast(0.7)},
					{What: "waiting", Measure: "writes", Value: 2, Floor: ptr.To(0.0), FloorName: "nobody waits", Target: AtMost(1)},
					{What: "claims_held | all", Measure: "count", Value: 7},
				},
				Plots: []Plot{
					{Kind: Distribution, Title: "Answers <of> both", XLabel: "ms", YLabel: "share", Series: []Series{
						{Name: "a & b", X: []float64{1, 2, 4}, Y: []float64{0.25, 0.5, 1}}, {Name: "floor", X: []float64{1.5}, Y: []float64{1}}}},
					{Kind: Lines, Title: "Throughput", XLabel: "callers", YLabel: "1/s", Series: []Series{{Name: "acquire", X: []float64{1, 8, 32}, Y: []float64{300, 1100, 1543}}}},
				},
			},
			{
				ID: "memory", Title: "Memory", Rows: []Row{{What: "server", Measure: "resident", Unit: MiB, Value: 143.2, Target: AtMost(200)}},
				Plots: []Plot{{Kind: Bars, Title: "Resident", YLabel: "MiB", Series: []Series{
					{Name: "server", Labels: []string{"at rest", "busy"}, Y: []float64{90, 143.2}}, {Name: "etcd", Labels: []string{"busy"}, Y: []float64{60}}}}},
			},
			{ID: "real", Title: "A real node", NotMeasured: "there is none:\nall are fake"},
		},
	}
}

// broken is a place where nothing can be written.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWithin(t *testing.T) {
	floor := ptr.To[float64]
	tests := map[string]struct {
		row           Row
		ratio         float64 // 0: none
		within, known bool
	}{
		"no target":                            {Row{Value: 1}, 0, false, false},
		"no target, but a floor":               {Row{Value: 1, Floor: floor(2)}, 0.5, false, false},
		"at most: below":                       {Row{Value: 1, Target: AtMost(2)}, 0, true, true},
		"at most: just so":                     {Row{Value: 2, Target: AtMost(2)}, 0, true, true},
		"at most: above":                       {Row{Value: 2.1, Target: AtMost(2)}, 0, false, true},
		"at least: below":                      {Row{Value: 1.9, Target: AtLeast(2)}, 0, false, true},
		"at least: just so":                    {Row{Value: 2, Target: AtLeast(2)}, 0, true, true},
		"at least: above":                      {Row{Value: 3, Target: AtLeast(2)}, 0, true, true},
		"at least 0 is a bound as well":        {Row{Value: -1, Target: AtLeast(0)}, 0, false, true},
		"a floor: the ratio counts, at most":   {Row{Value: 13, Floor: floor(10), Target: AtMost(1.2)}, 1.3, false, true},
		"a floor: the ratio counts, at least":  {Row{Value: 8, Floor: floor(10), Target: AtLeast(0.7)}, 0.8, true, true},
		"a floor of 0: there is no ratio":      {Row{Value: 1, Floor: floor(0), Target: AtMost(2)}, 0, false, false},
		"a target without a bound":             {Row{Value: 1, Target: &Target{}}, 0, false, false},
		"no number is on no side of a bound":   {Row{Value: math.NaN(), Target: AtMost(2)}, 0, false, false},
		"a value of 0 over a floor is a ratio": {Row{Value: 0, Floor: floor(4), Target: AtLeast(0.1)}, 0, false, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			within, known := tt.row.Within()
			assert.Equal(t, tt.within, within, "within")
			assert.Equal(t, tt.known, known, "known")
			ratio, ok := tt.row.Ratio()
			assert.InDelta(t, tt.ratio, ratio, 1e-9)
			assert.Equal(t, tt.row.Floor != nil && *tt.row.Floor != 0, ok, "there is a ratio")
		})
	}
}

func TestTargets(t *testing.T) {
	run := sample()
	targets := run.Targets()
	rows := run.Sections[0].Rows
	assert.Equal(t, []Row{rows[0], rows[2], run.Sections[1].Rows[0]}, targets.Within)
	assert.Equal(t, []Row{rows[1]}, targets.Missed)
	assert.Equal(t, []Row{rows[3]}, targets.Unknown)
	assert.Equal(t, 5, targets.All())
	assert.Equal(t, `3 of 5 targets are within; missed: "acquire, 1 caller" p99; unknown: "waiting" writes`, targets.String())

	targets.Missed = append(targets.Missed, rows[0])
	assert.Contains(t, targets.String(), `missed: "acquire, 1 caller" p99, "acquire, 1 caller" p50;`)
	assert.Equal(t, "1 of 1 targets are within", Targets{Within: rows[:1]}.String())
	assert.Equal(t, "no figure has a target", (&Run{}).Targets().String())
}
