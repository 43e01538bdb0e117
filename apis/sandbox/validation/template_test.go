package validation

import (
	"io"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTemplateFault(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing":                         {"", ""},
		"plain words":                     {"-interactive", ""},
		"a field":                         {"-connection={{.Connection}}", ""},
		"a comment alone":                 {"{{/* nothing */}}", ""},
		"a field under a condition":       {"{{if .StateFile}}-state={{.StateFile}}{{else}}-none={{.Connection}}{{end}}", ""},
		"a field through functions":       {`{{printf "%q" (html .Connection) | len}}`, ""},
		"the dot that a with has chosen":  {"{{with .StateFile}}{{.}}{{else}}{{.Connection}}{{end}}", ""},
		"the root inside a with":          {"{{with .StateFile}}{{$.Connection}}{{end}}", ""},
		"a variable":                      {"{{$x := .StateFile}}{{$x}}", ""},
		"no template":                     {"{{.Connection", "must be a Go text/template: template: argument:1: unclosed action"},
		"an unknown function":             {"{{env}}", `must be a Go text/template: template: argument:1: function "env" not defined`},
		"an unknown field":                {"{{.Token}}", "does not know .Token: the fields are .Connection, .StateFile"},
		"an unknown field of the root":    {"{{$.Token}}", "does not know .Token: the fields are .Connection, .StateFile"},
		"a field of a field":              {"{{.Connection.Name}}", "does not know .Connection.Name: the fields are .Connection, .StateFile"},
		"a field of a variable":           {"{{$x := .StateFile}}{{$x.Name}}", "$x.Name: a string has no fields"},
		"a field of a result":             {"{{(html .Connection).Name}}", "(html .Connection).Name: a string has no fields"},
		"an unknown field in a condition": {"{{if and .Connection .Token}}{{end}}", "does not know .Token: the fields are .Connection, .StateFile"},
		"an unknown field in an else":     {"{{if .Connection}}{{else}}{{.Token}}{{end}}", "does not know .Token: the fields are .Connection, .StateFile"},
		"an unknown field in a with":      {"{{with .Token}}{{end}}", "does not know .Token: the fields are .Connection, .StateFile"},
		"a field inside a with":           {"{{with .StateFile}}{{.Connection}}{{end}}", ".Connection is not what the surrounding with has chosen: write $.Connection"},
		"a range, which could be endless": {"{{range 9999999999}}{{end}}", "may not range: every field is a string"},
		"a template of its own":           {`{{define "a"}}{{end}}`, "may not define templates: write the argument out"},
		"a call of itself":                {`{{template "argument" .}}`, "may not call templates: write the argument out"},
	}
	data := map[string]string{"Connection": "c", "StateFile": "/cache/s"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, templateFault(tt.text, []string{"Connection", "StateFile"}))
			if tt.want == "" {
				parsed, err := template.New("").Option("missingkey=error").Parse(tt.text)
				require.NoError(t, err)
				assert.NoError(t, parsed.Execute(io.Discard, data), "what is good renders")
			}
		})
	}
}
