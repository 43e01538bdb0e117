package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func tableOf(t *testing.T, run *Run) []string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, run.WriteTable(&b))
	text := b.String()
	require.True(t, strings.HasSuffix(text, "\n"))
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func TestTable(t *testing.T) {
	lines := tableOf(t, sample())
	assert.Equal(t, "Benchmark, 2026-11-30 14:04:05 +00:00, took 12m3s, long form", lines[0])
	assert.Equal(t, `3 of 5 targets are within; missed: "acquire, 1 caller" p99; unknown: "waiting" writes`, lines[len(lines)-1])
	assert.Subset(t, lines, []string{
		"  CPUs    2 × fast & <cheap>", "  Memory  7.8 GiB",
		"A Bound sandbox", "  Both are taken in turns.",
		"A real node", "  Not measured: there is none: all are fake", "Not measured: A real node",
	})
	fields := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "p99") })
	require.Positive(t, at)
	assert.Equal(t, "acquire, 1 caller p99 13.0 ms 400 GET of its claim 10 ms 1.304 ≤ 1.30 MISSED", fields(lines[at]))
	assert.Equal(t, "      Garbage is collected.", lines[at+1], "a note stands beneath its row")
	assert.Equal(t, "What Measure Value Samples Floor Its value Ratio Target Verdict", fields(lines[at-2]))
	assert.Equal(t, "claims_held | all count 7", fields(lines[at+4]))

	at = slices.Index(lines, "Memory")
	require.Positive(t, at)
	assert.Equal(t, "What Measure Value Target Verdict", fields(lines[at+2]), "no column is empty")
	assert.Equal(t, "server resident 143 MiB ≤ 200 MiB within", fields(lines[at+3]))
}

func TestTableIsAligned(t *testing.T) {
	lines := tableOf(t, sample())
	begin := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  What") })
	require.Positive(t, begin)
	rows := lines[begin : begin+6]
	column := func(line, text string, end bool) int {
		before, _, found := strings.Cut(line, text)
		require.True(t, found, "%q in %q", text, line)
		if end {
			return utf8.RuneCountInString(before + text)
		}
		return utf8.RuneCountInString(before)
	}
	assert.Equal(t, column(rows[0], "Measure", false), column(rows[1], "p50", false), "text begins below its head")
	assert.Equal(t, column(rows[0], "Floor", false), column(rows[1], "GET of", false))
	assert.Equal(t, column(rows[0], "Value", true), column(rows[1], "3.46 ms", true), "figures end below their head")
	assert.Equal(t, column(rows[0], "Value", true), column(rows[4], "1543 1/s", true))
	assert.Equal(t, column(rows[0], "Target", true), column(rows[1], "≤ 1.30", true), "≤ is one place wide, though three bytes long")
	assert.Equal(t, column(rows[0], "Verdict", false), column(rows[1], "within", false))
}

func TestTableOfNothing(t *testing.T) {
	lines := tableOf(t, &Run{Title: "Soak", Form: "seed 1", Sections: []Section{{ID: "empty", Title: "Empty"}}})
	assert.Regexp(t, "^Soak, .*, seed 1$", lines[0])
	assert.Contains(t, lines, "Empty")
	assert.Equal(t, "no figure has a target", lines[len(lines)-1])
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample().WriteMarkdown(&b))
	lines := strings.Split(b.String(), "\n")
	assert.Subset(t, lines, []string{
		"Measured 2026-11-30 14:04:05 +00:00, took 12m3s, long form.",
		`| CPUs | 2 × fast \& \<cheap> |`,
		"## A Bound sandbox", "Both are taken in turns.",
		"| What | Measure | Value | Samples | Floor | Its value | Ratio | Target | Verdict |",
		"| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | --- |",
		"| acquire, 1 caller | p50 | 3.46 ms | 400 | GET of its claim | 3 ms | 1.15 | ≤ 1.30 | within |",
		`| claims\_held \| all | count | 7 |  |  |  |  |  |  |`,
		"- acquire, 1 caller p99: Garbage is collected.",
		"Not measured: there is none: all are fake", "Not measured: A real node.",
		`3 of 5 targets are within; missed: "acquire, 1 caller" p99; unknown: "waiting" writes.`,
	})
	for _, line := range lines {
		assert.Equal(t, strings.HasPrefix(line, "| "), strings.HasSuffix(line, " |"), "a row is whole: %s", line)
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "| What") || strings.HasPrefix(line, "## ") {
			assert.Empty(t, lines[i-1], "Markdown needs a line between blocks, before %q", line)
		}
	}
}

func TestMarkdownWithoutFacts(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, (&Run{Sections: []Section{{ID: "empty", Title: "Empty"}}}).WriteMarkdown(&b))
	assert.NotContains(t, b.String(), "|", "no table has no rows")
	assert.Contains(t, b.String(), "## Empty")
}

func TestWritersTellOfAFailedWrite(t *testing.T) {
	run := sample()
	require.ErrorIs(t, run.WriteTable(broken{}), errBroken)
	require.ErrorIs(t, run.WriteMarkdown(broken{}), errBroken)
	require.ErrorIs(t, run.WriteJSON(broken{}), errBroken)
	require.ErrorIs(t, run.WriteHTML(broken{}), errBroken)
	require.ErrorIs(t, run.Sections[0].Plots[0].WriteSVG(broken{}), errBroken)
}
