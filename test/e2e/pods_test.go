package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestPod_ThatCannotRun_ClaimAndWaitingAcquireTellWhy(t *testing.T) {
	none := func(pull corev1.PullPolicy) func(*v1alpha1.SandboxClassSpec) {
		return func(s *v1alpha1.SandboxClassSpec) { s.Image, s.ImagePullPolicy = "sandbox.omnia/none:1", pull }
	}
	runs := func(arg string) func(*v1alpha1.SandboxClassSpec) {
		return func(s *v1alpha1.SandboxClassSpec) { s.Args = []string{arg} }
	}
	tests := map[string]struct {
		change func(*v1alpha1.SandboxClassSpec)
		phase  v1alpha1.Phase
		reason string
		words  []string // the kubelet's, the container runtime's, the scheduler's
	}{
		"an image that cannot be pulled: waits": {none(corev1.PullIfNotPresent),
			v1alpha1.PhasePending, v1alpha1.ReasonImagePullBackOff, []string{"sandbox.omnia/none:1"}},
		"no image reference: failed": {func(s *v1alpha1.SandboxClassSpec) { s.Image = "Not An Image" },
			v1alpha1.PhaseFailed, v1alpha1.ReasonInvalidImageName, []string{"Not An Image", "invalid reference format"}},
		"an image that may not be pulled and is not there: failed": {none(corev1.PullNever),
			v1alpha1.PhaseFailed, v1alpha1.ReasonErrImageNeverPull, []string{"sandbox.omnia/none:1", "Never"}},
		"a container that ends at once, over and over: waits": {runs("-workdir=/none"),
			v1alpha1.PhasePending, v1alpha1.ReasonCrashLoopBackOff, []string{"exit code 1 ", "back-off"}},
		"a container that wants more memory than its limit, over and over: waits": {runs("-first=hog 512"),
			v1alpha1.PhasePending, v1alpha1.ReasonCrashLoopBackOff, []string{"exit code 137", "OOMKilled", "back-off"}},
		"more than the node has: waits": {func(s *v1alpha1.SandboxClassSpec) {
			s.Resources.Limits[corev1.ResourceCPU], s.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1k"), resource.MustParse("1k")
		}, v1alpha1.PhasePending, v1alpha1.ReasonUnschedulable, []string{"Insufficient cpu"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.change)
			told, refused := w.told(tt.reason)
			assert.Equal(t, tt.phase == v1alpha1.PhaseFailed, v1alpha1.IsSandboxFailed(refused), "got %v", refused)
			claim := w.Claim(t, w.namespace, w.onlyClaim(), func(c *v1alpha1.SandboxClaim) bool { return framework.Reason(c) == tt.reason })
			assert.Equal(t, tt.phase, claim.Status.Phase)
			assert.Empty(t, claim.Status.Addresses)
			for _, words := range tt.words {
				assert.Contains(t, framework.Message(claim), words)
				assert.Contains(t, told, words, "whoever waits is told the same")
			}
		})
	}
}

// told acquires, by waits of a second, until the answer gives the reason, or refuses a sandbox that failed. It gives the
// answer's words, and the refusal.
func (w *world) told(reason string) (words string, refused error) {
	w.t.Helper()
	body := framework.MakeAcquire(runtimeName, "told", handle)
	body.Spec.WaitSeconds = ptr.To[int32](1)
	framework.Eventually(w.t, framework.BoundTimeout, "an acquire tells of "+reason, func(ctx context.Context) (*v1alpha1.SandboxAcquire, error) {
		got, err := w.agent.SandboxV1alpha1().SandboxClaims(w.namespace).Acquire(ctx, v1alpha1.AnyClaim, body.DeepCopy(), metav1.CreateOptions{})
		if v1alpha1.IsSandboxFailed(err) {
			words, refused = err.Error(), err
			return nil, nil
		}
		if err == nil {
			words = got.Status.Message
		}
		return got, err
	}, func(got *v1alpha1.SandboxAcquire) bool { return got == nil || got.Status.Reason == reason })
	return words, refused
}

// onlyClaim is the name of the namespace's one claim.
func (w *world) onlyClaim() string {
	w.t.Helper()
	claims, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	require.Len(w.t, claims.Items, 1)
	return claims.Items[0].Name
}

