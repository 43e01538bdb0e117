package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func lasting(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// TestAgentRuntime_WhatItsSandboxFieldsMean has each field unset, set, and at the edge of what counts as set.
func TestAgentRuntime_WhatItsSandboxFieldsMean(t *testing.T) {
	type meaning struct {
		enabled                                 bool
		maxConcurrent, maxPerSession            int32
		idleTimeout, releaseGrace, mountRelease time.Duration
	}
	defaults := meaning{false, 10, 3, 30 * time.Minute, 2 * time.Minute, 5 * time.Minute}
	tests := map[string]struct {
		sandbox *AgentRuntimeSandbox
		want    func(*meaning)
	}{
		"spec.sandbox unset: no sandboxes":                      {nil, func(*meaning) {}},
		"an empty spec.sandbox: no sandboxes":                   {&AgentRuntimeSandbox{}, func(*meaning) {}},
		"enabled: the defaults":                                 {&AgentRuntimeSandbox{Enabled: true}, func(m *meaning) { m.enabled = true }},
		"maxConcurrent":                                         {&AgentRuntimeSandbox{MaxConcurrent: ptr.To[int32](2)}, func(m *meaning) { m.maxConcurrent = 2 }},
		"maxConcurrent 0: none, and not the default":            {&AgentRuntimeSandbox{MaxConcurrent: ptr.To[int32](0)}, func(m *meaning) { m.maxConcurrent = 0 }},
		"maxPerSession":                                         {&AgentRuntimeSandbox{MaxPerSession: ptr.To[int32](1)}, func(m *meaning) { m.maxPerSession = 1 }},
		"maxPerSession 0: none, and not the default":            {&AgentRuntimeSandbox{MaxPerSession: ptr.To[int32](0)}, func(m *meaning) { m.maxPerSession = 0 }},
		"idleTimeout":                                           {&AgentRuntimeSandbox{IdleTimeout: lasting(time.Second)}, func(m *meaning) { m.idleTimeout = time.Second }},
		"idleTimeout of zero: unset, or it would delete all":    {&AgentRuntimeSandbox{IdleTimeout: lasting(0)}, func(*meaning) {}},
		"a negative idleTimeout: unset, or it would delete all": {&AgentRuntimeSandbox{IdleTimeout: lasting(-time.Second)}, func(*meaning) {}},
		"releaseGrace":                                          {&AgentRuntimeSandbox{ReleaseGrace: lasting(time.Second)}, func(m *meaning) { m.releaseGrace = time.Second }},
		"releaseGrace of zero: none, and not the default":       {&AgentRuntimeSandbox{ReleaseGrace: lasting(0)}, func(m *meaning) { m.releaseGrace = 0 }},
		"a negative releaseGrace: unset":                        {&AgentRuntimeSandbox{ReleaseGrace: lasting(-1)}, func(*meaning) {}},
		"mountReleaseGrace":                                     {&AgentRuntimeSandbox{MountReleaseGrace: lasting(time.Second)}, func(m *meaning) { m.mountRelease = time.Second }},
		"mountReleaseGrace of zero: none, and not the default":  {&AgentRuntimeSandbox{MountReleaseGrace: lasting(0)}, func(m *meaning) { m.mountRelease = 0 }},
		"a negative mountReleaseGrace: unset":                   {&AgentRuntimeSandbox{MountReleaseGrace: lasting(-1)}, func(*meaning) {}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, want := &AgentRuntime{Spec: AgentRuntimeSpec{Sandbox: tt.sandbox}}, defaults
			tt.want(&want)
			assert.Equal(t, want, meaning{r.SandboxesEnabled(), r.MaxConcurrent(), r.MaxPerSession(), r.IdleTimeout(), r.ReleaseGrace(), r.MountReleaseGrace()})
		})
	}
}

func TestRegistrySandbox_Instances(t *testing.T) {
	tests := map[string]struct {
		sandbox RegistrySandbox
		want    int32
	}{
		"unset: one":                    {RegistrySandbox{}, 1},
		"set: as many":                  {RegistrySandbox{MaxInstances: ptr.To[int32](4)}, 4},
		"with a targetPath: always one": {RegistrySandbox{MaxInstances: ptr.To[int32](4), TargetPath: "projects/shop"}, 1},
		"zero: one":                     {RegistrySandbox{MaxInstances: ptr.To[int32](0)}, 1},
		"negative: one":                 {RegistrySandbox{MaxInstances: ptr.To[int32](-1)}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, tt.sandbox.Instances()) })
	}
}

func TestToolRegistry_Sandbox(t *testing.T) {
	registry := &ToolRegistry{Spec: ToolRegistrySpec{Sandboxes: []RegistrySandbox{{Name: "shell"}, {Name: "browser", TargetPath: "p"}}}}
	found, declared := registry.Sandbox("browser")
	assert.True(t, declared)
	assert.Equal(t, "p", found.TargetPath)
	_, declared = registry.Sandbox("shel")
	assert.False(t, declared, "the whole name, no prefix")
}

func TestRegistryHandler_WhatOmniaMayMeanByIt_IsReadable(t *testing.T) {
	addressed := &HandlerSandbox{Name: "shell", Port: "mcp"}
	tests := map[string]struct {
		handler string
		want    *HandlerSandbox
	}{
		"a sandbox and its port":             {`{"name":"h","type":"mcp","sandbox":{"name":"shell","port":"mcp"}}`, addressed},
		"a sandbox with fields of Omnia's":   {`{"name":"h","sandbox":{"name":"shell","port":"mcp","path":"/sse"}}`, addressed},
		"no sandbox: none":                   {`{"name":"h","mcpConfig":{"transport":"sse"}}`, nil},
		"null: none":                         {`{"name":"h","sandbox":null}`, nil},
		"a text: none, and no error":         {`{"name":"h","sandbox":"shell"}`, nil},
		"a port by number: none":             {`{"name":"h","sandbox":{"name":"shell","port":8080}}`, nil},
		"an object without a name: none":     {`{"name":"h","sandbox":{"ref":"shell"}}`, nil},
		"what is no handler at all: refused": {`"h"`, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &ToolRegistrySpec{}
			err := json.Unmarshal([]byte(`{"handlers":[`+tt.handler+`]}`), spec)
			if tt.handler == `"h"` {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []RegistryHandler{{Name: "h", Sandbox: tt.want}}, spec.Handlers)
			again := &ToolRegistrySpec{}
			written, err := json.Marshal(spec)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(written, again))
			assert.Equal(t, spec, again)
		})
	}
}
