package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template is filled with.
type page struct {
	Title    string
	Occasion string
	Machine  []Fact
	Targets  Targets
	Sections []pageSection
}

type pageSection struct {
	Section
	Grid  grid
	Drawn []template.HTML
}

// WriteHTML writes the run as one HTML file, which asks for nothing from elsewhere: its style and plots are in it. It
// refuses a plot that cannot be shown; what the other forms tell does not depend on that.
func (r *Run) WriteHTML(w io.Writer) error {
	p := page{Title: r.Title, Occasion: r.occasion(), Machine: r.Machine, Targets: r.Targets()}
	for _, section := range r.Sections {
		shown := pageSection{Section: section, Grid: section.grid()}
		for _, plot := range section.Plots {
			var svg bytes.Buffer
			if err := plot.WriteSVG(&svg); err != nil {
				return fmt.Errorf("section %q: %w", section.ID, err)
			}
			shown.Drawn = append(shown.Drawn, template.HTML(svg.String())) // Its texts are escaped.
		}
		p.Sections = append(p.Sections, shown)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
