package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// picture is what an SVG shows.
type picture struct {
	texts   []string
	heights map[string]string // where each text stands, as SVG counts: downwards
	strokes []string          // each line's style
	fills   []string          // each filled shape's style
	paths   []string          // what each of strokes draws
	shapes  []string          // what each of fills does
	size    int
}

// pictureOf reads the SVG as XML, which HTML's parser is more lenient than.
func pictureOf(t *testing.T, p Plot) picture {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, p.WriteSVG(&b))
	shown := picture{size: b.Len(), heights: map[string]string{}}
	require.True(t, strings.HasPrefix(b.String(), "<svg "), "no prologue, which HTML has no place for")
	decoder, within, height := xml.NewDecoder(&b), "", ""
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return shown
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			within = token.Name.Local
			drawn := ""
			for _, a := range token.Attr {
				require.NotContains(t, a.Value, "NaN")
				require.NotContains(t, a.Value, "Inf")
				switch {
				case a.Name.Local == "d":
					drawn = a.Value
				case a.Name.Local == "y":
					height = a.Value
				case a.Name.Local != "style":
				case strings.Contains(a.Value, "stroke:"):
					shown.strokes, shown.paths = append(shown.strokes, a.Value), append(shown.paths, drawn)
				case within == "path":
					shown.fills, shown.shapes = append(shown.fills, a.Value), append(shown.shapes, drawn)
				}
			}
		case xml.EndElement:
			within = ""
		case xml.CharData:
			if within == "text" {
				shown.texts = append(shown.texts, string(token))
				shown.heights[string(token)] = height
			}
		}
	}
}

// count says how many styles have a colour.
func count(styles []string, colour string) (n int) {
	for _, style := range styles {
		if strings.Contains(style, colour) {
			n++
		}
	}
	return n
}

const blue, orange = "#0072B2", "#D55E00" // of the first two series

func TestDistribution(t *testing.T) {
	shown := pictureOf(t, sample().Sections[0].Plots[0])
	assert.Subset(t, shown.texts, []string{"Answers <of> both", "ms", "share", "a & b", "floor", "1", "2", "5", "0 %", "50 %", "90 %", "100 %"})
	assert.NotContains(t, shown.texts, "10", "the scale ends above the last sample")
	assert.Equal(t, 2, count(shown.strokes, blue), "a stair, and the legend's sample of it")
	assert.Equal(t, 2, count(shown.strokes, orange))
	assert.NotContains(t, shown.strokes[len(shown.strokes)-2], "stroke-dasharray", "the first line is whole")
	assert.Contains(t, shown.strokes[len(shown.strokes)-1], "stroke-dasharray", "the second is not, for a print without colours")

	first := slices.IndexFunc(shown.strokes, func(style string) bool { return strings.Contains(style, blue) })
	points := point.FindAllStringSubmatch(shown.paths[first], -1)
	require.Len(t, points, 7, "from the foot to the right, by nothing for the first sample, and up, for each")
	for i, p := range points[1:] {
		assert.True(t, p[1] == points[i][1] || p[2] == points[i][2], "a share is not between two samples: %v to %v", points[i], p)
	}
}

var point = regexp.MustCompile(`[ML]([^,]+),([^MLZ]+)`)

func TestLines(t *testing.T) {
	shown := pictureOf(t, sample().Sections[0].Plots[1])
	assert.Subset(t, shown.texts, []string{"Throughput", "callers", "1/s", "acquire", "1", "8", "32", "0", "500", "1000", "1500", "2000"})
	assert.Equal(t, 2, count(shown.strokes, blue), "a line, and the legend's")
	assert.Equal(t, 4, count(shown.fills, blue), "a mark at each of three points, and the legend's")
}

func TestBars(t *testing.T) {
	p := sample().Sections[1].Plots[0]
	shown := pictureOf(t, p)
	assert.Subset(t, shown.texts, []string{"Resident", "MiB", "server", "etcd", "at rest", "busy", "90", "143", "60", "0", "50", "150"})
	assert.Less(t, number(t, shown.heights["at rest"]), number(t, shown.heights["busy"]), "the first label is on top")
	assert.Less(t, number(t, shown.heights["143"]), number(t, shown.heights["60"]), "and so is the first series in a group")

	server, etcd := shown.bars(t, blue), shown.bars(t, orange)
	require.Len(t, server, 2)
	require.Len(t, etcd, 2, "one of them has no length")
	assert.InDelta(t, 90/143.2, server[1].length/server[0].length, 0.01, "a bar is as long as its figure is large")
	assert.InDelta(t, 60/143.2, etcd[0].length/server[0].length, 0.01)
	assert.Greater(t, server[0].bottom, etcd[0].bottom+10, "no bar hides another; their heights are counted upwards")

	slices.Sort(shown.texts)
	assert.Equal(t, slices.Compact(slices.Clone(shown.texts)), shown.texts, "a group has one label")
}

