package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
)

func TestJSONRoundTrip(t *testing.T) {
	run := sample()
	var b bytes.Buffer
	require.NoError(t, run.WriteJSON(&b))
	assert.Contains(t, b.String(), `"value": "2 × fast & <cheap>"`, "it is readable as it is")
	assert.Contains(t, b.String(), `"tookNanoseconds": 723000000000`)
	read, err := ReadJSON(&b)
	require.NoError(t, err)
	assert.Equal(t, run, read)
}

func TestReadJSONRefuses(t *testing.T) {
	const row = `{"sections": [{"id": "bound", "rows": [{"what": "acquire", "measure": "p50", "value": 1, "target": %}]}]}`
	tests := map[string]struct{ text, fault string }{
		"nothing":         {"", "reading a run: EOF"},
		"no JSON":         {"Benchmark", "reading a run: invalid character"},
		"another type":    {`{"form": 1}`, "form"},
		"a field unknown": {`{"runs": []}`, `unknown field "runs"`},
		"two runs":        {"{} {}", "give one run alone"},
		"no bound":        {strings.ReplaceAll(row, "%", "{}"), `section "bound": "acquire" p50: target: set one of atMost and atLeast`},
		"two bounds":      {strings.ReplaceAll(row, "%", `{"atMost": 1, "atLeast": 1}`), "set one of atMost and atLeast"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			run, err := ReadJSON(strings.NewReader(tt.text))
			require.ErrorContains(t, err, tt.fault)
			assert.Nil(t, run)
		})
	}
	_, err := ReadJSON(strings.NewReader(strings.ReplaceAll(row, "%", `{"atMost": 1}`) + "\n"))
	require.NoError(t, err, "one bound, and a last line's end")
}

func TestWriteJSONRefuses(t *testing.T) {
	tests := map[string]struct {
		spoil func(*Run)
		fault string
	}{
		"a value":       {func(r *Run) { r.Sections[0].Rows[0].Value = math.NaN() }, `section "bound": "acquire, 1 caller" p50: value is NaN: leave the row out`},
		"a floor":       {func(r *Run) { r.Sections[0].Rows[1].Floor = ptr.To(math.Inf(1)) }, "p99: floor is +Inf"},
		"atMost":        {func(r *Run) { r.Sections[1].Rows[0].Target = AtMost(math.Inf(-1)) }, `section "memory": "server" resident: atMost is -Inf`},
		"atLeast":       {func(r *Run) { r.Sections[1].Rows[0].Target = AtLeast(math.NaN()) }, "atLeast is NaN"},
		"a plot's x":    {func(r *Run) { r.Sections[0].Plots[1].Series[0].X[1] = math.NaN() }, `section "bound": plot "Throughput": series "acquire": x[1] is NaN: leave the point out`},
		"a series's y":  {func(r *Run) { r.Sections[0].Plots[1].Series[0].Y[2] = math.Inf(1) }, "y[2] is +Inf"},
		"a bar's value": {func(r *Run) { r.Sections[1].Plots[0].Series[1].Y[0] = math.NaN() }, `plot "Resident": series "etcd": y[0]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			run := sample()
			tt.spoil(run)
			var b bytes.Buffer
			require.ErrorContains(t, run.WriteJSON(&b), tt.fault)
			assert.Zero(t, b.Len(), "no half of a run is written")
		})
	}
}
