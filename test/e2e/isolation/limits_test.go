package isolation

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func size(text string) resource.Quantity { return resource.MustParse(text) }

func listOptions(fields string) metav1.ListOptions { return metav1.ListOptions{FieldSelector: fields} }

// bounded is a class with so much processor and memory, of which all is its own.
func bounded(cpu, memory string) change {
	return func(s *v1alpha1.SandboxClassSpec) {
		all := corev1.ResourceList{corev1.ResourceCPU: size(cpu), corev1.ResourceMemory: size(memory)}
		s.Resources = corev1.ResourceRequirements{Requests: all, Limits: all.DeepCopy()}
	}
}

// The processor is measured, so this runs beside nothing.
func TestLimits_CPUIsThrottled(t *testing.T) {
	w := newWorld(t, map[string]change{"little": bounded("200m", "64Mi"), "more": bounded("1", "64Mi")})
	little, more := w.bound("little", "cpu"), w.bound("more", "cpu")
	p := prove(t, "resources: a limit of 200m of cpu holds")
	p.denied("with a limit of 200m", little.try([]string{"cpu", "0.3"})[0])
	p.allowed("with a limit of 1", more.try([]string{"cpu", "0.3"})[0])
}

func TestLimits_MemoryBeyondIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]change{"little": bounded("100m", "64Mi"), "more": bounded("100m", "256Mi")})
	little, more := w.bound("little", "memory"), w.bound("more", "memory")
	p := prove(t, "resources: who uses more memory than the limit is killed")
	p.denied("with a limit of 64Mi", little.try([]string{"allocate", "128Mi"})[0])
	p.allowed("with a limit of 256Mi", more.try([]string{"allocate", "128Mi"})[0])
}

func TestTrusted_TheNamespacesLimitRangeStandsIn(t *testing.T) {
	t.Parallel()
	without := func(s *v1alpha1.SandboxClassSpec) { s.Trusted, s.Resources = true, corev1.ResourceRequirements{} }
	bound, free := newWorld(t, map[string]change{"trusted": without}), newWorld(t, map[string]change{"trusted": without})
	bound.Create(t, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: bound.namespace, Name: "default"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
			Default:        corev1.ResourceList{corev1.ResourceCPU: size("250m"), corev1.ResourceMemory: size("64Mi")},
			DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: size("10m"), corev1.ResourceMemory: size("16Mi")}}},
	}})
	p := prove(t, "trusted: a class without limits has the LimitRange's")
	s := bound.bound("trusted", "trusted")
	limits := s.pod.Spec.Containers[0].Resources.Limits
	p.attempted(limits.Cpu().Equal(size("250m")) && limits.Memory().Equal(size("64Mi")), "its pod's limits: cpu %s, memory %s", limits.Cpu(), limits.Memory())
	p.denied("under a LimitRange of 64Mi", s.try([]string{"allocate", "128Mi"})[0])
	p.allowed("without a LimitRange", free.bound("trusted", "trusted").try([]string{"allocate", "128Mi"})[0])
}

// scratch is a class with one volume at /scratch.
func scratch(limit string, medium v1alpha1.ScratchMedium) change {
	return func(s *v1alpha1.SandboxClassSpec) {
		bounded("100m", "128Mi")(s)
		s.Filesystem = &v1alpha1.Filesystem{ReadOnlyRoot: true, Scratch: []v1alpha1.ScratchVolume{
			{Name: "scratch", MountPath: "/scratch", SizeLimit: size(limit), Medium: medium},
		}}
	}
}

func TestScratchMemory_IsFullAtItsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]change{"small": scratch("8Mi", v1alpha1.ScratchMediumMemory), "large": scratch("64Mi", v1alpha1.ScratchMediumMemory)})
	small, large := w.bound("small", "memory"), w.bound("large", "memory")
	p := prove(t, "scratch: a Memory volume is full at its limit")
	full := small.try([]string{"fill", "/scratch", "16Mi"})[0]
	p.denied("with a limit of 8Mi", full)
	assert.Contains(t, full.Said, "no space left on device")
	p.allowed("with a limit of 64Mi", large.try([]string{"fill", "/scratch", "16Mi"})[0])
}

