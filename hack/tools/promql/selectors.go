package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

var promQL = parser.NewParser(parser.Options{})

// parse gives what an expression asks for, and the labels that its outermost aggregation leaves.
func parse(text string) (found []Selector, by []string, err error) {
	expr, err := promQL.ParseExpr(text)
	if err != nil {
		return nil, nil, err
	}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		if vector, ok := node.(*parser.VectorSelector); ok {
			found = append(found, selectorOf(vector, path))
		}
		return nil
	})
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("%s asks for no metric", text)
	}
	return found, aggregatedBy(expr), nil
}

// aggregatedBy looks for the outermost aggregation: of an operation's sides the first is it that names series.
func aggregatedBy(node parser.Node) []string {
	switch node := node.(type) {
	case *parser.AggregateExpr:
		if node.Without {
			return nil
		}
		return append([]string{}, node.Grouping...)
	case *parser.VectorSelector, *parser.MatrixSelector:
		return nil
	}
	for _, child := range parser.Children(node) {
		if expr, ok := child.(parser.Expr); !ok || expr.Type() != parser.ValueTypeScalar {
			return aggregatedBy(child)
		}
	}
	return nil
}

// selectorOf describes a selector that stands within the nodes of a path.
func selectorOf(vector *parser.VectorSelector, path []parser.Node) Selector {
	s := Selector{Metric: vector.Name}
	needed := map[string]bool{}
	for _, matcher := range vector.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			continue
		}
		s.Matchers = append(s.Matchers, Matcher{Name: matcher.Name, Type: matcher.Type.String(), Value: matcher.Value})
		needed[matcher.Name] = true
	}
	for _, node := range path {
		for _, name := range namedBy(node) {
			needed[name] = true
		}
	}
	s.Labels, s.Function = slices.Sorted(maps.Keys(needed)), appliedTo(path)
	return s
}

// namedBy are the labels that a node expects of the series below it.
func namedBy(node parser.Node) []string {
	switch node := node.(type) {
	case *parser.AggregateExpr:
		return node.Grouping
	case *parser.BinaryExpr:
		if node.VectorMatching != nil {
			return node.VectorMatching.MatchingLabels
		}
	}
	return nil
}

// appliedTo names the function to which the end of a path is handed.
func appliedTo(path []parser.Node) string {
	for _, node := range slices.Backward(path) {
		switch node := node.(type) {
		case *parser.MatrixSelector, *parser.ParenExpr, *parser.SubqueryExpr, parser.Expressions:
		case *parser.Call:
			return node.Func.Name
		default:
			return ""
		}
	}
	return ""
}
