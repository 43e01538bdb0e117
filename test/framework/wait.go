package framework

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
)

const (
	// Shortly is for what one process does by itself, on a busy machine.
	Shortly = 30 * time.Second
	// NoticeTimeout is for what others must hear of first, one after another: admission plugins of a new policy, Kubernetes'
	// controllers of a new object, each replica of a change.
	NoticeTimeout = 90 * time.Second
	// BoundTimeout is for a sandbox to become Bound, on a busy machine.
	BoundTimeout = 60 * time.Second
	// FailoverTimeout is for another server to take the Lease of one that was killed, and to act.
	FailoverTimeout = 90 * time.Second
	// GoneTimeout is for objects to be deleted by finalizers, grace and the garbage collector.
	GoneTimeout = 90 * time.Second

	pollInterval = 200 * time.Millisecond
)

// Bound says whether a claim is Bound.
func Bound(claim *v1alpha1.SandboxClaim) bool { return claim.Status.Phase == v1alpha1.PhaseBound }

// Failed says whether a claim is Failed.
func Failed(claim *v1alpha1.SandboxClaim) bool { return claim.Status.Phase == v1alpha1.PhaseFailed }

// Reason is the reason of a claim's Ready condition; empty if it has none.
func Reason(claim *v1alpha1.SandboxClaim) string {
	return v1alpha1.ReadyCondition(claim.Status.Conditions).Reason
}

// Message is the message of a claim's Ready condition; empty if it has none.
func Message(claim *v1alpha1.SandboxClaim) string {
	return v1alpha1.ReadyCondition(claim.Status.Conditions).Message
}

// InPhase says whether a claim is in a phase.
func InPhase(phase v1alpha1.Phase) func(*v1alpha1.SandboxClaim) bool {
	return func(claim *v1alpha1.SandboxClaim) bool { return claim.Status.Phase == phase }
}

// WaitForClaim watches a claim until it is as wanted, and gives it. A claim that is not there yet is waited for. The
// error shows the claim as it was last seen.
func (c *Cluster) WaitForClaim(ctx context.Context, namespace, name string, wanted func(*v1alpha1.SandboxClaim) bool) (*v1alpha1.SandboxClaim, error) {
	var last *v1alpha1.SandboxClaim
	_, err := watchtools.UntilWithSync(ctx, listWatch(c.Sandbox, namespace, name), &v1alpha1.SandboxClaim{}, nil, func(event watch.Event) (bool, error) {
		claim, ok := event.Object.(*v1alpha1.SandboxClaim)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		last = claim
		return wanted(claim), nil
	})
	if err != nil {
		return last, fmt.Errorf("waiting for claim %s/%s: %w; last seen:\n%s", namespace, name, err, Show(last))
	}
	return last, nil
}

// listWatch reads a claim; without a name, all of the namespace's.
func listWatch(set versioned.Interface, namespace, name string) cache.ListerWatcher {
	only := ""
	if name != "" {
		only = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	claims := set.SandboxV1alpha1().SandboxClaims(namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return claims.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return claims.Watch(ctx, options)
		},
	}
}

// Claim waits, for BoundTimeout, until a claim is as wanted; the test fails and shows the claim if it does not become so.
func (c *Cluster) Claim(t testing.TB, namespace, name string, wanted func(*v1alpha1.SandboxClaim) bool) *v1alpha1.SandboxClaim {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), BoundTimeout)
	defer cancel()
	claim, err := c.WaitForClaim(ctx, namespace, name, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

// Eventually reads again and again until what it read is as wanted, and gives it. The test fails after the timeout,
// showing what was read last, or why nothing could be read.
func Eventually[T any](t testing.TB, timeout time.Duration, what string, read func(context.Context) (T, error), wanted func(T) bool) T {
	t.Helper()
	return EventuallyIn(t.Context(), t, timeout, what, read, wanted)
}

// EventuallyIn is Eventually for a cleanup, in which the test's own context has ended.
func EventuallyIn[T any](ctx context.Context, t testing.TB, timeout time.Duration, what string, read func(context.Context) (T, error), wanted func(T) bool) T {
	t.Helper()
	var last T
	lastErr := errors.New("nothing read yet")
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		got, err := read(ctx)
		if ctx.Err() == nil { // What was read before it was cut off says more.
			last, lastErr = got, err
		}
		return err == nil && wanted(got), nil
	})
	if err != nil {
		t.Fatalf("%s: not within %s (reading: %v); last read:\n%s", what, timeout, lastErr, Show(last))
	}
	return last
}

// Show is an object as a person reads it.
func Show(object any) string {
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Sprintf("%+v", object)
	}
	return string(text)
}
