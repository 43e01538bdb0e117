package client

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// GoneError says that the sandbox is no more: released, reaped, failed, or another one by now. Acquire again.
type GoneError struct {
	// Claim is the claim's name.
	Claim string
	// Err is the server's answer.
	Err error
}

// Error names the claim and quotes the server.
func (e *GoneError) Error() string { return fmt.Sprintf("sandbox %s is gone: %v", e.Claim, e.Err) }

// Unwrap gives the server's answer.
func (e *GoneError) Unwrap() error { return e.Err }

// Touch says that the sandbox is in use. It gives a GoneError when there is nothing left to use.
func (s *Sandbox) Touch(ctx context.Context) error {
	_, err := s.client.claims.Touch(ctx, s.Name, &v1alpha1.SandboxTouch{Spec: v1alpha1.SandboxTouchSpec{UID: s.UID}}, metav1.CreateOptions{})
	if err != nil && !passing(err) && gone(err) {
		return &GoneError{Claim: s.Name, Err: err}
	}
	return err
}

// KeepAlive touches the sandbox every interval until ctx ends, which is no error. What may pass is tried again at the
// next interval; a GoneError ends it, and so does any other refusal.
func (s *Sandbox) KeepAlive(ctx context.Context, interval time.Duration) error {
	for {
		if s.client.sleep(ctx, interval) != nil {
			return nil //nolint:nilerr // ctx ended, which is how a touch loop ends
		}
		err := s.Touch(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the touch failed because its caller ended it
		case !passing(err):
			return err
		default:
			klog.FromContext(ctx).V(2).Info("Touch failed; touching again after the interval", "claim", klog.KRef(s.Namespace, s.Name), "err", err)
		}
	}
}

// Release says that the sandbox is no longer needed. A sandbox that is gone already is released. The server tells an
// agent nothing of claims that are not its own, so to it a claim that is gone is forbidden; the caller has acquired this
// one, so that is the same.
func (s *Sandbox) Release(ctx context.Context) error {
	_, err := s.client.claims.Release(ctx, s.Name, &v1alpha1.SandboxRelease{Spec: v1alpha1.SandboxReleaseSpec{UID: s.UID}}, metav1.CreateOptions{})
	if err != nil && !passing(err) && gone(err) {
		return nil
	}
	return err
}

func gone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err)
}
