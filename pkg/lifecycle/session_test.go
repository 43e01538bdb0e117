package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestFullLimit(t *testing.T) {
	limits := SessionLimits{PerSession: 3, Instances: 2}
	assert.Equal(t, Limit(""), FullLimit(SessionUse{Claims: 2, Instances: 1}, limits))
	assert.Equal(t, LimitPerSession, FullLimit(SessionUse{Claims: 3, Instances: 0}, limits))
	assert.Equal(t, LimitInstances, FullLimit(SessionUse{Claims: 2, Instances: 2}, limits))
	assert.False(t, Live(v1alpha1.PhaseFailed, false), "a failed claim holds no place")
	assert.False(t, Live(v1alpha1.PhaseBound, true), "nor does one that ends")
	assert.True(t, Live("", false), "one that was not looked at yet does")
}

// TestLimitOf: whoever waits on a Queued claim learns from its reason whether to wait on, or to be refused.
func TestLimitOf(t *testing.T) {
	tests := map[string]struct {
		reason string
		want   Limit
	}{
		"CeilingReached: maxConcurrent, which is waited for": {v1alpha1.ReasonCeilingReached, LimitConcurrent},
		"SessionLimitReached: maxPerSession":                 {v1alpha1.ReasonSessionLimit, LimitPerSession},
		"InstanceLimitReached: maxInstances":                 {v1alpha1.ReasonInstanceLimit, LimitInstances},
		"any other reason: no limit":                         {v1alpha1.ReasonCreating, ""},
		"no reason: no limit":                                {"", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, LimitOf(tt.reason)) })
	}
}

func TestSandboxOf(t *testing.T) {
	assert.Equal(t, "shell", SandboxOf("shell/default"), "the first segment")
	assert.Empty(t, SandboxOf(""), "a claim by hand may have no handle")
}
