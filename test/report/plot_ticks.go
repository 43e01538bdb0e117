package report

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

const (
	mostSteps = 6    // on a linear axis
	mostTicks = 12   // have labels on a logarithmic scale; with more, only the powers of ten have
	closest   = 0.05 // are two labels, as a share of the axis
)

// logTicks are 1, 2 and 5 of each power of ten, from the last that is not above low to the first that is not below high. The
// library's are whole decades, of which times often fill but a part.
func logTicks(low, high float64) plot.ConstantTicks {
	var all plot.ConstantTicks
	for power := int(math.Floor(math.Log10(low))) - 1; power <= int(math.Ceil(math.Log10(high)))+1; power++ {
		for _, digit := range []float64{1, 2, 5} {
			all = append(all, tick(digit*math.Pow10(power), power))
		}
	}
	first := slices.IndexFunc(all, func(t plot.Tick) bool { return t.Value > low }) - 1
	last := slices.IndexFunc(all, func(t plot.Tick) bool { return t.Value >= high })
	if first == last {
		first, last = first-1, last+1
	}
	sparse := last-first >= mostTicks
	for i := range all {
		if sparse && i%3 != 0 {
			all[i].Label = ""
		}
	}
	return all[first : last+1]
}

// tick has as many decimals as the power of ten that it is a multiple of.
func tick(value float64, power int) plot.Tick {
	return plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', max(0, -power), 64)}
}

// linearTicks are multiples of 1, 2 or 5 of a power of ten, from the last that is not above low to the first that is not
// below high. The library's are as few as two.
func linearTicks(low, high float64) plot.ConstantTicks {
	power, digit := int(math.Floor(math.Log10((high-low)/mostSteps))), 10.0
	for _, smaller := range []float64{5, 2, 1} {
		if (high-low)/(smaller*math.Pow10(power)) <= mostSteps {
			digit = smaller
		}
	}
	if digit == 10 {
		digit, power = 1, power+1
	}
	step := digit * math.Pow10(power)
	var ticks plot.ConstantTicks
	for i := math.Floor(low / step); i <= math.Ceil(high/step); i++ {
		ticks = append(ticks, tick(i*step, power))
	}
	return ticks
}

// ownTicks are at the points' own X, with a label where it does not run into the one before.
func (p Plot) ownTicks(low, high float64) plot.ConstantTicks {
	var own []float64
	for _, s := range p.Series {
		own = append(own, s.X...)
	}
	slices.Sort(own)
	var ticks plot.ConstantTicks
	before := math.Inf(-1)
	for _, x := range slices.Compact(own) {
		at := plot.LogScale{}.Normalize(low, high, x)
		label := ""
		if at-before >= closest {
			label, before = figure(x, nil), at
		}
		ticks = append(ticks, plot.Tick{Value: x, Label: label})
	}
	return ticks
}

// along gives an axis these ticks, and has it reach from the first to the last.
func along(axis *plot.Axis, ticks plot.ConstantTicks) {
	axis.Tick.Marker = ticks
	axis.Min, axis.Max = ticks[0].Value, ticks[len(ticks)-1].Value
}
