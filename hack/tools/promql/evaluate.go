package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

const (
	// timeout and maxSamples bound a query; these are of some hundred samples.
	timeout    = time.Minute
	maxSamples = 1_000_000
)

// evaluate gives what an expression gives over the question's series, each minute.
func evaluate(question Question) ([]map[string]string, []Result, error) {
	series, err := parseSeries(question.Series)
	if err != nil {
		return nil, nil, err
	}
	given := make([]map[string]string, len(series))
	for i := range series {
		given[i] = series[i].Metric.Map()
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: maxSamples, Timeout: timeout, Parser: promQL})
	query, err := engine.NewRangeQuery(context.Background(), queryable(series), nil, question.Expr, minute(question.From), minute(question.To), time.Minute)
	if err != nil {
		return nil, nil, err
	}
	defer query.Close()
	answer := query.Exec(context.Background())
	matrix, err := answer.Matrix()
	if err != nil {
		return nil, nil, fmt.Errorf("evaluating %s: %w", question.Expr, err)
	}
	var results []Result
	for _, one := range matrix {
		result := Result{Labels: one.Metric.Map(), Values: map[int]float64{}}
		for _, point := range one.Floats {
			result.Values[int(time.UnixMilli(point.T).Sub(minute(0)).Minutes())] = point.F
		}
		results = append(results, result)
	}
	return given, results, nil
}

// minute is when minute n is: the first is the epoch, from which Prometheus counts.
func minute(n int) time.Time { return time.Unix(0, 0).Add(time.Duration(n) * time.Minute) }

func parseSeries(texts []string) ([]promql.Series, error) {
	var all []promql.Series
	for _, text := range texts {
		metric, values, err := promQL.ParseSeriesDesc(text)
		if err != nil {
			return nil, fmt.Errorf("series %q: %w", text, err)
		}
		series := promql.Series{Metric: metric}
		for i, value := range values {
			if !value.Omitted {
				series.Floats = append(series.Floats, promql.FPoint{T: minute(i).UnixMilli(), F: value.Value})
			}
		}
		all = append(all, series)
	}
	return all, nil
}

// queryable lets an engine read series.
func queryable(series []promql.Series) storage.Queryable {
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			chosen := &seriesSet{next: -1}
			for i := range series {
				if matches(series[i].Metric, matchers) {
					chosen.series = append(chosen.series, promql.NewStorageSeries(series[i]))
				}
			}
			return chosen
		},
	}}
}

func matches(metric labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(metric.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

// seriesSet gives one series after another.
type seriesSet struct {
	series []*promql.StorageSeries
	next   int
}

// Next goes to the next series.
func (s *seriesSet) Next() bool { s.next++; return s.next < len(s.series) }

// At is the series that it stands at.
func (s *seriesSet) At() storage.Series { return s.series[s.next] }

// Err is why there are no more: there is no reason but their end.
func (s *seriesSet) Err() error { return nil }

// Warnings are what is doubtful of them: nothing.
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
