package isolation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

// The registry is the outside, by its address, so that no name is looked up and nothing leaves the machine. It has no image
// to give: what counts is whether it is asked for one.
func TestImagePullPolicy_WhetherTheRegistryIsAsked(t *testing.T) {
	t.Parallel()
	there := func(port string, policy corev1.PullPolicy) change {
		return func(s *v1alpha1.SandboxClassSpec) { s.Image, s.ImagePullPolicy = registryImage(port), policy }
	}
	always, ifNotPresent, never := registryPorts[0], registryPorts[1], registryPorts[2]
	w := newWorld(t, map[string]change{
		"always":         there(always, corev1.PullAlways),
		"if-not-present": there(ifNotPresent, corev1.PullIfNotPresent),
		"never":          there(never, corev1.PullNever),
		"absent": func(s *v1alpha1.SandboxClassSpec) {
			s.Image, s.ImagePullPolicy = registryImage(ifNotPresent)+"-absent", corev1.PullIfNotPresent
		},
		"never-absent": func(s *v1alpha1.SandboxClassSpec) {
			s.Image, s.ImagePullPolicy = registryImage(never)+"-absent", corev1.PullNever
		},
	})
	present := prove(t, "imagePullPolicy IfNotPresent: an image that is there is run, and no registry asked")
	s := w.bound("if-not-present", "present")
	present.attempted(framework.Bound(s.claim) && w.asked(ifNotPresent) == 0, "%s, asked %d times", s.claim.Status.Phase, w.asked(ifNotPresent))
	w.Claim(t, w.namespace, w.waits("absent", "absent"), inPull)
	present.controlled(w.asked(ifNotPresent) > 0, "an image that is not there: asked %d times", w.asked(ifNotPresent))

	anew := prove(t, "imagePullPolicy Always: the registry is asked although the image is there")
	waits := w.Claim(t, w.namespace, w.waits("always", "always"), inPull)
	anew.attempted(w.asked(always) > 0, "%s: %s, asked %d times", waits.Status.Phase, framework.Reason(waits), w.asked(always))
	anew.controlled(framework.Bound(s.claim), "IfNotPresent: %s, of an image of the same registry", s.claim.Status.Phase)

	silent := prove(t, "imagePullPolicy Never: no registry is asked, be the image there or not")
	run := w.bound("never", "never")
	failed := w.Claim(t, w.namespace, w.waits("never-absent", "absent"), framework.Failed)
	silent.attempted(framework.Bound(run.claim) && w.asked(never) == 0, "there: %s; asked %d times", run.claim.Status.Phase, w.asked(never))
	silent.attempted(framework.Reason(failed) == v1alpha1.ReasonErrImageNeverPull && w.asked(never) == 0, "not there: %s; asked %d times", framework.Reason(failed), w.asked(never))
	silent.controlled(w.asked(ifNotPresent) > 0, "IfNotPresent, not there: asked %d times", w.asked(ifNotPresent))
}

// asked is how often a connection to the registry's port came about.
func (w *world) asked(port string) int {
	w.t.Helper()
	count := 0
	for _, heard := range w.heardOf(nil) {
		if heard.By == report.ByTCP && strings.HasSuffix(heard.On, ":"+port) {
			count++
		}
	}
	return count
}

func inPull(c *v1alpha1.SandboxClaim) bool {
	return framework.Reason(c) == v1alpha1.ReasonImagePullBackOff
}
