package report

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of a plot, in points.
const (
	plotWidth  = vg.Length(680)
	plotHeight = vg.Length(290) // without the legend; of bars there may be more
	margin     = vg.Length(6)
	plain      = vg.Length(10) // a font's size
	lineWidth  = vg.Length(1.5)
)

// colours are those of Okabe and Ito, which people who see fewer colours tell apart too, without the yellow: it is too
// faint on white.
var colours = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff}, color.RGBA{0xcc, 0x79, 0xa7, 0xff},
	color.RGBA{0x00, 0x00, 0x00, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
}

var (
	gridColour = color.Gray{Y: 0xdd}
	markColour = color.Gray{Y: 0x80}
)

func colour(i int) color.Color { return colours[i%len(colours)] }

// lineStyle has a dash of its own beside the colour, for a print without colours.
func lineStyle(i int) draw.LineStyle {
	return draw.LineStyle{Color: colour(i), Width: lineWidth, Dashes: plotutil.Dashes(i)}
}

// WriteSVG writes the plot as one SVG element that needs nothing from elsewhere. It refuses what cannot be shown, naming the
// plot and the series.
func (p Plot) WriteSVG(w io.Writer) error {
	svg, err := p.svg()
	if err != nil {
		return fmt.Errorf("plot %q: %w", p.Title, err)
	}
	_, err = w.Write(svg)
	return err
}

func (p Plot) svg() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	chart, legend := p.blank()
	height := plotHeight
	var err error
	switch p.Kind {
	case Distribution:
		err = p.addDistribution(chart, &legend)
	case Lines:
		err = p.addLines(chart, &legend)
	case Timeline:
		err = p.addTimeline(chart, &legend)
	case Bars:
		height, err = p.addBars(chart, &legend)
	}
	if err != nil {
		return nil, err
	}
	return p.render(chart, legend, height)
}

// render draws the legend beneath the chart, where it hides nothing.
func (p Plot) render(chart *plot.Plot, legend plot.Legend, height vg.Length) ([]byte, error) {
	key := legend.Rectangle(draw.Canvas{}).Size().Y + 2*margin
	height += key
	canvas := vgsvg.New(plotWidth, height)
	area := draw.New(canvas)
	area.SetColor(color.White)
	area.Fill(area.Path())
	area = draw.Crop(area, margin, -margin, margin, -margin)
	chart.Draw(draw.Crop(area, 0, 0, key, 0))
	legend.Draw(area)

	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	_, start, _ := bytes.Cut(b.Bytes(), []byte("<svg"))
	_, content, _ := bytes.Cut(start, []byte(">"))
	// An element within HTML has no prologue, and fits itself to the page. The fonts beside the first are as wide as it is.
	content = bytes.ReplaceAll(content, []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	svg := fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%.5g" viewBox="0 0 %[1]g %.5[2]g" role="img" aria-label="%s">`,
		plotWidth.Points(), height.Points(), html.EscapeString(p.Title))
	return append(svg, content...), nil
}

// blank is a plot with its title, its axes and a grid, and the legend to be.
func (p Plot) blank() (*plot.Plot, plot.Legend) {
	chart := plot.New()
	chart.BackgroundColor = nil
	chart.Title.Text, chart.X.Label.Text, chart.Y.Label.Text = oneLine(p.Title), oneLine(p.XLabel), oneLine(p.YLabel)
	chart.Title.Padding = margin
	chart.Title.TextStyle.Font = sans(plain + 3)
	for _, axis := range []*plot.Axis{&chart.X, &chart.Y} {
		axis.Label.TextStyle.Font = sans(plain)
		axis.Label.Padding = margin / 2
		axis.Tick.Label.Font = sans(plain - 1)
		axis.Padding = 0
	}
	lines := draw.LineStyle{Color: gridColour, Width: vg.Points(0.5)}
	chart.Add(&plotter.Grid{Vertical: lines, Horizontal: lines})

	legend := plot.NewLegend()
	legend.TextStyle.Font = sans(plain)
	legend.Left = true
	legend.ThumbnailWidth = 30
	legend.Padding = margin / 2
	return chart, legend
}

// sans is the library's font without serifs.
func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}
