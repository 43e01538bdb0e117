package coverage

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPages holds the pages to the tree. What it says is what to do.
func TestPages(t *testing.T) {
	for _, name := range []string{"docs/specification-coverage.md", "docs/security.md"} {
		page, err := os.ReadFile("../../" + name)
		require.NoError(t, err)
		for _, fault := range Faults(string(page), os.DirFS("../..")) {
			t.Errorf("%s, %s", name, fault)
		}
	}
}

func TestFaults_Promises(t *testing.T) {
	tree := fstest.MapFS{"pkg/rules/rule_test.go": {Data: []byte("package rules\n\nfunc TestDue(t *testing.T) {}\n")}}
	page := func(line string) string {
		return "| Promise | Attempt | Kept by | Test |\n| --- | --- | --- | --- |\n" + line
	}
	assert.Empty(t, Faults(page("| nothing is reached | a dial | a policy | `pkg/rules: TestDue` |"), tree))
	assert.Equal(t, []string{"line 3: pkg/rules has no TestNone: name the test that proves the sentence now, or write it"},
		Faults(page("| nothing is reached | a dial | a policy | `pkg/rules: TestNone` |"), tree))
	assert.Equal(t, []string{"line 3: not four columns: write | promise | attempt | what keeps it | test |"},
		Faults(page("| nothing is reached | a policy | `pkg/rules: TestDue` |"), tree))
}

func TestFaults(t *testing.T) {
	const rule = "pkg/rules/rule.go"
	tree := fstest.MapFS{
		rule:                     {Data: []byte("package rules\n\ntype T struct{}\n\nconst C = 1\n\nfunc (T) Due() {}\n")},
		"pkg/rules/rule_test.go": {Data: []byte("package rules\n\nfunc TestDue(t *testing.T) { _ = map[string]int{\"now: due\": 1, `later: \"kept\"`: 2} }\n\nfunc TestOther(t *testing.T) { _ = \"other\" }\n\nvar shared = []string{\"shared\"}\n\nfunc (T) TestMethod() {}\n")},
	}
	tests := map[string]struct {
		place, proof string
		fault        string // a part of it; empty: none
	}{
		"a test: good":                           {"—", "`pkg/rules: TestDue`", ""},
		"a row of a test: good":                  {"—", "`pkg/rules: TestDue/now: due`", ""},
		"a row that is quoted in the code: good": {"—", "`pkg/rules: TestDue/later: \"kept\"`", ""},
		"later: good":                            {"—", "later", ""},
		"a listed departure: good":               {"—", "superseded: a name by hash", ""},
		"several: good":                          {"—", "`pkg/rules: TestDue`<br>later", ""},
		"a method, a type and a constant: good":  {"`pkg/rules.Due`, `pkg/rules.T`, `pkg/rules.C`", "later", ""},
		"code that is no declaration: good":      {"`+k8s:maxLength`, kustomize", "later", ""},
		"no such test":                           {"—", "`pkg/rules: TestNone`", "pkg/rules has no TestNone: name the test"},
		"a method is no test":                    {"—", "`pkg/rules: TestMethod`", "has no TestMethod"},
		"no such row":                            {"—", "`pkg/rules: TestDue/never`", `TestDue of pkg/rules has no row "never": name the one`},
		"a row of another test":                  {"—", "`pkg/rules: TestDue/other`", `has no row "other"`},
		"a row of a shared table: good":          {"—", "`pkg/rules: TestDue/shared`", ""},
		"no such package":                        {"—", "`pkg/none: TestDue`", "there is no package pkg/none"},
		"no such departure":                      {"—", "superseded: something", `no departure "something": list it`},
		"later in other words":                   {"—", "some day", "is no proof"},
		"one of several is wrong":                {"—", "later<br>`pkg/rules: TestNone`", "has no TestNone"},
		"no such declaration":                    {"`pkg/rules.None`", "later", "pkg/rules declares no None"},
		"decided in no such package":             {"`pkg/none.Due`", "later", "there is no package pkg/none"},
		"a column more":                          {"— | —", "later", "not three columns"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			page := strings.Join([]string{
				"| Departure | Here |", "| --- | --- |", "| a name by hash | so |", "",
				"| Sentence | Decided | Test |", "| --- | --- | --- |", "| “It is.” | " + tt.place + " | " + tt.proof + " |",
			}, "\n")
			faults := Faults(page, tree)
			if tt.fault == "" {
				assert.Empty(t, faults)
				return
			}
			require.Len(t, faults, 1)
			assert.Contains(t, faults[0], tt.fault)
			assert.Contains(t, faults[0], "line 7: ", "it says where")
		})
	}
	assert.NotEmpty(t, Faults("no table", tree), "a page that says nothing is no coverage")
}
