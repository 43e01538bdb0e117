package report

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// addTimeline draws each series as a line from the begin on, and each mark as upright lines behind them.
func (p Plot) addTimeline(chart *plot.Plot, legend *plot.Legend) error {
	_, end := p.rangeOfX()
	for _, mark := range p.Marks {
		end = max(end, slices.Max(append([]float64{0}, mark.X...)))
	}
	if end == 0 {
		end = 1
	}
	along(&chart.X, linearTicks(0, end))
	along(&chart.Y, linearTicks(p.rangeOfY()))
	for i, mark := range p.Marks {
		if err := mark.add(chart, legend, i); err != nil {
			return err
		}
	}
	for i, s := range p.Series {
		points := make(plotter.XYs, 0, len(s.X))
		for j, x := range s.X {
			points = append(points, plotter.XY{X: x, Y: s.Y[j]})
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.LineStyle = lineStyle(i)
		chart.Add(line)
		legend.Add(oneLine(s.Name), line)
	}
	return nil
}

// add draws the mark from the bottom to the top at each of its moments. Marks are grey, so that they are no series.
func (m Mark) add(chart *plot.Plot, legend *plot.Legend, i int) error {
	style := draw.LineStyle{Color: markColour, Width: vg.Points(0.75), Dashes: plotutil.Dashes(i + 1)}
	for j, x := range m.X {
		line, err := plotter.NewLine(plotter.XYs{{X: x, Y: chart.Y.Min}, {X: x, Y: chart.Y.Max}})
		if err != nil {
			return err
		}
		line.LineStyle = style
		chart.Add(line)
		if j == 0 {
			legend.Add(oneLine(m.Name), line)
		}
	}
	return nil
}
