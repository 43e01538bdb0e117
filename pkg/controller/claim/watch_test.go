package claim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/controller/kept"
)

// asKept is an object as a cache keeps it, and as its events give it.
func asKept[T client.Object](t *testing.T, object T) T {
	t.Helper()
	out, err := kept.NewKeeper().Keep(object)
	require.NoError(t, err)
	return out.(T)
}

func TestNotOwnStep(t *testing.T) {
	tests := map[string]struct {
		from, to v1alpha1.Phase
		change   func(*v1alpha1.SandboxClaim)
		passes   bool
	}{
		"our own step into Pending: known":         {"", v1alpha1.PhasePending, nil, false},
		"our own step into Bound: known":           {v1alpha1.PhasePending, v1alpha1.PhaseBound, nil, false},
		"a step into Failed: its sandbox must end": {v1alpha1.PhasePending, v1alpha1.PhaseFailed, nil, true},
		"a wiped phase: looked at":                 {v1alpha1.PhaseBound, "", nil, true},
		"a use: passes":                            {v1alpha1.PhaseBound, v1alpha1.PhaseBound, func(c *v1alpha1.SandboxClaim) { c.Status.LastUsedAt = &metav1.MicroTime{Time: began} }, true},
		"a release in the same event: passes":      {v1alpha1.PhasePending, v1alpha1.PhaseBound, func(c *v1alpha1.SandboxClaim) { c.Status.ReleaseAt = &metav1.MicroTime{Time: began} }, true},
		"another claim of the name: passes":        {"", v1alpha1.PhasePending, func(c *v1alpha1.SandboxClaim) { c.UID = "uid-2" }, true},
		"a deletion in the same event: passes":     {"", v1alpha1.PhasePending, func(c *v1alpha1.SandboxClaim) { c.DeletionTimestamp = &metav1.Time{Time: began} }, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := newClaim(), newClaim()
			before.Status.Phase, after.Status.Phase = tt.from, tt.to
			if tt.change != nil {
				tt.change(after)
			}
			assert.Equal(t, tt.passes, notOwnStep().Update(event.TypedUpdateEvent[*v1alpha1.SandboxClaim]{ObjectOld: asKept(t, before), ObjectNew: asKept(t, after)}))
		})
	}
}

func TestTellingPodChange(t *testing.T) {
	waiting := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
		}
	}
	tests := map[string]struct {
		change func(*corev1.Pod)
		passes bool
	}{
		"scheduled: tells nothing":     {func(p *corev1.Pod) { p.Spec.NodeName = "n" }, false},
		"being created: tells nothing": {waiting("ContainerCreating"), false},
		"ready: the Deployment tells": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}, false},
		"its image cannot be pulled: tells":          {waiting("ErrImagePull"), true},
		"unschedulable: tells":                       {unschedulable, true},
		"being deleted: it no longer is the sandbox": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: began} }, true},
		"evicted: it no longer is the sandbox":       {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := &corev1.Pod{}, &corev1.Pod{}
			tt.change(after)
			assert.Equal(t, tt.passes, tellingPodChange().Update(event.UpdateEvent{ObjectOld: asKept(t, before), ObjectNew: asKept(t, after)}))
		})
	}
	assert.False(t, tellingPodChange().Create(event.CreateEvent{Object: &corev1.Pod{}}))
	stuck := &corev1.Pod{}
	unschedulable(stuck)
	assert.True(t, tellingPodChange().Create(event.CreateEvent{Object: asKept(t, stuck)}), "one that was first seen when it was stuck already")
}

func unschedulable(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes"}}
}

func TestTellingDeploymentChange(t *testing.T) {
	tests := map[string]struct {
		change func(*appsv1.Deployment)
		passes bool
	}{
		"a condition's heartbeat: tells nothing": {func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue}}
		}, false},
		"its pod is there: tells":    {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, true},
		"changed by somebody: tells": {func(d *appsv1.Deployment) { d.Generation = 2 }, true},
		"its owner was taken: tells": {func(d *appsv1.Deployment) { d.OwnerReferences = nil }, true},
		"its pod was refused: tells": {func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "quota"}}
		}, true},
		"being deleted: tells": {func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: began} }, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Generation: 1, OwnerReferences: []metav1.OwnerReference{{Kind: "SandboxClaim", Name: claimName}}},
				Status:     appsv1.DeploymentStatus{ObservedGeneration: 1},
			}
			after := before.DeepCopy()
			tt.change(after)
			assert.Equal(t, tt.passes, tellingDeploymentChange().Update(event.UpdateEvent{ObjectOld: asKept(t, before), ObjectNew: asKept(t, after)}))
		})
	}
}

func TestReadinessChanged(t *testing.T) {
	slice := func(ready bool) client.Object {
		return asKept(t, &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(ready)}}}})
	}
	assert.True(t, readinessChanged().Update(event.UpdateEvent{ObjectOld: slice(false), ObjectNew: slice(true)}))
	assert.True(t, readinessChanged().Update(event.UpdateEvent{ObjectOld: slice(true), ObjectNew: slice(false)}))
	assert.False(t, readinessChanged().Update(event.UpdateEvent{ObjectOld: slice(true), ObjectNew: slice(true)}))
	assert.False(t, readinessChanged().Create(event.CreateEvent{Object: slice(false)}))
	assert.True(t, readinessChanged().Delete(event.DeleteEvent{Object: slice(true)}))
}

func TestMapping(t *testing.T) {
	owned := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SandboxClaim", Name: claimName, Controller: ptr.To(true)}}}}
	assert.Equal(t, requestFor(namespace, claimName), owningClaim(t.Context(), asKept(t, owned)))
	labels := map[string]string{v1alpha1.LabelClaim: claimName, v1alpha1.LabelClaimUID: "uid-1", discoveryv1.LabelServiceName: sandboxName}
	labelled := metav1.ObjectMeta{Namespace: namespace, Labels: labels}
	pod, slice := asKept(t, &corev1.Pod{ObjectMeta: labelled}), asKept(t, &discoveryv1.EndpointSlice{ObjectMeta: labelled})
	for _, object := range []client.Object{pod, slice} {
		assert.Equal(t, requestFor(namespace, claimName), labelledClaim(t.Context(), object))
		assert.Empty(t, owningClaim(t.Context(), object), "an object is nobody's for its label")
	}
	assert.Equal(t, []string{"uid-1"}, labelIndex(v1alpha1.LabelClaimUID)(pod))
	assert.Equal(t, []string{sandboxName}, labelIndex(discoveryv1.LabelServiceName)(slice))
}
