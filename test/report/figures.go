package report

import (
	"math"
	"strconv"
	"strings"
)

// figure writes a value: three significant digits, but none before the point is rounded away, and a whole number is
// written as one. A row that is held against its target keeps more where it would else read as on the other side of it.
func figure(value float64, target *Target) string {
	if value == math.Trunc(value) {
		return apart(value, 0, target)
	}
	decimals := 0
	if _, exponent, ok := strings.Cut(strconv.FormatFloat(value, 'e', 2, 64), "e"); ok {
		power, _ := strconv.Atoi(exponent) // FormatFloat wrote it.
		decimals = max(0, 2-power)
	}
	return apart(value, decimals, target)
}

// apart writes a value with that many decimals, and more until what is read is on the same side of the target: 1.304 with
// at most 1.30 is missed, and "1.30" would not say so.
func apart(value float64, decimals int, target *Target) string {
	for {
		text := strconv.FormatFloat(value, 'f', decimals, 64)
		read, err := strconv.ParseFloat(text, 64)
		if err != nil || target == nil || target.met(read) == target.met(value) {
			return text
		}
		decimals++
	}
}

// quantity is a figure with its unit.
func quantity(value float64, unit Unit, target *Target) string {
	return withUnit(figure(value, target), unit)
}

func withUnit(text string, unit Unit) string {
	if unit == Count {
		return text
	}
	return text + " " + string(unit)
}

// bound writes a target as ≤ or ≥ with all of its digits: two decimals at least for a ratio, the unit for a figure.
func (r Row) bound() string {
	sign, value := "≤ ", 0.0
	switch {
	case r.Target == nil:
		return ""
	case r.Target.AtMost != nil:
		value = *r.Target.AtMost
	case r.Target.AtLeast != nil:
		sign, value = "≥ ", *r.Target.AtLeast
	default:
		return ""
	}
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if r.Floor == nil {
		return sign + withUnit(text, r.Unit)
	}
	if ratio := strconv.FormatFloat(value, 'f', 2, 64); len(ratio) > len(text) {
		text = ratio
	}
	return sign + text
}
