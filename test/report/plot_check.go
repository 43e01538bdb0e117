package report

import (
	"errors"
	"fmt"
	"slices"
)

// check refuses what the plot's kind cannot show.
func (p Plot) check() error {
	if len(p.Series) == 0 {
		return errors.New("series: there is none: leave the plot out")
	}
	var of func(Series) error
	switch p.Kind {
	case Distribution:
		of = Series.checkDistribution
	case Lines:
		of = Series.checkPoints
	case Timeline:
		of = Series.checkTimes
	case Bars:
		of = Series.checkBars
	default:
		return fmt.Errorf("kind is %q: use %q, %q, %q or %q", p.Kind, Distribution, Lines, Timeline, Bars)
	}
	if err := p.checkMarks(); err != nil {
		return err
	}
	for _, s := range p.Series {
		err := s.finite()
		if len(s.Y) == 0 {
			err = errors.New("it is empty: leave the series out")
		}
		if err == nil {
			err = of(s)
		}
		if err != nil {
			return fmt.Errorf("series %q: %w", s.Name, err)
		}
	}
	return nil
}

// checkMarks is for moments on a line of time.
func (p Plot) checkMarks() error {
	if len(p.Marks) > 0 && p.Kind != Timeline {
		return fmt.Errorf("marks: a plot of kind %q has none: use %q", p.Kind, Timeline)
	}
	for _, mark := range p.Marks {
		for i, x := range mark.X {
			if x < 0 || !isFinite(x) {
				return fmt.Errorf("mark %q: x[%d] is %v, and time begins at 0: leave it out", mark.Name, i, x)
			}
		}
	}
	return nil
}

// checkTimes is for an X that begins at 0.
func (s Series) checkTimes() error {
	if err := s.checkOrder(); err != nil {
		return err
	}
	if s.X[0] < 0 {
		return fmt.Errorf("x[0] is %v, and time begins at 0: leave the point out", s.X[0])
	}
	return nil
}

// checkPoints is for a logarithmic X, on which there is no 0.
func (s Series) checkPoints() error {
	for i, x := range s.X {
		if x <= 0 {
			return fmt.Errorf("x[%d] is %v, and a logarithmic scale begins above 0: leave the point out", i, x)
		}
	}
	return s.checkOrder()
}

func (s Series) checkOrder() error {
	if len(s.X) != len(s.Y) {
		return fmt.Errorf("it has %d x and %d y: give each point both", len(s.X), len(s.Y))
	}
	if !slices.IsSorted(s.X) {
		return errors.New("x falls: sort the points by x")
	}
	return nil
}

func (s Series) checkDistribution() error {
	if err := s.checkPoints(); err != nil {
		return err
	}
	if !slices.IsSorted(s.Y) {
		return errors.New("y falls: give what share took x or less, which only grows with x")
	}
	if s.Y[0] < 0 || s.Y[len(s.Y)-1] > 1 {
		return fmt.Errorf("y is from %v to %v: give shares between 0 and 1", s.Y[0], s.Y[len(s.Y)-1])
	}
	return nil
}

func (s Series) checkBars() error {
	if len(s.Labels) != len(s.Y) {
		return fmt.Errorf("it has %d labels and %d y: name each bar", len(s.Labels), len(s.Y))
	}
	for i, label := range s.Labels {
		if slices.Contains(s.Labels[:i], label) {
			return fmt.Errorf("labels: two bars are named %q: name each differently", label)
		}
	}
	return nil
}
