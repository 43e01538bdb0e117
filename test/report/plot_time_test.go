package report

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
)

const grey = "#808080" // of marks

func timeline() Plot {
	return Plot{Kind: Timeline, Title: "Resident memory", XLabel: "minutes", YLabel: "MiB",
		Series: []Series{{Name: "server 0", X: []float64{0, 1, 2, 3}, Y: []float64{90, 95, 96, 95}}, {Name: "server 1", X: []float64{0, 3}, Y: []float64{90, 91}}},
		Marks:  []Mark{{Name: "ended by SIGKILL", X: []float64{1.5, 2.5}}, {Name: "ended by SIGTERM", X: []float64{5.5}}, {Name: "never", X: nil}}}
}

func TestTimeline(t *testing.T) {
	shown := pictureOf(t, timeline())
	assert.Subset(t, shown.texts, []string{"Resident memory", "minutes", "MiB", "server 0", "server 1", "0", "6", "100", "ended by SIGKILL", "ended by SIGTERM"})
	assert.NotContains(t, shown.texts, "never", "what did not happen is not in the legend")
	assert.Equal(t, 2, count(shown.strokes, blue), "a line, and the legend's")
	assert.Equal(t, 2, count(shown.strokes, orange))
	assert.Equal(t, 5, count(shown.strokes, grey), "three moments, and two in the legend")
	assert.Zero(t, count(shown.fills, blue), "no point is marked")
}

func TestTimeline_OfOneMoment(t *testing.T) {
	p := Plot{Kind: Timeline, Series: []Series{{Name: "one", X: []float64{0}, Y: []float64{0}}}}
	assert.Subset(t, pictureOf(t, p).texts, []string{"one", "0.0", "1.0"})
}

func TestTimelineRefuses(t *testing.T) {
	tests := map[string]struct {
		spoil func(*Plot)
		fault string
	}{
		"a time before the begin": {func(p *Plot) { p.Series[0].X[0] = -1 }, `series "server 0": x[0] is -1, and time begins at 0`},
		"a time that falls":       {func(p *Plot) { p.Series[1].X = []float64{3, 0} }, `series "server 1": x falls`},
		"times without values":    {func(p *Plot) { p.Series[1].Y = []float64{3} }, "it has 2 x and 1 y"},
		"a mark before the begin": {func(p *Plot) { p.Marks[0].X[1] = -2 }, `mark "ended by SIGKILL": x[1] is -2`},
		"a mark at no time":       {func(p *Plot) { p.Marks[1].X[0] = math.NaN() }, `mark "ended by SIGTERM": x[0] is NaN`},
		"marks of another kind":   {func(p *Plot) { p.Kind = Bars }, `marks: a plot of kind "bars" has none: use "timeline"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := timeline()
			tt.spoil(&p)
			var b bytes.Buffer
			require.ErrorContains(t, p.WriteSVG(&b), tt.fault)
			assert.Zero(t, b.Len())
		})
	}
}

// TestFollowedOverTime: a figure that has an At first shows it, in each form, and gets it back from JSON with the marks.
func TestFollowedOverTime(t *testing.T) {
	run := &Run{Title: "Soak", Form: "seed 7", Sections: []Section{{ID: "memory", Title: "Memory", Plots: []Plot{timeline()}, Rows: []Row{
		{What: "server 0", Measure: "resident", Unit: MiB, First: ptr.To(90.5), Value: 96, Floor: ptr.To(95.0), FloorName: "middle third", Target: AtMost(1.1)}}}}}
	var table, page, data bytes.Buffer
	require.NoError(t, run.WriteTable(&table))
	assert.Regexp(t, `What +Measure +At first +Value +Floor +Its value +Ratio +Target +Verdict\n +server 0 +resident +90.5 MiB +96 MiB +middle third +95 MiB +1.01 +≤ 1.10 +within`, table.String())
	require.NoError(t, run.WriteHTML(&page))
	assert.Contains(t, page.String(), "<h1>Soak</h1>")
	assert.Contains(t, page.String(), "90.5 MiB")
	require.NoError(t, run.WriteJSON(&data))
	read, err := ReadJSON(&data)
	require.NoError(t, err)
	assert.Equal(t, run, read)

	run.Sections[0].Plots[0].Marks[0].X[0] = math.Inf(1)
	require.ErrorContains(t, run.WriteJSON(&data), `plot "Resident memory": mark "ended by SIGKILL": x[0] is +Inf`)
	run.Sections[0].Rows[0].First = ptr.To(math.NaN())
	require.ErrorContains(t, run.WriteJSON(&data), `"server 0" resident: first is NaN`)
}
