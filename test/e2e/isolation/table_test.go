package isolation

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

// The results of a row.
const (
	holds     = "holds"
	broken    = "BROKEN"
	notProved = "not proved"
)

// row is a promise, how it was tried, and what became of it.
type row struct{ test, promise, attempt, control, result string }

// table is all rows of a run.
type table struct {
	mu   sync.Mutex
	rows []row
	// figures are lines that are measured, and not judged.
	figures []string
}

func (t *table) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
}

func (t *table) measured(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.figures = append(t.figures, fmt.Sprintf(format, args...))
}

// print writes the table, in the tests' order.
func (t *table) print(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.rows)+len(t.figures) == 0 {
		return
	}
	slices.SortStableFunc(t.rows, func(a, b row) int { return strings.Compare(a.test, b.test) })
	fmt.Fprintln(out, "\n| promise | attempt | control | result |\n| --- | --- | --- | --- |")
	counts := map[string]int{}
	for _, r := range t.rows {
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", r.promise, r.attempt, r.control, r.result)
		counts[r.result]++
	}
	fmt.Fprintf(out, "\n%d promises: %d hold, %d are broken, %d are not proved\n", len(t.rows), counts[holds], counts[broken], counts[notProved])
	for _, line := range t.figures {
		fmt.Fprintln(out, line)
	}
}

// proof is a row in the making. It passes if every attempt was made and met what was promised, and every control met the
// opposite where that is allowed: an attempt that could not have succeeded proves nothing.
type proof struct {
	t                  testing.TB
	promise            string
	attempts, controls []finding
}

// finding is something that was tried, and whether it came out as it must.
type finding struct {
	what string
	good bool
}

// prove begins a row. It is judged at the test's end.
func prove(t testing.TB, promise string) *proof {
	p := &proof{t: t, promise: promise}
	t.Cleanup(func() {
		r := p.row()
		shared.rows.add(r)
		if r.result != holds {
			t.Errorf("%s: %s\n  attempt: %s\n  control: %s", r.result, r.promise, r.attempt, r.control)
		}
	})
	return p
}

func (p *proof) row() row {
	r := row{test: p.t.Name(), promise: p.promise, attempt: told(p.attempts), control: told(p.controls), result: holds}
	switch {
	case slices.ContainsFunc(p.attempts, bad):
		r.result = broken
	case len(p.attempts) == 0, len(p.controls) == 0, slices.ContainsFunc(p.controls, bad):
		r.result = notProved
	}
	return r
}

func bad(f finding) bool { return !f.good }

func told(findings []finding) string {
	var said []string
	for _, f := range findings {
		said = append(said, f.what)
	}
	if len(said) == 0 {
		return "none was made"
	}
	return strings.Join(said, "; ")
}

// attempted takes an attempt, and whether the promise held.
func (p *proof) attempted(good bool, format string, args ...any) {
	p.attempts = append(p.attempts, finding{what: clean(fmt.Sprintf(format, args...)), good: good})
}

// controlled takes a control, and whether it shows that the attempt could have come out otherwise.
func (p *proof) controlled(good bool, format string, args ...any) {
	p.controls = append(p.controls, finding{what: clean(fmt.Sprintf(format, args...)), good: good})
}

// denied takes an attempt that must have failed.
func (p *proof) denied(who string, v report.Verdict) {
	p.attempted(!v.Succeeded, "%s", describe(who, v))
}

// allowed takes a control: the same attempt, where it must have succeeded.
func (p *proof) allowed(who string, v report.Verdict) {
	p.controlled(v.Succeeded, "%s", describe(who, v))
}

func describe(who string, v report.Verdict) string {
	outcome := "fails"
	if v.Succeeded {
		outcome = "succeeds"
	}
	return fmt.Sprintf("%s: %s %s: %s", who, v.Attempt, outcome, v.Said)
}

// longest is what one finding may say in the table.
const longest = 160

// clean makes one cell's worth of what was said.
func clean(said string) string {
	said = strings.Join(strings.Fields(strings.ReplaceAll(said, "|", "/")), " ")
	if len(said) > longest {
		said = said[:longest] + "..."
	}
	return said
}

func TestProof_PassesOnlyWithBoth(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(*proof)
		want string
	}{
		"nothing was tried":       {func(*proof) {}, notProved},
		"no control":              {func(p *proof) { p.denied("a", report.Verdict{}) }, notProved},
		"a control alone":         {func(p *proof) { p.allowed("b", report.Verdict{Succeeded: true}) }, notProved},
		"a control that failed":   {func(p *proof) { p.denied("a", report.Verdict{}); p.allowed("b", report.Verdict{}) }, notProved},
		"both as they must":       {func(p *proof) { p.denied("a", report.Verdict{}); p.allowed("b", report.Verdict{Succeeded: true}) }, holds},
		"one attempt that failed": {func(p *proof) { p.denied("a", report.Verdict{}); p.denied("a", report.Verdict{Succeeded: true}) }, broken},
	} {
		t.Run(name, func(t *testing.T) {
			p := &proof{t: t}
			tt.make(p)
			if got := p.row().result; got != tt.want {
				t.Errorf("result = %s, want %s", got, tt.want)
			}
		})
	}
}
