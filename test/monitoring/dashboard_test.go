package monitoring

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var legend = regexp.MustCompile(`\{\{(\w+)\}\}`)

func TestDashboard_IsWhole(t *testing.T) {
	d := board(t)
	require.Len(t, d.Templating.List, 1)
	assert.Equal(t, "datasource datasource prometheus", d.Templating.List[0].Name+" "+d.Templating.List[0].Type+" "+d.Templating.List[0].Query)

	var rows []string
	ids, questions, legends := map[int]string{}, []question(nil), []string(nil)
	for i, p := range d.Panels {
		assert.Empty(t, ids[p.ID], "%s has the id of another panel", p.Title)
		ids[p.ID] = p.Title
		assert.Empty(t, p.Panels, "%s: a row's panels stand beside it, where they are looked at here", p.Title)
		for _, other := range d.Panels[:i] {
			assert.False(t, overlap(p, other), "%s lies on %s", p.Title, other.Title)
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		assert.Equal(t, source{"prometheus", "${datasource}"}, p.Datasource, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			assert.Equal(t, p.Datasource, target.Datasource, p.Title)
			questions, legends = append(questions, question{Expr: withInterval(target.Expr)}), append(legends, target.LegendFormat)
		}
	}
	assert.Equal(t, []string{"Agents", "Claims", "Controllers", "Server"}, rows)
	for i, got := range ask(t, questions) {
		require.Empty(t, got.Error, questions[i].Expr)
		for _, label := range legend.FindAllStringSubmatch(legends[i], -1) {
			assert.True(t, slices.Contains(got.By, label[1]) || (got.By == nil && targetLabels.Has(label[1])), "%s has no label %s to show", questions[i].Expr, label[1])
		}
	}
}

func overlap(a, b panel) bool {
	p, q := a.GridPos, b.GridPos
	return p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H
}
