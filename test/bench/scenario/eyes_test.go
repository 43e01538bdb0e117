package scenario

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func closedEyes() *eyes { return &eyes{seen: map[string]*seen{}, changed: make(chan struct{})} }

func of(claim string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: claim + "-sandbox", Labels: map[string]string{v1alpha1.LabelClaim: claim}}
}

func readyDeployment(ready int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: of("c"), Status: appsv1.DeploymentStatus{ReadyReplicas: ready, UpdatedReplicas: ready}}
}

func routedBy(claim string, ready bool) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: of(claim), Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(ready)}}}}
}

func TestEyes_ASandboxAnswersOnceItIsReadyAndRouted(t *testing.T) {
	e := closedEyes()
	for _, tc := range []struct {
		event any
		want  bool
	}{
		{readyDeployment(0), false},
		{readyDeployment(1), false},
		{routedBy("c", false), false},
		{routedBy("other", true), false},
		{routedBy("c", true), true},
		{readyDeployment(0), false},
	} {
		e.see(tc.event, false)
		got := e.look("c")
		if answers(&got) != tc.want {
			t.Errorf("after %T: answers is %v, want %v", tc.event, !tc.want, tc.want)
		}
	}
}

func TestEyes_AStepIsTakenOnce(t *testing.T) {
	e := closedEyes()
	e.see(readyDeployment(1), false)
	first := e.look("c").steps[stepDeployed]
	e.see(readyDeployment(0), false)
	e.see(readyDeployment(1), false)
	steps := e.steps("c")
	if first.IsZero() || !steps[stepDeployed].Equal(first) {
		t.Errorf("ready first at %v, told as %v", first, steps[stepDeployed])
	}
	if again := e.look("c"); len(again.steps) != 0 {
		t.Errorf("told steps are kept: %v", again.steps)
	}
}

func TestEyes_ClaimAndPodSteps(t *testing.T) {
	e := closedEyes()
	claim := &v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	e.see(claim.DeepCopy(), false)
	claim.Status.Class = &v1alpha1.SandboxClassSpec{}
	e.see(claim.DeepCopy(), false)
	claim.Status.Phase = v1alpha1.PhaseBound
	e.see(claim.DeepCopy(), false)
	pod := &corev1.Pod{ObjectMeta: of("c")}
	e.see(pod.DeepCopy(), false)
	pod.Spec.NodeName = "node"
	e.see(pod.DeepCopy(), false)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	e.see(pod.DeepCopy(), false)
	got := e.look("c")
	for _, name := range []step{stepStored, stepAdmitted, stepBound, stepPod, stepScheduled, stepRunning, stepPodReady} {
		if got.steps[name].IsZero() {
			t.Errorf("%s was not seen", name)
		}
	}
	if got.readyPod != "c-sandbox" || got.claim.Status.Phase != v1alpha1.PhaseBound {
		t.Errorf("pod %q, claim %v", got.readyPod, got.claim)
	}
}

func TestEyes_AllGoneOnceTheLastObjectIs(t *testing.T) {
	e := closedEyes()
	e.see(readyDeployment(1), false)
	e.see(routedBy("c", true), false)
	e.see(cache.DeletedFinalStateUnknown{Obj: readyDeployment(1)}, true)
	if got := e.look("c"); allGone(&got) || answers(&got) || got.freed.IsZero() {
		t.Errorf("with its slice left: gone %v, answers %v, freed %v", allGone(&got), answers(&got), got.freed)
	}
	e.see(routedBy("c", true), true)
	if got := e.look("c"); !allGone(&got) {
		t.Errorf("still standing: %v", got.standing)
	}
}

func TestEyes_BareObjectsAreKnownByTheirOwnLabel(t *testing.T) {
	e := closedEyes()
	e.see(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{bareLabel: "b"}}}, false)
	e.see(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}}, false)
	if _, stranger := e.seen[""]; stranger || len(e.look("b").standing) != 1 {
		t.Errorf("seen: %v", e.seen)
	}
}

func TestEyes_AwaitIsWokenAndGivenUp(t *testing.T) {
	e := closedEyes()
	done := make(chan error, 2)
	go func() { done <- e.await(t.Context(), "c", answers) }()
	go func() { done <- e.awaitAll(t.Context(), 1, answers) }()
	e.see(readyDeployment(1), false)
	e.see(routedBy("c", true), false)
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := e.await(ctx, "c", allGone); !errors.Is(err, late) {
		t.Errorf("await: %v", err)
	}
	if err := e.awaitAll(ctx, 2, answers); !errors.Is(err, late) {
		t.Errorf("awaitAll: %v", err)
	}
}

func TestStepRows_InTheOrderInWhichTheyCame(t *testing.T) {
	began := time.Now()
	var ours, floor timeline
	ours.add(began, map[step]time.Time{stepBound: began.Add(90 * time.Millisecond), stepStored: began.Add(10 * time.Millisecond)})
	floor.add(began, map[step]time.Time{stepBound: began.Add(45 * time.Millisecond)})
	rows := stepRows(&ours, &floor)
	if len(rows) != 4 || rows[0].What != string(stepStored) || rows[2].What != string(stepBound) {
		t.Fatalf("rows: %+v", rows)
	}
	if rows[0].Floor != nil || rows[2].Value != 90 || *rows[2].Floor != 45 || rows[3].Value != 80 {
		t.Errorf("rows: %+v", rows)
	}
}
