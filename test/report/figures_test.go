package report

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"
)

func TestFigure(t *testing.T) {
	tests := []struct {
		value  float64
		target *Target
		want   string
	}{
		{0, nil, "0"},
		{7, nil, "7"},
		{-2, nil, "-2"},
		{1.23456, nil, "1.23"},
		{12.3456, nil, "12.3"},
		{123.456, nil, "123"},
		{1234.56, nil, "1235"},
		{12345678.9, nil, "12345679"},
		{1.2, nil, "1.20"},
		{9.996, nil, "10.0"},
		{99.96, nil, "100"},
		{0.0321, nil, "0.0321"},
		{0.00000123456, nil, "0.00000123"},
		{-1.23456, nil, "-1.23"},
		{math.NaN(), nil, "NaN"},
		{math.Inf(1), nil, "+Inf"},
		{100.4, AtMost(200), "100"},
		{100.4, AtMost(100), "100.4"},
		{99.6, AtLeast(100), "99.6"},
		{99.99996, AtLeast(100), "99.99996"},
		{100.4, AtMost(100.4), "100"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%v is %s", tt.value, tt.want), func(t *testing.T) {
			assert.Equal(t, tt.want, figure(tt.value, tt.target))
		})
	}
}

func TestBound(t *testing.T) {
	floor := ptr.To(2.0)
	tests := map[string]struct {
		row  Row
		want string
	}{
		"none":                            {Row{}, ""},
		"none of its bounds":              {Row{Target: &Target{}}, ""},
		"a ratio has two decimals":        {Row{Floor: floor, Unit: Milliseconds, Target: AtMost(1.3)}, "≤ 1.30"},
		"a ratio has more if they matter": {Row{Floor: floor, Target: AtMost(1.255)}, "≤ 1.255"},
		"a ratio, at least":               {Row{Floor: floor, Target: AtLeast(0.7)}, "≥ 0.70"},
		"a figure has its unit":           {Row{Unit: Milliseconds, Target: AtMost(250)}, "≤ 250 ms"},
		"a count has none":                {Row{Target: AtLeast(2.5)}, "≥ 2.5"},
		"every digit of a figure":         {Row{Unit: PerSecond, Target: AtLeast(12345.25)}, "≥ 12345.25 1/s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, tt.row.bound()) })
	}
}

// TestRatioIsOnItsSide: what is read must not contradict the verdict.
func TestRatioIsOnItsSide(t *testing.T) {
	texts := func(value, bound float64) []string {
		l := Row{What: "it", Measure: "p50", Value: value, Floor: ptr.To(1.0), Target: AtMost(bound)}.line()
		return []string{l.Cells[7].Text, l.Cells[8].Text, l.Cells[9].Text}
	}
	assert.Equal(t, []string{"1.30", "≤ 1.30", "within"}, texts(1.3, 1.3))
	assert.Equal(t, []string{"1.304", "≤ 1.30", "MISSED"}, texts(1.304, 1.3))
	assert.Equal(t, []string{"1.296", "≤ 1.297", "within"}, texts(1.296, 1.297))
	assert.Equal(t, []string{"1.50", "≤ 1.30", "MISSED"}, texts(1.504, 1.3))
}

func TestStanding(t *testing.T) {
	var got []string
	for _, section := range sample().Sections {
		for _, l := range section.grid().Lines {
			got = append(got, l.Standing)
		}
	}
	assert.Equal(t, []string{
		"acquire, 1 caller p50: 1.15 × GET of its claim, target ≤ 1.30",
		"acquire, 1 caller p99: 1.304 × GET of its claim, target ≤ 1.30",
		"acquire, 1 caller throughput: 0.77 × GET of its claim, target ≥ 0.70",
		"waiting writes: nobody waits is 0, target ≤ 1.00",
		"", // without a target
		"server resident: 143 MiB, target ≤ 200 MiB",
	}, got)
	unnamed := Row{What: "it", Measure: "p50", Value: 3, Floor: ptr.To(2.0), Target: AtMost(2)}
	assert.Equal(t, "it p50: 1.50 × its floor, target ≤ 2.00", unnamed.line().Standing)
}
