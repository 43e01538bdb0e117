package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const (
	root          = "../../"
	rulesFile     = root + "manifests/components/alerts/prometheusrule.yaml"
	dashboardFile = root + "manifests/components/dashboard/sandbox-omnia.json"
)

// prometheusRule is the part of monitoring.coreos.com/v1 that is used here; a field that is not in it is a mistake.
type prometheusRule struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// minutes is for how many minutes the expression must hold.
func (a alert) minutes(t *testing.T) int {
	t.Helper()
	if a.For == "" {
		return 0
	}
	duration, err := model.ParseDuration(a.For)
	require.NoError(t, err, a.Alert)
	require.Zero(t, time.Duration(duration)%time.Minute, "%s: whole minutes", a.Alert)
	return int(time.Duration(duration) / time.Minute)
}

// alerts reads the rules.
func alerts(t *testing.T) []alert {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	var rule prometheusRule
	require.NoError(t, yaml.UnmarshalStrict(text, &rule))
	require.Equal(t, "monitoring.coreos.com/v1 PrometheusRule", rule.APIVersion+" "+rule.Kind)
	var all []alert
	for _, group := range rule.Spec.Groups {
		require.NotEmpty(t, group.Rules, group.Name)
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// dashboard is the part of Grafana's model that is judged here.
type dashboard struct {
	UID        string `json:"uid"`
	Templating struct {
		List []struct{ Name, Type, Query string } `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID         int    `json:"id"`
	Type       string `json:"type"`
	Title      string `json:"title"`
	Datasource source `json:"datasource"`
	GridPos    struct{ H, W, X, Y int }
	Panels     []panel `json:"panels"`
	Targets    []struct {
		RefID        string `json:"refId"`
		Datasource   source `json:"datasource"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

type source struct{ Type, UID string }

// board reads the dashboard.
func board(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Panels)
	return d
}

// withInterval is an expression with what Grafana puts into it: at least four times the interval of scraping.
func withInterval(expr string) string { return strings.ReplaceAll(expr, "$__rate_interval", "5m") }

// expressions are all of the two manifests, by where they stand.
func expressions(t *testing.T) (where []string, questions []question) {
	t.Helper()
	for _, a := range alerts(t) {
		where, questions = append(where, filepath.Base(rulesFile)+": "+a.Alert), append(questions, question{Expr: a.Expr})
	}
	for _, p := range board(t).Panels {
		for _, target := range p.Targets {
			where = append(where, filepath.Base(dashboardFile)+": "+p.Title+" "+target.RefID)
			questions = append(questions, question{Expr: withInterval(target.Expr)})
		}
	}
	return where, questions
}
