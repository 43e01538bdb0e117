package scenario

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// handleOf is the handle of the sandbox that runs there.
func handleOf(where string) string { return where + "/default" }

// acquire acquires a sandbox for a session, asking again until it is Bound.
func (f *field) acquire(ctx context.Context, agent versioned.Interface, session, where string) (*v1alpha1.SandboxAcquireStatus, error) {
	for {
		got, err := agent.SandboxV1alpha1().SandboxClaims(f.namespace).Acquire(ctx, v1alpha1.AnyClaim,
			framework.MakeAcquire(f.runtime, session, handleOf(where)), metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("acquiring for session %s: %w", session, err)
		}
		switch got.Status.Phase {
		case v1alpha1.PhaseBound:
			return &got.Status, nil
		case v1alpha1.PhaseFailed, v1alpha1.PhaseCompleted:
			return nil, fmt.Errorf("acquiring for session %s: claim %s is %s: %s", session, got.Status.ClaimName, got.Status.Phase, got.Status.Message)
		case v1alpha1.PhaseQueued, v1alpha1.PhasePending:
		}
	}
}

// release ends a session, and with it its sandboxes at once, since the field's runtime grants no grace.
func (f *field) release(ctx context.Context, session string) (*v1alpha1.SandboxRelease, error) {
	answer, err := f.agent.SandboxV1alpha1().SandboxClaims(f.namespace).Release(ctx, v1alpha1.AnyClaim,
		&v1alpha1.SandboxRelease{Spec: v1alpha1.SandboxReleaseSpec{AgentRuntime: f.runtime, SessionID: session}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("releasing session %s: %w", session, err)
	}
	return answer, nil
}

// end releases a session and waits until nothing of its claims is left.
func (f *field) end(ctx context.Context, session string) error {
	answer, err := f.release(ctx, session)
	if err != nil {
		return err
	}
	for _, claim := range answer.Status.Claims {
		if err := f.eyes.await(ctx, claim.Name, allGone); err != nil {
			return err
		}
	}
	return nil
}

func (f *field) get(ctx context.Context, agent versioned.Interface, claim string) error {
	_, err := agent.SandboxV1alpha1().SandboxClaims(f.namespace).Get(ctx, claim, metav1.GetOptions{})
	return err
}

func (f *field) touch(ctx context.Context, claim string) error {
	_, err := f.agent.SandboxV1alpha1().SandboxClaims(f.namespace).Touch(ctx, claim, &v1alpha1.SandboxTouch{}, metav1.CreateOptions{})
	return err
}

// patchLastUse writes into a claim's status, by a merge patch, that it was last used so long ago.
func (f *field) patchLastUse(ctx context.Context, claim string, ago time.Duration) error {
	patch := fmt.Sprintf(`{"status":{"lastUsedAt":%q}}`, time.Now().Add(-ago).UTC().Format(metav1.RFC3339Micro))
	_, err := f.agent.SandboxV1alpha1().SandboxClaims(f.namespace).Patch(ctx, claim, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}
