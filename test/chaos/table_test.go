package chaos

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

// row is what a fault cost.
type row struct {
	fault string
	// notPlayed is why it could not be played.
	notPlayed string
	// refused is for how long nobody was given a sandbox that stands, and oneAgent how long one who asked all the time was
	// not.
	refused  stretch
	oneAgent time.Duration
	// anew is how long after the fault a sandbox that was not there is Bound.
	anew   time.Duration
	broken map[judge.Kind]int
	// promised is for how long acquire may be refused at most; 0 promises nothing.
	promised time.Duration
}

// table is what all faults cost.
func table(rows []row) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\trefused for\t(net)\tone agent\tnew sandbox after\tlost\tleaked\tdoubled\twrong")
	for _, r := range rows {
		if r.notPlayed != "" {
			fmt.Fprintf(w, "%s\tnot played: %s\n", r.fault, r.notPlayed)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t(%s)\t%s\t%s\t%d\t%d\t%d\t%d\n", r.fault, seconds(r.refused.whole), seconds(r.refused.net),
			seconds(r.oneAgent), seconds(r.anew), r.broken[judge.Lost], r.broken[judge.Leaked], r.broken[judge.Doubled], r.broken[judge.Wrong])
	}
	_ = w.Flush() // into memory
	return out.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// hold fails the test for what was promised and not kept.
func hold(t *testing.T, r row) {
	t.Helper()
	for kind, count := range r.broken {
		if count > 0 {
			t.Errorf("%s: %d %s", r.fault, count, kind)
		}
	}
	if r.promised > 0 && r.refused.whole >= r.promised {
		t.Errorf("%s: acquire was refused for %s, and may be for less than %s", r.fault, seconds(r.refused.whole), seconds(r.promised))
	}
}
