package client

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestSession(t *testing.T) {
	tests := map[string]struct {
		call   func(*Client, context.Context) error
		cancel bool
	}{
		"its end releases it":           {func(c *Client, ctx context.Context) error { return c.ReleaseSession(ctx, "agent", "s") }, false},
		"a message withdraws a release": {func(c *Client, ctx context.Context) error { return c.CancelRelease(ctx, "agent", "s") }, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			sandbox, _, asked := acting(t, nil, nil, unavailable)
			require.NoError(t, tt.call(sandbox.client, t.Context()))
			require.Len(t, *asked, 1)
			call := (*asked)[0]
			body, ok := call.Object.(*v1alpha1.SandboxRelease)
			require.True(t, ok)
			assert.Equal(t, v1alpha1.AnyClaim, call.Name)
			assert.Equal(t, v1alpha1.SandboxReleaseSpec{AgentRuntime: "agent", SessionID: "s", Cancel: tt.cancel}, body.Spec)
			assert.Equal(t, unavailable, tt.call(sandbox.client, t.Context()), "the server's own error")
		})
	}
}
