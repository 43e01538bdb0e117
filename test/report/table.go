package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// WriteTable writes the run for a terminal: each section's figures in aligned columns, and last a line on the targets.
func (r *Run) WriteTable(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, %s\n\n", oneLine(r.Title), r.occasion())
	facts := make([][]cell, 0, len(r.Machine))
	for _, fact := range r.Machine {
		facts = append(facts, []cell{{Text: oneLine(fact.Name)}, {Text: oneLine(fact.Value)}})
	}
	for _, fact := range aligned(facts) {
		fmt.Fprintf(&b, "  %s\n", fact)
	}
	for _, section := range r.Sections {
		section.writeTable(&b)
	}
	if titles := r.notMeasured(); len(titles) > 0 {
		fmt.Fprintf(&b, "\nNot measured: %s\n", strings.Join(titles, "; "))
	}
	fmt.Fprintf(&b, "\n%s\n", r.Targets())
	_, err := w.Write(b.Bytes())
	return err
}

func (s Section) writeTable(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n%s\n", oneLine(s.Title))
	if s.About != "" {
		fmt.Fprintf(b, "  %s\n", oneLine(s.About))
	}
	if s.NotMeasured != "" {
		fmt.Fprintf(b, "  Not measured: %s\n", oneLine(s.NotMeasured))
	}
	if len(s.Rows) == 0 {
		return
	}
	g := s.grid()
	rows := [][]cell{g.Head}
	for _, l := range g.Lines {
		rows = append(rows, l.Cells)
	}
	texts := aligned(rows)
	fmt.Fprintf(b, "\n  %s\n", texts[0])
	for i, l := range g.Lines {
		fmt.Fprintf(b, "  %s\n", texts[i+1])
		if l.Note != "" {
			fmt.Fprintf(b, "      %s\n", l.Note)
		}
	}
}

// aligned pads the cells of each column to one width. text/tabwriter aligns all columns to the same side.
func aligned(rows [][]cell) []string {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	texts := make([]string, 0, len(rows))
	for _, row := range rows {
		padded := make([]string, len(row))
		for i, c := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text))
			if padded[i] = c.Text + padding; c.Right {
				padded[i] = padding + c.Text
			}
		}
		texts = append(texts, strings.TrimRight(strings.Join(padded, "  "), " "))
	}
	return texts
}

// occasion is when the run was, how long, and in which form.
func (r *Run) occasion() string {
	return fmt.Sprintf("%s, took %s, %s", r.Began.Format("2006-01-02 15:04:05 -07:00"), r.Took.Round(time.Second), oneLine(r.Form))
}
