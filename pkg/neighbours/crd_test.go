package neighbours

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKnowsSandbox(t *testing.T) {
	runtimeWith := func(spec string) string {
		return `{"components":{"schemas":{
			"x.ToolRegistry":{"properties":{"spec":{"properties":{"sandbox":{}}}},"x-kubernetes-group-version-kind":[{"kind":"ToolRegistry"}]},
			"x.AgentRuntime":{"properties":{"spec":` + spec + `},"x-kubernetes-group-version-kind":[{"kind":"AgentRuntime"}]}}}}`
	}
	tests := map[string]struct {
		document string
		want     bool
	}{
		"a spec that names it: known":          {runtimeWith(`{"properties":{"sandbox":{"type":"object"}}}`), true},
		"a spec that keeps the unknown: known": {runtimeWith(`{"x-kubernetes-preserve-unknown-fields":true}`), true},
		"a spec without it: not known":         {runtimeWith(`{"properties":{"toolRegistryRef":{}}}`), false},
		"no AgentRuntime at all: not known":    {`{"components":{"schemas":{}}}`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := knowsSandbox([]byte(tt.document))
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
	_, err := knowsSandbox([]byte("{"))
	require.Error(t, err)
}