func TestScratchMemory_CountsAgainstTheContainersMemory(t *testing.T) {
	t.Parallel()
	volume := func(memory string) change {
		return func(s *v1alpha1.SandboxClassSpec) {
			scratch("256Mi", v1alpha1.ScratchMediumMemory)(s)
			bounded("100m", memory)(s)
		}
	}
	w := newWorld(t, map[string]change{"little": volume("64Mi"), "more": volume("256Mi")})
	little, more := w.bound("little", "counted"), w.bound("more", "counted")
	p := prove(t, "scratch: what a Memory volume holds counts against the container's memory limit")
	p.allowed("128Mi in a volume of 256Mi, with a limit of 256Mi", more.try([]string{"fill", "/scratch", "128Mi"})[0])
	// Its writer is killed, and what is left in the volume may take the rest of the container with it.
	verdicts, err := w.tried(t.Context(), w.namespace, little.pod.Name, []string{"fill", "/scratch", "128Mi"})
	if err == nil {
		p.denied("with a limit of 64Mi", verdicts[0])
		return
	}
	require.ErrorContains(t, err, "exit code 137")
	p.attempted(true, "with a limit of 64Mi: its writer is killed")
}

// What a Disk volume holds is measured by the kubelet now and then, so that more than the limit is written and then costs
// the pod.
func TestScratchDisk_OverItsLimit_IsEvictedAndMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]change{"small": scratch("8Mi", v1alpha1.ScratchMediumDisk), "large": scratch("64Mi", v1alpha1.ScratchMediumDisk)})
	small, large := w.bound("small", "disk"), w.bound("large", "disk")
	p := prove(t, "scratch: a sandbox whose Disk volume is over its limit is evicted, and made anew")
	history := w.Record(t, w.namespace)
	for _, s := range []*sandbox{small, large} {
		v := s.try([]string{"fill", "/scratch", "16Mi"})[0]
		require.True(t, v.Succeeded, v.Said)
	}
	lost := history.First(t, framework.PodTimeout, small.claim.Name, "is Pending", framework.InPhase(v1alpha1.PhasePending))
	p.attempted(true, "16Mi in a volume of 8Mi: %s, %s: %s", lost.Claim.Status.Phase, framework.Reason(lost.Claim), framework.Message(lost.Claim))
	w.evicted(small)
	again := w.bound("small", "disk")
	p.attempted(again.claim.UID == small.claim.UID && again.pod.UID != small.pod.UID, "the same claim is Bound again, with another pod")
	p.attempted(again.try([]string{"fill", "/scratch", "1Mi"})[0].Succeeded, "whose volume is empty")

	stands, err := w.Kube.CoreV1().Pods(w.namespace).Get(t.Context(), large.pod.Name, metav1.GetOptions{})
	p.controlled(err == nil && stands.UID == large.pod.UID && stands.Status.Phase == corev1.PodRunning, "16Mi in a volume of 64Mi, written at the same time: its pod still runs")
}

// evicted waits until the kubelet has told that it evicted a sandbox' pod for its volume.
func (w *world) evicted(s *sandbox) {
	w.t.Helper()
	framework.Eventually(w.t, framework.NoticeTimeout, "the eviction of "+s.pod.Name+" is told", func(ctx context.Context) ([]string, error) {
		events, err := w.Kube.CoreV1().Events(w.namespace).List(ctx, listOptions("reason=Evicted,involvedObject.name="+s.pod.Name))
		if err != nil {
			return nil, err
		}
		var said []string
		for _, event := range events.Items {
			said = append(said, event.Message)
		}
		return said, nil
	}, func(said []string) bool { return len(said) > 0 })
}
