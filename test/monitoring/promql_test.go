package monitoring

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// question, answer and what they are made of are those of hack/tools/promql, which says what they mean.
type question struct {
	Expr   string   `json:"expr"`
	Series []string `json:"series,omitempty"`
	From   int      `json:"from,omitempty"`
	To     int      `json:"to,omitempty"`
}

type answer struct {
	Error     string              `json:"error"`
	Selectors []selector          `json:"selectors"`
	By        []string            `json:"by"`
	Series    []map[string]string `json:"series"`
	Results   []result            `json:"results"`
}

type selector struct {
	Metric   string    `json:"metric"`
	Matchers []matcher `json:"matchers"`
	Labels   []string  `json:"labels"`
	Function string    `json:"function"`
}

type matcher struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

type result struct {
	Labels map[string]string `json:"labels"`
	Values map[int]float64   `json:"values"`
}

// ask has Prometheus' own parser and engine answer.
func ask(t *testing.T, questions []question) []answer {
	t.Helper()
	asked, err := json.Marshal(questions)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir = root + "hack/tools/promql"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stdin = bytes.NewReader(asked)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, said.String())
	var answers []answer
	require.NoError(t, json.Unmarshal(out, &answers))
	require.Len(t, answers, len(questions))
	return answers
}
