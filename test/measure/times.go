// Package measure takes times: of single calls in turns with their floor, of as many callers as wanted, and of calls that
// arrive by themselves whatever became of the earlier ones. Times are the machine's monotonic ones, taken by the caller. It
// refuses to know what it measures, and to judge.
package measure

import (
	"math"
	"slices"
	"time"
)

// Times are how long each of several calls took.
type Times []time.Duration

// At is the time that this share of the calls, 0 to 1, did not exceed (the nearest rank); 0 if there were none.
func (t Times) At(share float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	rank := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Mean is the calls' mean time; 0 if there were none.
func (t Times) Mean() time.Duration {
	if len(t) == 0 {
		return 0
	}
	var sum time.Duration
	for _, d := range t {
		sum += d
	}
	return sum / time.Duration(len(t))
}

// Milliseconds gives a time as figures are told.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
