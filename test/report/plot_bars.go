package report

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	barWidth = vg.Length(14)
	barGap   = vg.Length(12) // between groups
)

// addBars draws the bars lying, in a group per label with the first on top, so that no label is too long for its place. It
// gives the height that this takes.
func (p Plot) addBars(chart *plot.Plot, legend *plot.Legend) (vg.Length, error) {
	var labels []string
	for _, s := range p.Series {
		for _, label := range s.Labels {
			if !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
	}
	slices.Reverse(labels) // Y grows upwards.
	named := make([]string, 0, len(labels))
	for _, label := range labels {
		named = append(named, oneLine(label))
	}
	chart.X.Label.Text, chart.Y.Label.Text = chart.Y.Label.Text, chart.X.Label.Text
	chart.NominalY(named...)
	chart.X.Padding = 0
	chart.Y.Padding = margin
	along(&chart.X, linearTicks(p.rangeOfY()))
	chart.Y.Min, chart.Y.Max = -0.5, float64(len(labels))-0.5
	for i, s := range p.Series {
		offset := barWidth * (vg.Length(len(p.Series)-1)/2 - vg.Length(i))
		bars, err := plotter.NewBarChart(s.valuesOf(labels), barWidth)
		if err != nil {
			return 0, err
		}
		bars.Horizontal, bars.Offset, bars.Color, bars.Width = true, offset, colour(i), barWidth-1
		bars.LineStyle.Width = 0
		chart.Add(bars)
		legend.Add(oneLine(s.Name), bars)
		if err := s.addFigures(chart, labels, offset); err != nil {
			return 0, err
		}
	}
	group := barWidth*vg.Length(len(p.Series)) + barGap
	return group*vg.Length(len(labels)) + 80, nil // with the title and the axis
}

// valuesOf has the series' value at each label, and 0, which shows no bar, where it has none.
func (s Series) valuesOf(labels []string) plotter.Values {
	values := make(plotter.Values, len(labels))
	for i, label := range labels {
		if at := slices.Index(s.Labels, label); at >= 0 {
			values[i] = s.Y[at]
		}
	}
	return values
}

// addFigures writes each bar's value at its end.
func (s Series) addFigures(chart *plot.Plot, labels []string, offset vg.Length) error {
	var at plotter.XYLabels
	for i, label := range s.Labels {
		at.XYs = append(at.XYs, plotter.XY{X: max(s.Y[i], 0), Y: float64(slices.Index(labels, label))})
		at.Labels = append(at.Labels, figure(s.Y[i], nil))
	}
	figures, err := plotter.NewLabels(at)
	if err != nil {
		return err
	}
	for i := range figures.TextStyle {
		figures.TextStyle[i] = text.Style{Font: sans(plain - 1), YAlign: draw.YCenter, Handler: chart.TextHandler}
	}
	figures.Offset = vg.Point{X: 3, Y: offset}
	chart.Add(figures)
	return nil
}
