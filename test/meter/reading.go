package meter

import (
	"context"
	"errors"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// What every process tells that uses Prometheus' Go client.
const (
	startTime     = "process_start_time_seconds"
	cpuSeconds    = "process_cpu_seconds_total"
	residentBytes = "process_resident_memory_bytes"
	heapBytes     = "go_memstats_heap_alloc_bytes"
	goroutines    = "go_goroutines"
)

// Labels choose series: those that have all of these values. As everywhere with Prometheus, an empty value and none are the
// same.
type Labels map[string]string

// Reading is what one server told at one time.
type Reading struct {
	source   string
	at       time.Time // when it was asked, with the monotonic clock
	families map[string]*dto.MetricFamily
}

// Read reads a source once. Reading is not for nothing: kube-apiserver may take tens of milliseconds of processor time for
// it, and what the first of two readings took is part of the change between them.
func Read(ctx context.Context, source Source) (_ *Reading, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading the metrics of %s: %w", source.Name, err)
		}
	}()
	at := time.Now()
	body, err := source.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return nil, err
	}
	return &Reading{source: source.Name, at: at, families: families}, nil
}

// At is when the server was asked.
func (r *Reading) At() time.Time { return r.at }

// Has says whether the server told of a metric. One that has labels is told of only once it has counted something.
func (r *Reading) Has(metric string) bool { return r.families[metric] != nil }

// Value is the sum over those series of a counter or a gauge that have the labels; of a histogram or a summary, how often
// something was observed. It is 0 where there is none.
func (r *Reading) Value(metric string, labels Labels) float64 {
	sum := 0.0
	for _, series := range r.series(metric, labels) {
		sum += value(series)
	}
	return sum
}

// Observed is how often something was observed by those series of a histogram or a summary that have the labels, and the sum
// of what was observed, in the metric's own unit.
func (r *Reading) Observed(metric string, labels Labels) (count int, sum float64) {
	for _, series := range r.series(metric, labels) {
		count += int(series.GetHistogram().GetSampleCount() + series.GetSummary().GetSampleCount())
		sum += series.GetHistogram().GetSampleSum() + series.GetSummary().GetSampleSum()
	}
	return count, sum
}

// Mean is the mean of what a histogram or a summary of seconds has observed since the server's start, and how often it did; 0
// if never.
func (r *Reading) Mean(metric string, labels Labels) (mean time.Duration, count int) {
	count, sum := r.Observed(metric, labels)
	return meanOf(count, sum), count
}

// Memory is what the process holds of the machine's memory, and what of its heap is allocated, garbage that was not yet
// collected included, in bytes. For what is alive alone, call CollectGarbage before the reading.
func (r *Reading) Memory() (resident, heap int64) {
	return int64(r.Value(residentBytes, nil)), int64(r.Value(heapBytes, nil))
}

// Goroutines is how many there were.
func (r *Reading) Goroutines() int { return int(r.Value(goroutines, nil)) }

// series are those of a metric that have the labels.
func (r *Reading) series(metric string, labels Labels) []*dto.Metric {
	var chosen []*dto.Metric
	for _, series := range r.families[metric].GetMetric() {
		if labels.match(series) {
			chosen = append(chosen, series)
		}
	}
	return chosen
}

func (l Labels) match(series *dto.Metric) bool {
	for name, want := range l {
		if label(series, name) != want {
			return false
		}
	}
	return true
}

func label(series *dto.Metric, name string) string {
	for _, pair := range series.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// value is what a series counts. Only one of these is there; the others are 0.
func value(series *dto.Metric) float64 {
	return series.GetCounter().GetValue() + series.GetGauge().GetValue() + series.GetUntyped().GetValue() +
		float64(series.GetHistogram().GetSampleCount()+series.GetSummary().GetSampleCount())
}

func meanOf(count int, seconds float64) time.Duration {
	if count == 0 {
		return 0
	}
	return inSeconds(seconds / float64(count))
}

func inSeconds(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
