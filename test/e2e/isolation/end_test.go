package isolation

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

const (
	// grace is how long a sandbox may take to end.
	grace = 10 * time.Second
	// busy is what a busy machine may add.
	busy = 8 * time.Second
	// silence is how long nothing must have been heard of who sends all the time, to say that it is not heard any more.
	silence = 1500 * time.Millisecond
)

// A process that will not end is alive for the whole grace, while the garbage collector takes what was the claim's, its
// policy included.
func TestEnd_NothingIsHeardOfAClaimThatIsGone(t *testing.T) {
	t.Parallel()
	told := token()
	w := newWorld(t, map[string]change{"stubborn": func(s *v1alpha1.SandboxClassSpec) {
		s.Args = []string{"serve", "-http", "8080", "-stubborn", "-send", framework.OutsideHost + ":" + outsideUDP, "-every", "20ms", "-token", told}
	}})
	s := w.bound("stubborn", "ends")
	quiet, ends := prove(t, "end: after its claim is deleted nothing is heard of a process that ignores SIGTERM"), prove(t, "end: the pod is gone within its grace")

	w.silent(told) // Its policy holds.
	_, shut := w.open()
	framework.Eventually(t, enforced, "it is heard through a policy that opens it", func(context.Context) (time.Duration, error) {
		return time.Since(last(w.heard(told))), nil
	}, func(ago time.Duration) bool { return ago < silence/2 })
	quiet.controlled(true, "through a policy that opens it, it is heard")
	shut()
	w.silent(told)

	before := len(w.heard(told))
	deleted := time.Now()
	require.NoError(t, w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Delete(t.Context(), s.claim.Name, metav1.DeleteOptions{}))
	policy, pod := w.endOf(s)
	quiet.controlled(policy.Before(pod), "its own policy was collected %s before its process ended", pod.Sub(policy).Round(time.Millisecond))
	heard := w.heard(told)[before:]
	if len(heard) > 0 {
		quiet.attempted(false, "%d packets are heard, from %s to %s after the deletion", len(heard),
			heard[0].At.Sub(deleted).Round(time.Millisecond), last(heard).Sub(deleted).Round(time.Millisecond))
	}
	quiet.attempted(len(heard) == 0, "nothing is heard until its pod is gone, %s after the deletion", pod.Sub(deleted).Round(time.Millisecond))
	ends.attempted(pod.Sub(deleted) < grace+busy, "gone %s after the deletion", pod.Sub(deleted).Round(time.Millisecond))
	ends.controlled(pod.Sub(deleted) > grace/2, "by itself it would not have ended: SIGTERM had no effect")
}

// last is when something was heard last.
func last(heard []report.Heard) time.Time {
	if len(heard) == 0 {
		return time.Time{}
	}
	return heard[len(heard)-1].At
}

// silent waits until nothing is heard any more.
func (w *world) silent(token string) {
	w.t.Helper()
	began := time.Now()
	framework.Eventually(w.t, enforced, "nothing is heard of "+token+" any more", func(context.Context) (time.Duration, error) {
		heard := last(w.heard(token))
		if heard.Before(began) {
			heard = began
		}
		return time.Since(heard), nil
	}, func(ago time.Duration) bool { return ago > silence })
}

// endOf waits until a sandbox is gone, and says when its policy and when its pod was.
func (w *world) endOf(s *sandbox) (policy, pod time.Time) {
	w.t.Helper()
	first := func(at *time.Time, err error) error {
		if apierrors.IsNotFound(err) {
			if at.IsZero() {
				*at = time.Now()
			}
			return nil
		}
		return err
	}
	framework.Eventually(w.t, framework.GoneTimeout, "the pod and the policy of "+s.claim.Name+" are gone", func(ctx context.Context) ([2]time.Time, error) {
		_, err := w.Kube.NetworkingV1().NetworkPolicies(w.namespace).Get(ctx, s.claim.Status.SandboxName, metav1.GetOptions{})
		if err := first(&policy, err); err != nil {
			return [2]time.Time{}, err
		}
		_, err = w.Kube.CoreV1().Pods(w.namespace).Get(ctx, s.pod.Name, metav1.GetOptions{})
		return [2]time.Time{policy, pod}, first(&pod, err)
	}, func([2]time.Time) bool { return !policy.IsZero() && !pod.IsZero() })
	return policy, pod
}
