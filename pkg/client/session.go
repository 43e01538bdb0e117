package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// ReleaseSession says that a conversation has ended: all its sandboxes go once the runtime's grace is over, unless they are
// used before then; those that were never bound go at once. A session without sandboxes is released.
func (c *Client) ReleaseSession(ctx context.Context, agentRuntime, sessionID string) error {
	return c.ofSession(ctx, v1alpha1.SandboxReleaseSpec{AgentRuntime: agentRuntime, SessionID: sessionID})
}

// CancelRelease says that a conversation goes on: a release that was scheduled is withdrawn, whoever reported it. Call it
// when a process sees a session's first message, for another may have seen its end.
func (c *Client) CancelRelease(ctx context.Context, agentRuntime, sessionID string) error {
	return c.ofSession(ctx, v1alpha1.SandboxReleaseSpec{AgentRuntime: agentRuntime, SessionID: sessionID, Cancel: true})
}

func (c *Client) ofSession(ctx context.Context, spec v1alpha1.SandboxReleaseSpec) error {
	_, err := c.claims.Release(ctx, v1alpha1.AnyClaim, &v1alpha1.SandboxRelease{Spec: spec}, metav1.CreateOptions{})
	return err
}