type bar struct{ length, bottom float64 }

// bars are those of a colour from the last label up, without the legend's sample, which is drawn last.
func (p picture) bars(t *testing.T, colour string) (bars []bar) {
	t.Helper()
	for i, style := range p.fills {
		if strings.Contains(style, colour) {
			corners := point.FindAllStringSubmatch(p.shapes[i], -1)
			require.Len(t, corners, 4)
			bars = append(bars, bar{number(t, corners[2][1]) - number(t, corners[0][1]), number(t, corners[0][2])})
		}
	}
	return bars[:len(bars)-1]
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return value
}

func TestPlotsThatAreHardlyOne(t *testing.T) {
	single := []Series{{Name: "one", X: []float64{5}, Y: []float64{1}, Labels: []string{"bar"}}}
	zero := []Series{{Name: "one", X: []float64{5, 5}, Y: []float64{0, 0}, Labels: []string{"bar", "other"}}}
	below := []Series{{Name: "one", X: []float64{1, 2}, Y: []float64{-3, -1}, Labels: []string{"bar", "other"}}}
	tests := map[string]struct {
		plot Plot
		says []string
	}{
		"distribution: one sample":           {Plot{Kind: Distribution, Series: single}, []string{"2", "5", "10", "one"}},
		"distribution: no share":             {Plot{Kind: Distribution, Series: zero}, []string{"one"}},
		"lines: one point":                   {Plot{Kind: Lines, Series: single}, []string{"5", "1.0", "one"}},
		"lines: 0 is no trouble upwards":     {Plot{Kind: Lines, Series: zero}, []string{"5", "0.0", "one"}},
		"lines: below 0":                     {Plot{Kind: Lines, Series: below}, []string{"-3.0", "0.0"}},
		"bars: one":                          {Plot{Kind: Bars, Series: single}, []string{"bar", "1"}},
		"bars: of 0":                         {Plot{Kind: Bars, Series: zero}, []string{"bar", "other", "0"}},
		"bars: below 0":                      {Plot{Kind: Bars, Series: below}, []string{"-3", "-1"}},
		"lines: more series than colours":    {Plot{Kind: Lines, Series: slices.Repeat(single, 20)}, []string{"one"}},
		"distribution: a nanosecond to days": {Plot{Kind: Distribution, Series: []Series{{X: []float64{1e-6, 1e9}, Y: []float64{0.5, 1}}}}, []string{"0.000001", "1000000000"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { assert.Subset(t, pictureOf(t, tt.plot).texts, tt.says) })
	}
}

func TestPlotRefuses(t *testing.T) {
	series := func(x, y []float64, labels ...string) []Series {
		return []Series{{Name: "s", X: x, Y: y, Labels: labels}}
	}
	one, two, fall, shares := []float64{1}, []float64{1, 2}, []float64{2, 1}, []float64{0.5, 1}
	tests := map[string]struct {
		kind   PlotKind
		series []Series
		fault  string
	}{
		"no series":                   {Lines, nil, `plot "P": series: there is none`},
		"an unknown kind":             {"pie", series(one, one), `kind is "pie": use "distribution", "lines", "timeline" or "bars"`},
		"no kind":                     {"", series(one, one), `kind is "": use`},
		"distribution: empty":         {Distribution, series(nil, nil), `plot "P": series "s": it is empty: leave the series out`},
		"lines: empty":                {Lines, series(nil, nil), "it is empty"},
		"bars: empty":                 {Bars, series(nil, nil), "it is empty"},
		"the second is empty":         {Lines, append(series(one, one), Series{Name: "t"}), `series "t": it is empty`},
		"lines: x without y":          {Lines, series(two, one), "it has 2 x and 1 y"},
		"distribution: y without x":   {Distribution, series(nil, one), "it has 0 x and 1 y"},
		"lines: x is 0":               {Lines, series([]float64{0, 1}, two), "x[0] is 0, and a logarithmic scale begins above 0"},
		"distribution: x is below 0":  {Distribution, series([]float64{-1, 1}, shares), "x[0] is -1"},
		"lines: x is no number":       {Lines, series([]float64{1, math.NaN()}, two), "x[1] is NaN"},
		"lines: y is no number":       {Lines, series(two, []float64{math.NaN(), 1}), "y[0] is NaN"},
		"lines: y has no end":         {Lines, series(two, []float64{1, math.Inf(1)}), "y[1] is +Inf"},
		"distribution: x has no end":  {Distribution, series([]float64{1, math.Inf(1)}, shares), "x[1] is +Inf"},
		"bars: y is no number":        {Bars, series(nil, []float64{math.NaN()}, "bar"), "y[0] is NaN"},
		"lines: x falls":              {Lines, series(fall, two), "x falls: sort the points"},
		"distribution: x falls":       {Distribution, series(fall, shares), "x falls"},
		"distribution: y falls":       {Distribution, series(two, []float64{1, 0.5}), "y falls"},
		"distribution: in percent":    {Distribution, series(two, []float64{50, 100}), "y is from 50 to 100: give shares between 0 and 1"},
		"distribution: below 0":       {Distribution, series(two, []float64{-0.5, 1}), "y is from -0.5 to 1"},
		"bars: no label":              {Bars, series(nil, two, "bar"), "it has 1 labels and 2 y: name each bar"},
		"bars: two of the same label": {Bars, series(nil, two, "bar", "bar"), `two bars are named "bar"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			err := Plot{Kind: tt.kind, Title: "P", Series: tt.series}.WriteSVG(&b)
			require.ErrorContains(t, err, tt.fault)
			assert.Contains(t, err.Error(), `plot "P": `, "it names the plot")
			assert.Zero(t, b.Len())
		})
	}
}

func TestLargeDistributionIsThinned(t *testing.T) {
	const samples = 12345
	s := Series{Name: "many"}
	for i := range samples {
		s.X = append(s.X, math.Exp(float64(i)/2000))
		s.Y = append(s.Y, float64(i+1)/samples)
	}
	stair := s.stair()
	require.Len(t, stair, 1+mostPoints)
	assert.Equal(t, plotter.XY{X: s.X[0]}, stair[0], "its foot")
	assert.Equal(t, plotter.XY{X: s.X[0], Y: 100 * s.Y[0]}, stair[1], "the fastest")
	assert.Equal(t, plotter.XY{X: s.X[samples-1], Y: 100}, stair[mostPoints], "the slowest")
	for i := 1; i < len(stair); i++ {
		assert.LessOrEqual(t, stair[i].Y-stair[i-1].Y, 0.52, "no step is higher than half a percent and a sample")
	}
	assert.Less(t, pictureOf(t, Plot{Kind: Distribution, Series: []Series{s}}).size, 16<<10)

	s.X, s.Y = s.X[:mostPoints], s.Y[:mostPoints]
	assert.Len(t, s.stair(), 1+mostPoints, "as many as that all stay")
	assert.Equal(t, plotter.XY{X: s.X[77], Y: 100 * s.Y[77]}, s.stair()[78])
}

func labelsOf(ticks plot.ConstantTicks) (labels []string) {
	for _, tick := range ticks {
		labels = append(labels, tick.Label)
	}
	return labels
}

func TestTicks(t *testing.T) {
	assert.Equal(t, []string{"2", "5", "10", "20", "50"}, labelsOf(logTicks(3, 40)))
	assert.Equal(t, []string{"2", "5", "10"}, labelsOf(logTicks(2, 10)), "no wider than it must be")
	assert.Equal(t, []string{"0.5", "1", "2"}, labelsOf(logTicks(1, 1)), "one value has a tick on each side")
	assert.Equal(t, []string{"0.02", "0.05", "0.1"}, labelsOf(logTicks(0.03, 0.06)))
	assert.Equal(t, []string{"1", "", "", "10", "", "", "100", "", "", "1000", "", "", "10000"}, labelsOf(logTicks(1, 10000)), "not too many labels")

	assert.Equal(t, []string{"0", "500", "1000", "1500", "2000"}, labelsOf(linearTicks(0, 1543)))
	assert.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6"}, labelsOf(linearTicks(0, 6)))
	assert.Equal(t, []string{"0.0", "0.1", "0.2", "0.3", "0.4"}, labelsOf(linearTicks(0, 0.4)))
	assert.Equal(t, []string{"-2", "0", "2", "4", "6", "8"}, labelsOf(linearTicks(-1.5, 7)))

	p := Plot{Series: []Series{{X: []float64{1, 4, 100}}, {X: []float64{1, 4.01, 50}}}}
	assert.Equal(t, []string{"1", "4", "", "50", "100"}, labelsOf(p.ownTicks(1, 100)), "each once, none over another")
}
