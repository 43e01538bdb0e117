package client

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// touchTimeout is how long one touch of KeepAlive may take: a call that is never answered must not cost the lease.
const touchTimeout = 15 * time.Second

// Touch says that the sandbox is in use. It gives a GoneError when there is nothing left to use. The server does not tell
// an agent a claim that is gone from one that is not its own, so its 403 is a GoneError too, which quotes it. A 403 by which
// the cluster's authorizer refuses every touch says nothing of the sandbox, and is given as it is.
func (s *Sandbox) Touch(ctx context.Context) error {
	_, err := s.client.claims.Touch(ctx, s.Name, &v1alpha1.SandboxTouch{Spec: v1alpha1.SandboxTouchSpec{UID: s.UID}}, metav1.CreateOptions{})
	if err != nil && !passing(err) && !byAuthorizer(err) && (apierrors.IsForbidden(err) || gone(err)) {
		return &GoneError{Claim: s.Name, Err: err}
	}
	return err
}

// KeepAlive touches the sandbox every interval until ctx ends, which is no error. What may pass is tried again sooner, with
// a growing delay; a GoneError ends it, and so does any other refusal, the authorizer's if it stands for five seconds (see
// Acquire).
func (s *Sandbox) KeepAlive(ctx context.Context, interval time.Duration) error {
	delay, pause := touchBackoff(), interval
	doubted := doubt{}
	for {
		if s.client.sleep(ctx, pause) != nil {
			return nil //nolint:nilerr // ctx ended, which is how a touch loop ends
		}
		err := s.touchInTime(ctx)
		switch {
		case err == nil:
			delay, pause, doubted = touchBackoff(), interval, doubt{}
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the touch failed because its caller ended it
		case !doubted.passing(err, s.client.Clock.Now()):
			return err
		default:
			pause = min(pauseAfter(err, &delay), interval)
			klog.FromContext(ctx).V(2).Info("Touch failed; touching again", "claim", klog.KRef(s.Namespace, s.Name), "after", pause, "err", err)
		}
	}
}

func (s *Sandbox) touchInTime(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, touchTimeout)
	defer cancel()
	return s.Touch(ctx)
}

// touchBackoff is the delay between touches that fail.
func touchBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 30 * time.Second}
}

// Release says that the sandbox is no longer needed. It goes once the runtime's grace is over, unless it is used before
// then, be it by Acquire or Touch; one that was never bound goes at once. A sandbox that is gone already, or another one
// by now, is released.
//
// To an agent the server answers 403 for a claim that is gone, and 403 as well where the agent may not release. Taking
// every 403 for success would leave a live sandbox behind whenever a permission was taken away, and releasing by session
// would take the session's other sandboxes along. So after a 403 Release asks, by a dry run, which claims the session has:
// it succeeds if this one is not among them, and gives the 403 otherwise.
func (s *Sandbox) Release(ctx context.Context) error {
	_, err := s.client.claims.Release(ctx, s.Name, &v1alpha1.SandboxRelease{Spec: v1alpha1.SandboxReleaseSpec{UID: s.UID}}, metav1.CreateOptions{})
	switch {
	case err == nil || passing(err):
		return err
	case gone(err):
		return nil
	case apierrors.IsForbidden(err):
		return s.absent(ctx, err)
	}
	return err
}

// absent gives nil if the session has no claim of this UID to release, and refused if it has or does not say.
func (s *Sandbox) absent(ctx context.Context, refused error) error {
	session := &v1alpha1.SandboxRelease{Spec: v1alpha1.SandboxReleaseSpec{AgentRuntime: s.runtime, SessionID: s.session}}
	answer, err := s.client.claims.Release(ctx, v1alpha1.AnyClaim, session, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		if passing(err) {
			return fmt.Errorf("looking whether sandbox %s is gone: %w", s.Name, err)
		}
		return refused
	}
	for _, claim := range answer.Status.Claims {
		if claim.UID == s.UID {
			return refused
		}
	}
	return nil
}

// gone says whether the server says that the claim is gone, going, or another one by now.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
