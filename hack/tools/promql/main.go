// Command promql says what Prometheus' own parser and engine make of PromQL expressions: which series each asks for, and
// what it gives over series that are handed to it. It reads a JSON list of questions from its standard input, and writes one
// of answers. It refuses to know which metrics exist and what an alert should say: that is test/monitoring's.
//
// It is a module of its own, so that none of Prometheus' requirements reaches the product's go.mod.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// Question is an expression, and over which series to evaluate it, if at all.
type Question struct {
	Expr string `json:"expr"`
	// Series are written as in the tests of promtool, `up{job="a"} 1x5 0x10`: a sample a minute, from minute 0 on.
	Series []string `json:"series,omitempty"`
	// From and To are the minutes between which it is evaluated, once a minute, if there are series.
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`
}

// Answer is about one question.
type Answer struct {
	// Error is what the parser or the engine says of an expression that is wrong.
	Error string `json:"error,omitempty"`
	// Selectors are what the expression asks for.
	Selectors []Selector `json:"selectors,omitempty"`
	// By are the labels that the outermost aggregation leaves; null if there is none, and all are left.
	By []string `json:"by"`
	// Series are the labels of the question's own series, in their order, the metric's name among them.
	Series []map[string]string `json:"series,omitempty"`
	// Results are what the expression gives: for each set of labels its value at those minutes at which there is one.
	Results []Result `json:"results,omitempty"`
}

// Selector asks for the series of one metric.
type Selector struct {
	Metric   string    `json:"metric"`
	Matchers []Matcher `json:"matchers,omitempty"`
	// Labels are all that the expression expects these series to have: of matchers, aggregations and vector matching.
	Labels []string `json:"labels,omitempty"`
	// Function is what is applied to them directly; empty if nothing is.
	Function string `json:"function,omitempty"`
}

// Matcher is a condition of a selector.
type Matcher struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Result is one series of what an expression gives.
type Result struct {
	Labels map[string]string `json:"labels"`
	Values map[int]float64   `json:"values"` // by minute
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "promql:", err)
		os.Exit(1)
	}
}

func run() error {
	var questions []Question
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&questions); err != nil {
		return fmt.Errorf("reading a JSON list of questions from standard input: %w", err)
	}
	answers := make([]Answer, len(questions))
	for i, question := range questions {
		if err := answers[i].to(question); err != nil {
			answers[i] = Answer{Error: err.Error()}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

func (a *Answer) to(question Question) error {
	var err error
	if a.Selectors, a.By, err = parse(question.Expr); err != nil || len(question.Series) == 0 {
		return err
	}
	a.Series, a.Results, err = evaluate(question)
	return err
}
