package monitoring

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/altairalabs/omnia-sandboxes/pkg/apiserver"
)

// at is the minute at which it is asked whether an alert fires.
const at = 120

// TestAlerts_FireWhenTheyShould_AndSayWhatToDo lets Prometheus' engine look at each alert's series.
func TestAlerts_FireWhenTheyShould_AndSayWhatToDo(t *testing.T) {
	all := alerts(t)
	var questions []question
	for _, a := range all {
		given, ok := scenarios[a.Alert]
		require.True(t, ok, "%s has no scenario", a.Alert)
		from := at - a.minutes(t)
		for _, series := range [][]string{given.fires, given.quiet, well} {
			questions = append(questions, question{Expr: a.Expr, Series: series, From: from, To: at})
		}
	}
	assert.Len(t, scenarios, len(all), "a scenario for each alert, and none for what is no alert")
	answers := ask(t, questions)
	for i, a := range all {
		t.Run(a.Alert, func(t *testing.T) {
			for _, got := range answers[3*i : 3*i+3] {
				require.Empty(t, got.Error)
			}
			firing := firingOf(answers[3*i], a.minutes(t))
			require.NotEmpty(t, firing, "it does not fire")
			assert.Empty(t, firingOf(answers[3*i+1], a.minutes(t)), "it fires before it should")
			assert.Empty(t, firingOf(answers[3*i+2], a.minutes(t)), "it fires where all is well")
			for _, one := range firing {
				a.says(t, one.Labels, one.Values[at])
			}
		})
	}
}

// TestAlerts_LimitsAreTheServersDefaults: an alert near a limit knows the limit that a server has if nobody sets it.
func TestAlerts_LimitsAreTheServersDefaults(t *testing.T) {
	defaults, found := apiserver.NewOptions(), 0
	for _, a := range alerts(t) {
		limit, ok := map[string]any{"SandboxWaitersNearLimit": defaults.MaxWaiters, "SandboxStorageNearQuota": defaults.EmbeddedEtcdQuotaBytes}[a.Alert]
		if ok {
			assert.Contains(t, a.Expr, fmt.Sprintf("> 0.8 * %d", limit), a.Alert)
			found++
		}
	}
	assert.Equal(t, 2, found)
}

// firingOf are those results that are there in each minute of an alert's patience.
func firingOf(got answer, patience int) (firing []result) {
	for _, one := range got.Results {
		if len(one.Values) == patience+1 {
			firing = append(firing, one)
		}
	}
	return firing
}

// says checks what an alert tells of one result.
func (a alert) says(t *testing.T, labels map[string]string, value float64) {
	t.Helper()
	assert.True(t, strings.HasPrefix(a.Alert, "Sandbox"), "its name says whose it is")
	assert.Equal(t, []string{"severity"}, sets.List(sets.KeySet(a.Labels)))
	assert.Contains(t, []string{"critical", "warning", "info"}, a.Labels["severity"])
	assert.Equal(t, []string{"description", "summary"}, sets.List(sets.KeySet(a.Annotations)))
	for _, text := range a.Annotations {
		said := expand(t, text, labels, value)
		assert.NotContains(t, said, "\n")
		assert.NotContains(t, said, "  ")
	}
	pages := 0
	for _, pointed := range pointer.FindAllStringSubmatch(a.Annotations["description"], -1) {
		page, err := os.ReadFile(root + pointed[1])
		require.NoError(t, err)
		for _, section := range quoted.FindAllStringSubmatch(pointed[2], -1) {
			assert.Regexp(t, `(?m)^##+ `+regexp.QuoteMeta(section[1])+`$`, string(page), "%s has such a section", pointed[1])
			pages++
		}
	}
	assert.NotZero(t, pages, `it points to a page and a section: docs/operations.md, "Storage"`)
}

var (
	pointer = regexp.MustCompile(`(docs/[\w-]+\.md), ("[^"]+"(?: and "[^"]+")?)`)
	quoted  = regexp.MustCompile(`"([^"]+)"`)
)

// expand fills an annotation as Prometheus does, which gives templates these two names, and functions over numbers.
func expand(t *testing.T, text string, labels map[string]string, value float64) string {
	t.Helper()
	number := func(v float64) string { return fmt.Sprint(v) }
	filled, err := template.New("annotation").Option("missingkey=error").Funcs(template.FuncMap{
		"humanize": number, "humanize1024": number, "humanizeDuration": number, "humanizePercentage": number,
	}).Parse("{{$labels := .Labels}}{{$value := .Value}}" + text)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, filled.Execute(&out, map[string]any{"Labels": labels, "Value": value}))
	return out.String()
}
