package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// WriteJSON writes the run, indented, so that ReadJSON gives it back. It refuses figures that JSON has no form for.
func (r *Run) WriteJSON(w io.Writer) error {
	if err := r.finite(); err != nil {
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// ReadJSON reads a run that WriteJSON wrote. It refuses fields that it does not know, and targets that are none.
func ReadJSON(from io.Reader) (*Run, error) {
	decoder := json.NewDecoder(from)
	decoder.DisallowUnknownFields()
	var r Run
	if err := decoder.Decode(&r); err != nil {
		return nil, fmt.Errorf("reading a run: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading a run: something follows it: give one run alone")
	}
	for _, section := range r.Sections {
		for _, row := range section.Rows {
			if t := row.Target; t != nil && (t.AtMost == nil) == (t.AtLeast == nil) {
				return nil, fmt.Errorf("section %q: %q %s: target: set one of atMost and atLeast", section.ID, row.What, row.Measure)
			}
		}
	}
	return &r, nil
}

// finite names a figure that is none.
func (r *Run) finite() error {
	for _, section := range r.Sections {
		for _, row := range section.Rows {
			if err := row.finite(); err != nil {
				return fmt.Errorf("section %q: %q %s: %w", section.ID, row.What, row.Measure, err)
			}
		}
		for _, plot := range section.Plots {
			for _, series := range plot.Series {
				if err := series.finite(); err != nil {
					return fmt.Errorf("section %q: plot %q: series %q: %w", section.ID, plot.Title, series.Name, err)
				}
			}
			for _, mark := range plot.Marks {
				if err := allFinite("x", mark.X); err != nil {
					return fmt.Errorf("section %q: plot %q: mark %q: %w", section.ID, plot.Title, mark.Name, err)
				}
			}
		}
	}
	return nil
}

func (r Row) finite() error {
	figures := map[string]*float64{"value": &r.Value, "floor": r.Floor, "first": r.First}
	if r.Target != nil {
		figures["atMost"], figures["atLeast"] = r.Target.AtMost, r.Target.AtLeast
	}
	for name, figure := range figures {
		if figure != nil && !isFinite(*figure) {
			return fmt.Errorf("%s is %v: leave the row out, or say in notMeasured why there is none", name, *figure)
		}
	}
	return nil
}

func (s Series) finite() error {
	return errors.Join(allFinite("x", s.X), allFinite("y", s.Y))
}

func allFinite(name string, values []float64) error {
	for i, value := range values {
		if !isFinite(value) {
			return fmt.Errorf("%s[%d] is %v: leave the point out", name, i, value)
		}
	}
	return nil
}

func isFinite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }
