package monitoring

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

const (
	ownPrefix = "sandbox_omnia_"
	// job is what the operator calls the targets of components/servicemonitor, after their Service.
	job = "sandbox-apiserver"
	// up is Prometheus' own, for each target.
	up = "up"
)

var (
	// targetLabels are those that the operator and components/servicemonitor give each series of a target.
	targetLabels = sets.New("job", "instance", "namespace", "service", "pod", "container", "endpoint", "metrics_path")
	// counting are the functions to which what only grows is handed.
	counting = sets.New("rate", "increase")
	// onlyThere are metrics that no other program tells, so that a selector need not say whose it means.
	onlyThere = []string{ownPrefix, "aggregator_unavailable_apiservice"}
)

// unseen are values that a server which is well does not tell, with where they come from.
var unseen = map[string]string{
	`sandbox_omnia_acquire_duration_seconds_count{outcome="error"}`: "registry/sandboxclaim: outcomeError",
	`apiserver_request_total{code="5.."}`:                           "HTTP",
	`rest_client_requests_total{code="5..|429|<error>"}`:            "HTTP, and client-go for what is not answered",
}

// faults says what a selector asks for and nobody tells.
func (k told) faults(s selector) []string {
	if s.Metric == up {
		return s.placeFaults(nil)
	}
	var at []string
	for _, where := range []string{serverPath, controllersPath, hostAPIServer} {
		if k[where][s.Metric] != nil && s.admits(where) {
			at = append(at, where)
		}
	}
	switch len(at) {
	case 0:
		return []string{s.Metric + " is not told where it is asked for"}
	case 1:
	default:
		return []string{fmt.Sprintf("%s is told at %s: choose by metrics_path", s.Metric, strings.Join(at, " and "))}
	}
	found := k[at[0]][s.Metric]
	faults := append(s.placeFaults(found), found.valueFaults(s)...)
	if found.counts != counting.Has(s.Function) {
		faults = append(faults, fmt.Sprintf("%s is handed to %q: rate and increase are for what only grows, and nothing else is", s.Metric, s.Function))
	}
	return faults
}

// admits says whether a selector's choice of targets has a place among them.
func (s selector) admits(where string) bool {
	for _, m := range s.Matchers {
		if (m.Name == "job" && where == hostAPIServer) || (m.Name == "metrics_path" && m.Value != where) {
			return false
		}
	}
	return true
}

// placeFaults are those of the choice of targets, and labels that are nobody's.
func (s selector) placeFaults(found *series) []string {
	var faults []string
	chosen := slices.ContainsFunc(onlyThere, func(prefix string) bool { return strings.HasPrefix(s.Metric, prefix) })
	for _, m := range s.Matchers {
		if m.Name == "job" {
			chosen = m.Type == "=" && m.Value == job
		}
	}
	if !chosen {
		faults = append(faults, fmt.Sprintf("%s is told by others too: choose by job=%q", s.Metric, job))
	}
	for _, label := range s.Labels {
		if !targetLabels.Has(label) && (found == nil || found.values[label] == nil) {
			faults = append(faults, fmt.Sprintf("%s has no label %s", s.Metric, label))
		}
	}
	return faults
}

// valueFaults are values that no series has.
func (f *series) valueFaults(s selector) []string {
	var faults []string
	for _, m := range s.Matchers {
		values := f.values[m.Name]
		if values == nil || unseen[fmt.Sprintf("%s{%s=%q}", s.Metric, m.Name, m.Value)] != "" {
			continue
		}
		wanted := regexp.QuoteMeta(m.Value)
		if strings.HasSuffix(m.Type, "~") {
			wanted = m.Value
		}
		pattern, err := regexp.Compile("^(?:" + wanted + ")$")
		if err != nil {
			faults = append(faults, err.Error())
		} else if !slices.ContainsFunc(values.UnsortedList(), pattern.MatchString) {
			faults = append(faults, fmt.Sprintf("no %s has %s %s, but %v", s.Metric, m.Name, m.Value, sets.List(values)))
		}
	}
	return faults
}

// TestFaults_WhatNobodyTells_IsFound is about the judge of the other tests.
func TestFaults_WhatNobodyTells_IsFound(t *testing.T) {
	k := told{}
	labels := func(name, value string) []*dto.Metric {
		return []*dto.Metric{{Label: []*dto.LabelPair{{Name: &name, Value: &value}}}}
	}
	family := func(where, name string, kind dto.MetricType, metrics []*dto.Metric) {
		k.add(where, &dto.MetricFamily{Name: &name, Type: &kind, Metric: metrics})
	}
	histogram := labels("result", "success")
	histogram[0].Histogram = &dto.Histogram{Bucket: []*dto.Bucket{{UpperBound: ptr.To(0.5)}}}
	family(serverPath, "sandbox_omnia_took_seconds", dto.MetricType_HISTOGRAM, histogram)
	family(serverPath, "workqueue_depth", dto.MetricType_GAUGE, labels("name", "a"))
	family(controllersPath, "workqueue_depth", dto.MetricType_GAUGE, labels("controller", "claim"))
	family(hostAPIServer, "apiserver_request_total", dto.MetricType_COUNTER, labels("code", "200"))

	tests := map[string]struct{ expr, fault string }{ // a part of the fault; empty if there is none
		"right":                                  {`histogram_quantile(0.5, sum by (result, le) (rate(sandbox_omnia_took_seconds_bucket{pod="a"}[5m])))`, ""},
		"right, of one path":                     {`sum by (controller) (workqueue_depth{job="sandbox-apiserver", metrics_path="/metrics/controllers"})`, ""},
		"right, up":                              {`up{job="sandbox-apiserver"} == 0`, ""},
		"no such metric":                         {`rate(sandbox_omnia_takes_seconds_count[5m])`, "sandbox_omnia_takes_seconds_count is not told"},
		"a histogram's own name":                 {`sandbox_omnia_took_seconds`, "is not told"},
		"no such label, chosen":                  {`rate(sandbox_omnia_took_seconds_count{outcome="a"}[5m])`, "has no label outcome"},
		"no such label, aggregated":              {`sum by (outcome) (rate(sandbox_omnia_took_seconds_count[5m]))`, "has no label outcome"},
		"no such label, matched":                 {`sum(rate(sandbox_omnia_took_seconds_count[5m])) / on (outcome) sum by (outcome) (rate(sandbox_omnia_took_seconds_sum[5m]))`, "has no label outcome"},
		"le of no bucket":                        {`sum by (le) (rate(sandbox_omnia_took_seconds_count[5m]))`, "has no label le"},
		"no such value":                          {`rate(sandbox_omnia_took_seconds_count{result="ok"}[5m])`, "no sandbox_omnia_took_seconds_count has result ok, but [success]"},
		"no value of the pattern":                {`rate(sandbox_omnia_took_seconds_count{result=~"succ|ok"}[5m])`, "has result succ|ok"},
		"a value to leave out that is not there": {`rate(sandbox_omnia_took_seconds_count{result!="ok"}[5m])`, "has result ok"},
		"what grows, as it stands":               {`sandbox_omnia_took_seconds_count > 3`, "for what only grows"},
		"a rate of what does not grow":           {`rate(workqueue_depth{job="sandbox-apiserver", metrics_path="/metrics"}[5m])`, "for what only grows"},
		"of two paths":                           {`workqueue_depth{job="sandbox-apiserver"}`, "choose by metrics_path"},
		"of the other path":                      {`sum by (controller) (workqueue_depth{job="sandbox-apiserver", metrics_path="/metrics"})`, "has no label controller"},
		"everybody's":                            {`workqueue_depth{metrics_path="/metrics"}`, "choose by job"},
		"of another job":                         {`up{job="sandbox"}`, "choose by job"},
		"only the host's":                        {`rate(apiserver_request_total{job="sandbox-apiserver"}[5m])`, "is not told where"},
	}
	var questions []question
	names := slices.Sorted(maps.Keys(tests))
	for _, name := range names {
		questions = append(questions, question{Expr: tests[name].expr})
	}
	for i, got := range ask(t, questions) {
		t.Run(names[i], func(t *testing.T) {
			require.Empty(t, got.Error)
			var faults []string
			for _, s := range got.Selectors {
				faults = append(faults, k.faults(s)...)
			}
			if want := tests[names[i]].fault; want == "" {
				assert.Empty(t, faults)
			} else {
				assert.Contains(t, strings.Join(faults, "\n"), want)
			}
		})
	}
}
