package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/test/report"
)

func TestParse(t *testing.T) {
	o, err := parse(nil)
	require.NoError(t, err)
	assert.Equal(t, time.Hour, o.During)
	assert.NotZero(t, o.Seed, "a seed is drawn, and told")
	assert.Equal(t, "soak-results", o.out)
	o, err = parse([]string{"-duration=2m", "-seed=7", "-out=elsewhere"})
	require.NoError(t, err)
	assert.Equal(t, 2*time.Minute, o.During)
	assert.Equal(t, uint64(7), o.Seed)
	assert.Equal(t, "elsewhere", o.out)
}

func TestParse_Refusals(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"too short":       {[]string{"-duration=30s"}, "-duration: a soak of 30s: give it 1m0s at least"},
		"too long":        {[]string{"-duration=24h"}, "and 11h0m0s at most"},
		"no duration":     {[]string{"-duration=hour"}, "-duration"},
		"no seed":         {[]string{"-seed=-1"}, "-seed"},
		"no folder":       {[]string{"-out="}, "-out is empty: name a folder"},
		"no flag":         {[]string{"1h"}, `"1h" is no flag`},
		"an unknown flag": {[]string{"-fast"}, "flag provided but not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tt.args)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestVerdict(t *testing.T) {
	of := func(rows ...report.Row) error {
		return verdict(&report.Run{Sections: []report.Section{{ID: "it", Rows: rows}}})
	}
	within := report.Row{What: "sessions", Measure: "failed", Target: report.AtMost(0)}
	missed := report.Row{What: "server 1", Measure: "last third", Value: 12, Floor: ptr.To(10.0), Target: report.AtMost(1.1)}
	unknown := report.Row{What: "server 2", Measure: "last third", Value: 12, Floor: ptr.To(0.0), Target: report.AtMost(1.1)}
	require.NoError(t, of())
	require.NoError(t, of(within))
	require.EqualError(t, of(within, missed), `1 of 2 targets are within; missed: "server 1" last third`)
	require.ErrorContains(t, of(within, unknown), `unknown: "server 2" last third`, "what cannot be judged is not taken for flat")
}
