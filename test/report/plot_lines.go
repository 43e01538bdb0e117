package report

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// mostPoints are drawn of a distribution: between two of them lies half a percent of the samples, about a point in height.
const mostPoints = 200

// addDistribution draws each series as a stair that begins at 0.
func (p Plot) addDistribution(chart *plot.Plot, legend *plot.Legend) error {
	chart.X.Scale = plot.LogScale{}
	along(&chart.X, logTicks(p.rangeOfX()))
	along(&chart.Y, plot.ConstantTicks{{Value: 0, Label: "0 %"}, {Value: 25, Label: "25 %"}, {Value: 50, Label: "50 %"},
		{Value: 75, Label: "75 %"}, {Value: 90, Label: "90 %"}, {Value: 100, Label: "100 %"}})
	for i, s := range p.Series {
		stair, err := plotter.NewLine(s.stair())
		if err != nil {
			return err
		}
		stair.StepStyle, stair.LineStyle = plotter.PostStep, lineStyle(i)
		chart.Add(stair)
		legend.Add(oneLine(s.Name), stair)
	}
	return nil
}

// stair is the series in percent with its foot, thinned to mostPoints, of which the first and the last are always there.
func (s Series) stair() plotter.XYs {
	stair := plotter.XYs{{X: s.X[0]}}
	count := min(len(s.X), mostPoints)
	for i := range count {
		at := i
		if count < len(s.X) {
			at = i * (len(s.X) - 1) / (count - 1)
		}
		stair = append(stair, plotter.XY{X: s.X[at], Y: 100 * s.Y[at]})
	}
	return stair
}

// shapes mark the points, the full ones first.
var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}}

// addLines draws each series as a line with a mark of its own at every point.
func (p Plot) addLines(chart *plot.Plot, legend *plot.Legend) error {
	low, high := p.rangeOfX()
	if low == high {
		low, high = low/2, high*2
	}
	chart.X.Scale, chart.X.Tick.Marker = plot.LogScale{}, p.ownTicks(low, high)
	chart.X.Min, chart.X.Max = low, high
	along(&chart.Y, linearTicks(p.rangeOfY()))
	for i, s := range p.Series {
		points := make(plotter.XYs, 0, len(s.X))
		for j, x := range s.X {
			points = append(points, plotter.XY{X: x, Y: s.Y[j]})
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.LineStyle = lineStyle(i)
		marks.GlyphStyle = draw.GlyphStyle{Color: colour(i), Radius: 3, Shape: shapes[i%len(shapes)]}
		chart.Add(line, marks)
		legend.Add(oneLine(s.Name), line, marks)
	}
	return nil
}

func (p Plot) rangeOfX() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, s := range p.Series {
		low, high = min(low, s.X[0]), max(high, s.X[len(s.X)-1])
	}
	return low, high
}

// rangeOfY begins at 0, for a difference looks larger than it is where the axis begins elsewhere.
func (p Plot) rangeOfY() (low, high float64) {
	for _, s := range p.Series {
		low, high = min(low, slices.Min(s.Y)), max(high, slices.Max(s.Y))
	}
	if low == high {
		high = 1
	}
	return low, high
}
