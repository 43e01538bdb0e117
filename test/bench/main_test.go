package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/altairalabs/omnia-sandboxes/test/bench/report"
)

func TestParse_Refusals(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"-only=bond"}, `no scenario "bond"`},
		{[]string{"-image=i"}, "give its -kubeconfig"},
		{[]string{"-kubeconfig=k"}, "needs -image"},
		{[]string{"bound"}, `"bound" is no flag`},
		{[]string{"-sizes=300,100"}, "each larger than the one before"},
		{[]string{"-sizes=100,many"}, "write numbers of claims"},
		{[]string{"-fast"}, "flag provided but not defined"},
	} {
		if _, err := parse(tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, want an error with %q", tc.args, err, tc.want)
		}
	}
}

func TestParse_Only(t *testing.T) {
	o, err := parse([]string{"-only=bound,touch", "-full", "-sizes=100,1000"})
	if err != nil || len(o.only) != 2 || len(o.Sizes) != 2 || !o.Full {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestTell_WritesEachForm(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	run := &report.Run{Sections: []report.Section{{ID: "bound", Title: "Bound", Rows: []report.Row{{What: "acquire", Measure: "p50", Value: 1}}}}}
	if err := tell(run, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"results.json", "results.md", "report.html"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(data), "acquire") {
			t.Errorf("%s: %v, %d bytes", name, err, len(data))
		}
	}
}
