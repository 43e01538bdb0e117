package report

import (
	"fmt"
	"strings"
)

// Targets are the rows of a run that have a target, by how they stand to it.
type Targets struct {
	Within, Missed []Row
	// Unknown are those that cannot be held against it, because the floor that they would be a ratio to is 0, or they are no number.
	Unknown []Row
}

// Targets sorts the run's rows by how they stand to their targets. Those that have none are left out, and so is all that
// was not measured.
func (r *Run) Targets() Targets {
	var t Targets
	for _, section := range r.Sections {
		for _, row := range section.Rows {
			switch within, known := row.Within(); {
			case row.Target == nil:
			case !known:
				t.Unknown = append(t.Unknown, row)
			case within:
				t.Within = append(t.Within, row)
			default:
				t.Missed = append(t.Missed, row)
			}
		}
	}
	return t
}

// All is how many rows have a target.
func (t Targets) All() int { return len(t.Within) + len(t.Missed) + len(t.Unknown) }

// String is one line: how many are within, and which are not.
func (t Targets) String() string {
	if t.All() == 0 {
		return "no figure has a target"
	}
	text := fmt.Sprintf("%d of %d targets are within", len(t.Within), t.All())
	if len(t.Missed) > 0 {
		text += "; missed: " + names(t.Missed)
	}
	if len(t.Unknown) > 0 {
		text += "; unknown: " + names(t.Unknown)
	}
	return text
}

// names quotes what was measured: it may have commas in it.
func names(rows []Row) string {
	all := make([]string, 0, len(rows))
	for _, row := range rows {
		all = append(all, fmt.Sprintf("%q %s", row.What, row.Measure))
	}
	return strings.Join(all, ", ")
}

// notMeasured are the titles of the sections that have no figures.
func (r *Run) notMeasured() (titles []string) {
	for _, section := range r.Sections {
		if section.NotMeasured != "" {
			titles = append(titles, section.Title)
		}
	}
	return titles
}