func TestPod_Lost_TheSameClaimIsBoundAgainAtTheSameAddress(t *testing.T) {
	tests := map[string]struct {
		lose func(*world, *v1alpha1.SandboxClaim, *corev1.Pod) error
		same bool // the pod stays, and its container is started again
	}{
		"deleted by hand": {lose: func(w *world, _ *v1alpha1.SandboxClaim, pod *corev1.Pod) error {
			return w.Kube.CoreV1().Pods(w.namespace).Delete(w.t.Context(), pod.Name, metav1.DeleteOptions{})
		}},
		"evicted": {lose: func(w *world, _ *v1alpha1.SandboxClaim, pod *corev1.Pod) error {
			return w.Kube.CoreV1().Pods(w.namespace).EvictV1(w.t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}})
		}},
		"killed for its memory by a tool call": {lose: func(w *world, claim *v1alpha1.SandboxClaim, _ *corev1.Pod) error {
			out, err := w.exec("runtime", "call", "-address", claim.Status.Addresses["mcp"], "-tool", "shell", "-args", `{"command":"hog 512"}`)
			assert.Error(w.t, err, "it was answered: %s", out)
			return nil
		}, same: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, asItIs)
			w.StartPod(t, framework.AgentPod(w.namespace, "runtime", facade, framework.AgentLabels(runtimeName), "sleep"))
			claim := w.bound("lost")
			w.reaches("runtime", claim.Status.Addresses["mcp"])
			pod := w.pod(claim)
			history := w.Record(t, w.namespace)
			require.NoError(t, tt.lose(w, claim, pod))
			history.First(t, framework.BoundTimeout, claim.Name, "is Pending", framework.InPhase(v1alpha1.PhasePending))
			again := w.bound("lost")
			assert.Equal(t, claim.UID, again.UID)
			assert.Equal(t, claim.Status.Addresses, again.Status.Addresses)
			assert.True(t, claim.Status.BoundAt.Equal(again.Status.BoundAt), "boundAt is when it first was")
			assert.Equal(t, tt.same, pod.UID == w.pod(claim).UID)
			w.reaches("runtime", again.Status.Addresses["mcp"])
			for _, seen := range history.Of(claim.Name) {
				assert.Equal(t, framework.Bound(seen.Claim), len(seen.Claim.Status.Addresses) > 0, "it has addresses while it is Bound")
			}
		})
	}
}

// pod is the claim's one pod that is not ending.
func (w *world) pod(claim *v1alpha1.SandboxClaim) *corev1.Pod {
	w.t.Helper()
	pods, err := w.PodsOf(w.t.Context(), w.namespace, claim.UID)
	require.NoError(w.t, err)
	var living []*corev1.Pod
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			living = append(living, &pods[i])
		}
	}
	require.Len(w.t, living, 1)
	return living[0]
}

func TestNode_Drained_TheClaimWaitsInTheSchedulersWords_AndIsBoundWhenTheNodeIsBack(t *testing.T) {
	w := newWorld(t, asItIs)
	claim := w.bound("told")
	node := w.pod(claim).Spec.NodeName
	t.Cleanup(func() {
		_, err := w.Kubectl(context.Background(), "uncordon", node)
		assert.NoError(t, err)
	})
	_, err := w.Kubectl(t.Context(), "drain", node, "--pod-selector="+framework.OfClaim(claim.UID).LabelSelector, "--delete-emptydir-data", "--timeout=60s")
	require.NoError(t, err)
	// The scheduler may say it in other words each time.
	type words struct{ Told, Stands string }
	framework.Eventually(t, framework.BoundTimeout, "whoever waits is told what stands on the claim", func(ctx context.Context) (words, error) {
		told, refused := w.told(v1alpha1.ReasonUnschedulable)
		require.NoError(t, refused)
		waits, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil {
			return words{}, err
		}
		assert.Equal(t, v1alpha1.PhasePending, waits.Status.Phase)
		return words{told, framework.Message(waits)}, nil
	}, func(now words) bool { return now.Told == now.Stands && strings.Contains(now.Told, "unschedulable") })

	_, err = w.Kubectl(t.Context(), "uncordon", node)
	require.NoError(t, err)
	again := w.bound("told")
	assert.Equal(t, claim.UID, again.UID)
	assert.Equal(t, claim.Status.Addresses, again.Status.Addresses)
}
