package meter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const begin = 1764512345.67 // when the process had started

// between is the change from one text to another, of one process that took a second's processor time in ten seconds.
func between(t *testing.T, before, after string) *Change {
	t.Helper()
	first, second := told(t, processOf(begin, 12.25), before), told(t, processOf(begin, 13.25), after)
	second.at = first.at.Add(10 * time.Second)
	c, err := Between(first, second)
	require.NoError(t, err)
	return c
}

func TestChange(t *testing.T) {
	c := between(t, durations, `# TYPE sandbox_omnia_reconcile_duration_seconds histogram
sandbox_omnia_reconcile_duration_seconds_bucket{result="success",le="+Inf"} 34
sandbox_omnia_reconcile_duration_seconds_sum{result="success"} 0.5
sandbox_omnia_reconcile_duration_seconds_count{result="success"} 34
sandbox_omnia_reconcile_duration_seconds_bucket{result="error",le="+Inf"} 10
sandbox_omnia_reconcile_duration_seconds_sum{result="error"} 0.5
sandbox_omnia_reconcile_duration_seconds_count{result="error"} 10
# TYPE etcd_server_proposals_committed_total gauge
etcd_server_proposals_committed_total 7
`)
	assert.Equal(t, time.Second, c.CPU())
	assert.Equal(t, 10*time.Second, c.Took())
	mean, count := c.Mean("sandbox_omnia_reconcile_duration_seconds", nil)
	assert.InDelta(t, 50*time.Millisecond, mean, 1, "of the four that were between the readings")
	assert.Equal(t, 4, count)
	mean, count = c.Mean("sandbox_omnia_reconcile_duration_seconds", Labels{"result": "error"})
	assert.Zero(t, mean)
	assert.Zero(t, count)
	assert.InDelta(t, 4, c.Value("sandbox_omnia_reconcile_duration_seconds", nil), 0)
	assert.InDelta(t, 7, c.Value("etcd_server_proposals_committed_total", nil), 0, "what is told of only later began at 0")
	assert.Zero(t, c.Value("no_such_metric", nil))
}

func TestBetween(t *testing.T) {
	with := func(change func(*Reading)) *Reading {
		r := told(t, processOf(begin, 2))
		change(r)
		return r
	}
	same := func(*Reading) {}
	for name, test := range map[string]struct {
		before, after *Reading
		want          string // of the error; empty if there is none
	}{
		"one process":                           {with(same), with(same), ""},
		"the machine's clock was set meanwhile": {with(same), told(t, processOf(begin-1.5, 2)), ""},
		"a restart":                             {with(same), told(t, processOf(begin+30, 3)), "it had started at 2025-11-30T14:19:05Z, then at 2025-11-30T14:19:35Z"},
		"a replica that had started earlier":    {with(same), told(t, processOf(begin-30, 3)), "load balancer"},
		"counters that began again":             {with(same), told(t, processOf(begin+1, 1)), "tested restarted"},
		"no start before":                       {told(t, durations), with(same), "tested does not tell process_start_time_seconds"},
		"no start after":                        {with(same), told(t, durations), "tested does not tell process_start_time_seconds"},
		"no processor time":                     {with(func(r *Reading) { delete(r.families, cpuSeconds) }), with(same), "tested does not tell process_cpu_seconds_total"},
		"two servers":                           {with(same), with(func(r *Reading) { r.source = "etcd" }), "two servers, tested and etcd"},
		"the later one first":                   {with(same), with(func(r *Reading) { r.at = r.at.Add(-time.Hour) }), "wrong order"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Between(test.before, test.after)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}
