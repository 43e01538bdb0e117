package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the run for a page of documentation: a second-level heading per section, with its figures as a table.
func (r *Run) WriteMarkdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Measured %s.\n", marked(r.occasion()))
	if len(r.Machine) > 0 {
		b.WriteString("\n| Machine | |\n| --- | --- |\n")
	}
	for _, fact := range r.Machine {
		fmt.Fprintf(&b, "| %s | %s |\n", marked(fact.Name), marked(fact.Value))
	}
	for _, section := range r.Sections {
		section.writeMarkdown(&b)
	}
	if titles := r.notMeasured(); len(titles) > 0 {
		fmt.Fprintf(&b, "\nNot measured: %s.\n", marked(strings.Join(titles, "; ")))
	}
	fmt.Fprintf(&b, "\n%s.\n", marked(r.Targets().String()))
	_, err := w.Write(b.Bytes())
	return err
}

func (s Section) writeMarkdown(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## %s\n", marked(s.Title))
	if s.About != "" {
		fmt.Fprintf(b, "\n%s\n", marked(s.About))
	}
	if s.NotMeasured != "" {
		fmt.Fprintf(b, "\nNot measured: %s\n", marked(s.NotMeasured))
	}
	if len(s.Rows) == 0 {
		return
	}
	g := s.grid()
	b.WriteString("\n")
	writeCells(b, g.Head)
	rules := make([]string, 0, len(g.Head))
	for _, c := range g.Head {
		rule := "---"
		if c.Right {
			rule = "---:"
		}
		rules = append(rules, rule)
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(rules, " | "))
	for _, l := range g.Lines {
		writeCells(b, l.Cells)
	}
	before := "\n" // the list of notes
	for i, l := range g.Lines {
		if l.Note != "" {
			fmt.Fprintf(b, "%s- %s %s: %s\n", before, marked(s.Rows[i].What), marked(s.Rows[i].Measure), marked(l.Note))
			before = ""
		}
	}
}

func writeCells(b *bytes.Buffer, cells []cell) {
	texts := make([]string, 0, len(cells))
	for _, c := range cells {
		texts = append(texts, marked(c.Text))
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(texts, " | "))
}

// markup is what Markdown would take for something else than itself within a line or a cell.
var markup = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "[", `\[`, "]", `\]`, "<", `\<`, "&", `\&`)

func marked(text string) string { return markup.Replace(oneLine(text)) }
