package meter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// processOf is what every process tells of itself.
func processOf(started, cpu float64) string {
	return fmt.Sprintf(`# HELP go_goroutines Number of goroutines that currently exist.
# TYPE go_goroutines gauge
go_goroutines 1534
# HELP go_memstats_heap_alloc_bytes Number of heap bytes allocated and currently in use.
# TYPE go_memstats_heap_alloc_bytes gauge
go_memstats_heap_alloc_bytes 9.8765432e+07
# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total %g
# HELP process_resident_memory_bytes Resident memory size in bytes.
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 2.62144e+08
# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.
# TYPE process_start_time_seconds gauge
process_start_time_seconds %.2f
`, cpu, started)
}

const durations = `# HELP sandbox_omnia_reconcile_duration_seconds [ALPHA] How long a reconcile of a claim took, by result.
# TYPE sandbox_omnia_reconcile_duration_seconds histogram
sandbox_omnia_reconcile_duration_seconds_bucket{result="success",le="0.005"} 20
sandbox_omnia_reconcile_duration_seconds_bucket{result="success",le="+Inf"} 30
sandbox_omnia_reconcile_duration_seconds_sum{result="success"} 0.3
sandbox_omnia_reconcile_duration_seconds_count{result="success"} 30
sandbox_omnia_reconcile_duration_seconds_bucket{result="error",le="0.005"} 0
sandbox_omnia_reconcile_duration_seconds_bucket{result="error",le="+Inf"} 10
sandbox_omnia_reconcile_duration_seconds_sum{result="error"} 0.5
sandbox_omnia_reconcile_duration_seconds_count{result="error"} 10
# HELP go_gc_duration_seconds A summary of the wall-time pause (stop-the-world) duration in garbage collection cycles.
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="0"} 1.5e-05
go_gc_duration_seconds{quantile="1"} 0.004
go_gc_duration_seconds_sum 0.02
go_gc_duration_seconds_count 40
`

const inflight = `# HELP apiserver_current_inflight_requests [STABLE] Maximal number of currently used inflight request limit.
# TYPE apiserver_current_inflight_requests gauge
apiserver_current_inflight_requests{request_kind="mutating"} 3
apiserver_current_inflight_requests{request_kind="readOnly"} 4
# HELP apiserver_selfrequest_total [ALPHA] Counter of apiserver self-requests.
# TYPE apiserver_selfrequest_total counter
apiserver_selfrequest_total{group="",resource="services",subresource="",verb="LIST"} 5
apiserver_selfrequest_total{group="",resource="nodes",subresource="status",verb="LIST"} 6
untyped_thing 8
`

// body is a source's answer that knows whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// told is a reading of a server called "tested" that tells this.
func told(t *testing.T, text ...string) *Reading {
	t.Helper()
	answer := &body{Reader: strings.NewReader(strings.Join(text, ""))}
	r, err := Read(t.Context(), Source{Name: "tested", Read: func(context.Context) (io.ReadCloser, error) { return answer, nil }})
	require.NoError(t, err)
	require.True(t, answer.closed)
	return r
}

func TestValue(t *testing.T) {
	r := told(t, inflight, durations)
	for name, test := range map[string]struct {
		metric string
		labels Labels
		want   float64
	}{
		"no labels: the sum of all":           {"apiserver_current_inflight_requests", nil, 7},
		"a label: its series":                 {"apiserver_current_inflight_requests", Labels{"request_kind": "mutating"}, 3},
		"several labels: those with all":      {"apiserver_selfrequest_total", Labels{"verb": "LIST", "resource": "nodes"}, 6},
		"an empty label is compared":          {"apiserver_selfrequest_total", Labels{"subresource": ""}, 5},
		"an empty label is like none":         {"apiserver_selfrequest_total", Labels{"zone": ""}, 11},
		"a value that no series has":          {"apiserver_selfrequest_total", Labels{"verb": "WATCH"}, 0},
		"a label that no series has":          {"apiserver_selfrequest_total", Labels{"zone": "a"}, 0},
		"no such metric":                      {"etcd_requests_total", nil, 0},
		"no type: as it is":                   {"untyped_thing", nil, 8},
		"a histogram: how often it observed":  {"sandbox_omnia_reconcile_duration_seconds", Labels{"result": "error"}, 10},
		"a summary: how often it observed":    {"go_gc_duration_seconds", nil, 40},
		"a histogram's parts are no metrics":  {"sandbox_omnia_reconcile_duration_seconds_sum", nil, 0},
		"a metric's name is compared wholly":  {"apiserver_selfrequest", nil, 0},
		"no series of several has all labels": {"apiserver_selfrequest_total", Labels{"resource": "services", "subresource": "status"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.InDelta(t, test.want, r.Value(test.metric, test.labels), 0)
		})
	}
	assert.True(t, r.Has("untyped_thing"))
	assert.False(t, r.Has("etcd_requests_total"))
}

func TestMean(t *testing.T) {
	r := told(t, durations)
	for name, test := range map[string]struct {
		metric string
		labels Labels
		mean   time.Duration
		count  int
	}{
		"one series":       {"sandbox_omnia_reconcile_duration_seconds", Labels{"result": "error"}, 50 * time.Millisecond, 10},
		"several together": {"sandbox_omnia_reconcile_duration_seconds", nil, 20 * time.Millisecond, 40},
		"a summary":        {"go_gc_duration_seconds", nil, 500 * time.Microsecond, 40},
		"none":             {"sandbox_omnia_acquire_duration_seconds", nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			mean, count := r.Mean(test.metric, test.labels)
			assert.InDelta(t, test.mean, mean, 1)
			assert.Equal(t, test.count, count)
		})
	}
	count, sum := r.Observed("sandbox_omnia_reconcile_duration_seconds", nil)
	assert.Equal(t, 40, count)
	assert.InDelta(t, 0.8, sum, 1e-9)
}

func TestMemoryAndGoroutines(t *testing.T) {
	r := told(t, processOf(1764512345.67, 1))
	resident, heap := r.Memory()
	assert.EqualValues(t, 250<<20, resident)
	assert.EqualValues(t, 98765432, heap)
	assert.Equal(t, 1534, r.Goroutines())
}

func TestReadWhatIsNoMetrics(t *testing.T) {
	cut := errors.New("the connection was cut")
	for name, test := range map[string]struct {
		text io.Reader
		want string
	}{
		"a page":                 {strings.NewReader("<html><body>Welcome!</body></html>\n"), "text format parsing error in line 1"},
		"an answer that was cut": {strings.NewReader("# TYPE go_goroutines gauge\ngo_gorou"), "unexpected end of input"},
		"a connection that was":  {io.MultiReader(strings.NewReader("go_goroutines 1\n"), failing{cut}), cut.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			answer := &body{Reader: test.text}
			_, err := Read(t.Context(), Source{Name: "tested", Read: func(context.Context) (io.ReadCloser, error) { return answer, nil }})
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "reading the metrics of tested")
			assert.True(t, answer.closed)
		})
	}
}

// failing is a reader that cannot be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
