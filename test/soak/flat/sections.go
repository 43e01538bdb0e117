package flat

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// Sections tell each quantity: its stretches against their bound, and all that was read of it with the faults as marks.
func (r *Record) Sections() []report.Section {
	var sections []report.Section
	for _, q := range Quantities() {
		section := report.Section{ID: q.id, Title: q.Name, About: q.Why}
		if plot := r.plot(q); len(plot.Series) > 0 {
			section.Plots = []report.Plot{plot}
		}
		if q.whole {
			section.Rows = q.rowOf("over the whole run", r.whole(q.Name))
		} else {
			section.Rows = q.rows(r.stretches(q.Name))
		}
		if len(section.Rows) == 0 {
			section.NotMeasured = fmt.Sprintf("no stretch was %s long, of which it can be judged: the run was too short, or nothing was read", q.Least)
		}
		sections = append(sections, section)
	}
	return sections
}

// rows give each stretch that memory would be judged of, too, and of the shorter ones the worst.
func (q Quantity) rows(all []*stretch) []report.Row {
	var rows []report.Row
	var worst *stretch
	worstIs, shorter := 0.0, 0
	for _, s := range all {
		t, enough := ThirdsOf(s.points)
		switch {
		case !enough || long(s.points) < q.Least:
		case long(s.points) >= lastingLife:
			rows = append(rows, q.row(s.String(), t))
		default:
			shorter++
			if excess := q.excess(t); worst == nil || excess > worstIs {
				worst, worstIs = s, excess
			}
		}
	}
	if worst == nil {
		return rows
	}
	return append(rows, q.rowOf(fmt.Sprintf("the worst of %d shorter lives: %s", shorter, worst), worst.points)...)
}

// rowOf is a row of points, if they can be judged.
func (q Quantity) rowOf(what string, points []Point) []report.Row {
	t, enough := ThirdsOf(points)
	if !enough || long(points) < q.Least {
		return nil
	}
	return []report.Row{q.row(what, t)}
}

// row holds the last third against the middle one. Of what was 0 there is no ratio, so the slack is held against it.
func (q Quantity) row(what string, t Thirds) report.Row {
	row := report.Row{What: what, Measure: "last third", Unit: q.Unit, First: &t.First, Value: t.Last, Samples: t.Points}
	if t.Middle == 0 {
		row.Target = report.AtMost(q.Slack)
		return row
	}
	row.Floor, row.FloorName, row.Target = ptr.To(t.Middle), "middle third", report.AtMost(q.most(t))
	return row
}

func (s *stretch) String() string {
	role := "follows"
	if s.leads {
		role = "leads"
	}
	return fmt.Sprintf("server %d, life %d, %s", s.server, s.life, role)
}

// plot shows all that was read of a quantity, one line for each server.
func (r *Record) plot(q Quantity) report.Plot {
	p := report.Plot{Kind: report.Timeline, Title: q.Name, XLabel: "minutes", YLabel: string(q.Unit), Marks: r.marks()}
	samples, name := r.Servers, func(s Sample) string { return fmt.Sprintf("server %d", s.Server) }
	if q.whole {
		samples, name = r.Whole, func(Sample) string { return q.Name }
	}
	for _, s := range samples {
		value, read := s.Values[q.Name]
		if !read {
			continue
		}
		at := slices.IndexFunc(p.Series, func(of report.Series) bool { return of.Name == name(s) })
		if at < 0 {
			at = len(p.Series)
			p.Series = append(p.Series, report.Series{Name: name(s)})
		}
		p.Series[at].X = append(p.Series[at].X, s.At.Minutes())
		p.Series[at].Y = append(p.Series[at].Y, value)
	}
	slices.SortFunc(p.Series, func(a, b report.Series) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// marks are the faults by their kind, the kinds in their alphabet's order.
func (r *Record) marks() []report.Mark {
	var marks []report.Mark
	for _, f := range r.Faults {
		at := slices.IndexFunc(marks, func(of report.Mark) bool { return of.Name == f.Kind })
		if at < 0 {
			at = len(marks)
			marks = append(marks, report.Mark{Name: f.Kind})
		}
		marks[at].X = append(marks[at].X, f.At.Minutes())
	}
	slices.SortFunc(marks, func(a, b report.Mark) int { return cmp.Compare(a.Name, b.Name) })
	return marks
}
