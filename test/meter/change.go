package meter

import (
	"fmt"
	"math"
	"time"
)

// startTolerance is by how many seconds a process's start may differ between readings. It is computed from the machine's
// clock, which may be set in between; no server restarts within two seconds of its start.
const startTolerance = 2.0

// Change is what happened between two readings of one source.
type Change struct{ before, after *Reading }

// Between compares two readings. It gives an error when they are not of one process, whose counters could not be compared.
func Between(before, after *Reading) (*Change, error) {
	if before.source != after.source {
		return nil, fmt.Errorf("readings of two servers, %s and %s, cannot be compared", before.source, after.source)
	}
	if after.at.Before(before.at) {
		return nil, fmt.Errorf("the readings of %s are in the wrong order: give the earlier one first", before.source)
	}
	for _, r := range []*Reading{before, after} {
		for _, metric := range []string{startTime, cpuSeconds} {
			if !r.Has(metric) {
				return nil, fmt.Errorf("%s does not tell %s, so that nobody knows whether it restarted: read another of its paths", r.source, metric)
			}
		}
	}
	c := &Change{before, after}
	if math.Abs(c.Value(startTime, nil)) > startTolerance || c.Value(cpuSeconds, nil) < 0 {
		return nil, fmt.Errorf("%s restarted between the readings (it had started at %s, then at %s), or another process answered: "+
			"measure again, and read one process rather than whichever a load balancer chooses", before.source, before.started(), after.started())
	}
	return c, nil
}

func (r *Reading) started() string {
	return time.UnixMilli(int64(r.Value(startTime, nil) * 1000)).UTC().Format(time.RFC3339)
}

// Took is the time between the readings.
func (c *Change) Took() time.Duration { return c.after.at.Sub(c.before.at) }

// CPU is the processor time that the process took, of all processors together.
func (c *Change) CPU() time.Duration { return inSeconds(c.Value(cpuSeconds, nil)) }

// Value is by how much Reading.Value grew. It means something for counters, and for histograms, whose observations it counts.
func (c *Change) Value(metric string, labels Labels) float64 {
	return c.after.Value(metric, labels) - c.before.Value(metric, labels)
}

// Mean is the mean of what a histogram or a summary of seconds observed between the readings, and how often it did; 0 if
// never.
func (c *Change) Mean(metric string, labels Labels) (mean time.Duration, count int) {
	countBefore, sumBefore := c.before.Observed(metric, labels)
	countAfter, sumAfter := c.after.Observed(metric, labels)
	count = countAfter - countBefore
	return meanOf(count, sumAfter-sumBefore), count
}
