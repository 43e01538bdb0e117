package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

func htmlOf(t *testing.T, run *Run) (*html.Node, string) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, run.WriteHTML(&b))
	text := b.String()
	page, err := html.Parse(&b)
	require.NoError(t, err)
	return page, text
}

// all are the elements of a name.
func all(page *html.Node, name string) (found []*html.Node) {
	for node := range page.Descendants() {
		if node.Type == html.ElementNode && node.Data == name {
			found = append(found, node)
		}
	}
	return found
}

func attribute(node *html.Node, key string) string {
	for _, a := range node.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(node *html.Node) string {
	var texts []string
	for child := range node.Descendants() {
		if child.Type == html.TextNode {
			texts = append(texts, child.Data)
		}
	}
	return oneLine(strings.Join(texts, " "))
}

func textsOf(nodes []*html.Node) (texts []string) {
	for _, node := range nodes {
		texts = append(texts, textOf(node))
	}
	return texts
}

func TestHTML(t *testing.T) {
	page, _ := htmlOf(t, sample())
	assert.Equal(t, []string{"Benchmark, 2026-11-30 14:04:05 +00:00, took 12m3s, long form"}, textsOf(all(page, "title")))
	assert.Equal(t, []string{"2 × fast & <cheap>", "7.8 GiB"}, textsOf(all(page, "dd")))
	assert.Equal(t, []string{"A Bound sandbox", "Memory", "A real node"}, textsOf(all(page, "h2")))
	assert.Subset(t, textsOf(all(page, "p")), []string{"Both are taken in turns.", "Not measured: there is none: all are fake"})

	rows := textsOf(all(page, "tr"))
	assert.Equal(t, []string{
		"What Measure Value Samples Floor Its value Ratio Target Verdict",
		"acquire, 1 caller p50 3.46 ms 400 GET of its claim 3 ms 1.15 ≤ 1.30 within",
		"acquire, 1 caller p99 13.0 ms 400 GET of its claim 10 ms 1.304 ≤ 1.30 MISSED",
		"Garbage is collected.",
		"acquire, 1 caller throughput 1543 1/s GET of its claim 2000 1/s 0.77 ≥ 0.70 within",
		"waiting writes 2 nobody waits 0 ≤ 1.00 unknown",
		"claims_held | all count 7",
		"What Measure Value Target Verdict",
		"server resident 143 MiB ≤ 200 MiB within",
	}, rows)
	for _, row := range all(page, "tr") {
		width := 0
		for cell := range row.ChildNodes() {
			width++
			if attribute(cell, "colspan") == "9" {
				width += 8
			}
		}
		assert.Contains(t, []int{9, 5}, width, "each row is as wide as its head: %s", textOf(row))
	}
}

func TestHTMLSummary(t *testing.T) {
	page, _ := htmlOf(t, sample())
	assert.Equal(t, []string{"3 of 5 targets are within"}, textsOf(all(page, "strong")))
	summary := all(page, "div")[0]
	assert.Equal(t, "summary bad", attribute(summary, "class"))
	assert.Equal(t, []string{
		"MISSED acquire, 1 caller p99: 1.304 × GET of its claim, target ≤ 1.30",
		"unknown waiting writes: nobody waits is 0, target ≤ 1.00",
		"not measured A real node",
	}, textsOf(all(summary, "li")))

	tests := map[string]struct {
		rows        []Row
		says, class string
	}{
		"all within":  {sample().Sections[0].Rows[:1], "1 of 1 targets are within", "summary good"},
		"one unknown": {[]Row{sample().Sections[0].Rows[0], sample().Sections[0].Rows[3]}, "1 of 2 targets are within", "summary "},
		"no target":   {sample().Sections[0].Rows[4:], "No figure has a target", "summary "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			page, _ := htmlOf(t, &Run{Sections: []Section{{ID: "it", Title: "It", Rows: tt.rows}}})
			assert.Equal(t, []string{tt.says}, textsOf(all(page, "strong")))
			assert.Equal(t, tt.class, attribute(all(page, "div")[0], "class"))
		})
	}
}

// TestHTMLStandsAlone: nothing in it is fetched, and each link leads to a place within it.
func TestHTMLStandsAlone(t *testing.T) {
	page, text := htmlOf(t, sample())
	without := strings.ReplaceAll(text, `xmlns="http://www.w3.org/2000/svg"`, "")
	for _, elsewhere := range []string{"http:", "https:", "//", "url(", "@import", "<script", "<link", "<img", "<iframe", "xlink"} {
		assert.NotContains(t, without, elsewhere)
	}
	var ids []string
	for node := range page.Descendants() {
		if id := attribute(node, "id"); id != "" {
			ids = append(ids, id)
		}
		assert.Empty(t, attribute(node, "src"))
	}
	links := all(page, "a")
	assert.Len(t, links, 6, "three of the summary, three of the contents")
	for _, link := range links {
		to, within := strings.CutPrefix(attribute(link, "href"), "#")
		assert.True(t, within && slices.Contains(ids, to), "a link leads to %q", to)
	}
}

func TestHTMLHasPlots(t *testing.T) {
	page, _ := htmlOf(t, sample())
	var labels []string
	for _, svg := range all(page, "svg") {
		assert.Equal(t, "figure", svg.Parent.Data)
		labels = append(labels, attribute(svg, "aria-label"))
	}
	assert.Equal(t, []string{"Answers <of> both", "Throughput", "Resident"}, labels)
	for _, text := range all(page, "text") {
		assert.Contains(t, attribute(text, "style"), "font-family:Liberation Sans,Arial,", "the plots' font need not be there")
	}
	assert.Subset(t, textsOf(all(page, "text")), []string{"Answers <of> both", "a & b", "floor", "Throughput", "Resident", "server", "etcd", "at rest", "busy"})
}

func TestHTMLEscapes(t *testing.T) {
	const evil = `</style></svg><script>alert("1")</script>`
	run := sample()
	run.Machine[0] = Fact{evil, evil}
	section := &run.Sections[0]
	section.ID, section.Title, section.About, section.NotMeasured = evil, evil, evil, evil
	section.Rows[0].What, section.Rows[0].Measure, section.Rows[0].FloorName, section.Rows[0].Note, section.Rows[0].Unit = evil, evil, evil, evil, evil
	section.Plots[0].Title, section.Plots[0].XLabel, section.Plots[0].YLabel, section.Plots[0].Series[0].Name = evil, evil, evil, evil
	bars := run.Sections[1].Plots[0].Series
	bars[0].Name, bars[0].Labels[0] = evil, evil
	page, text := htmlOf(t, run)
	assert.NotContains(t, text, "<script")
	assert.Empty(t, all(page, "script"))
	assert.Len(t, all(page, "svg"), 3)
	assert.Len(t, all(page, "section"), 3)
	assert.Contains(t, textsOf(all(page, "dd")), evil)
	assert.Contains(t, textsOf(all(page, "text")), evil)
}

func TestHTMLRefusesAPlot(t *testing.T) {
	run := sample()
	run.Sections[1].Plots[0].Series[0].Y = nil
	var b bytes.Buffer
	require.ErrorContains(t, run.WriteHTML(&b), `section "memory": plot "Resident": series "server": it is empty`)
	assert.Zero(t, b.Len(), "no half of a page is written")
}
