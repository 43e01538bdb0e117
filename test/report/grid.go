package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// What a row's last cell says of its target.
const (
	markWithin  = "within"
	markMissed  = "MISSED"
	markUnknown = "unknown"
)

// cell is a piece of text in a column; Right says that it is a figure, aligned to the right.
type cell struct {
	Text  string
	Right bool
}

// line is a row as text, which every form tells alike.
type line struct {
	Cells      []cell
	Mark, Note string
	// Standing is what there is beside the target, for a summary; empty without a target.
	Standing string
}

// grid is the rows of a section beneath their head, without the columns that all of them leave empty.
type grid struct {
	Head  []cell
	Lines []line
}

var head = []cell{{"What", false}, {"Measure", false}, {"At first", true}, {"Value", true}, {"Samples", true}, {"Floor", false}, {"Its value", true},
	{"Ratio", true}, {"Target", true}, {"Verdict", false}}

func (s Section) grid() grid {
	g := grid{Head: slices.Clone(head)}
	for _, row := range s.Rows {
		g.Lines = append(g.Lines, row.line())
	}
	for i := range slices.Backward(head) {
		if slices.ContainsFunc(g.Lines, func(l line) bool { return l.Cells[i].Text != "" }) {
			continue
		}
		g.Head = slices.Delete(g.Head, i, i+1)
		for j := range g.Lines {
			g.Lines[j].Cells = slices.Delete(g.Lines[j].Cells, i, i+1)
		}
	}
	return g
}

func (r Row) line() line {
	var first, samples, floor, ratio string
	if r.First != nil {
		first = quantity(*r.First, r.Unit, nil)
	}
	if r.Samples > 0 {
		samples = strconv.Itoa(r.Samples)
	}
	ofValue, ofRatio := r.Target, (*Target)(nil)
	if r.Floor != nil {
		ofValue, ofRatio = nil, r.Target
		floor = quantity(*r.Floor, r.Unit, nil)
	}
	if value, ok := r.Ratio(); ok {
		ratio = apart(value, 2, ofRatio)
	}
	mark := r.mark()
	texts := []string{oneLine(r.What), oneLine(r.Measure), first, quantity(r.Value, r.Unit, ofValue), samples, oneLine(r.FloorName), floor, ratio, r.bound(), mark}
	l := line{Mark: mark, Note: oneLine(r.Note)}
	for i, text := range texts {
		l.Cells = append(l.Cells, cell{text, head[i].Right})
	}
	if r.Target != nil {
		l.Standing = fmt.Sprintf("%s %s: %s, target %s", texts[0], texts[1], r.held(), r.bound())
	}
	return l
}

// held is what the row holds against its target: the figure, or how many times the floor it is.
func (r Row) held() string {
	ratio, ok := r.Ratio()
	switch floor := cmp.Or(oneLine(r.FloorName), "its floor"); {
	case r.Floor == nil:
		return quantity(r.Value, r.Unit, r.Target)
	case !ok:
		return floor + " is 0"
	default:
		return apart(ratio, 2, r.Target) + " × " + floor
	}
}

func (r Row) mark() string {
	switch within, known := r.Within(); {
	case r.Target == nil:
		return ""
	case !known:
		return markUnknown
	case within:
		return markWithin
	default:
		return markMissed
	}
}

// oneLine makes any white space a single blank, for an error that is told as a reason has lines of its own.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
