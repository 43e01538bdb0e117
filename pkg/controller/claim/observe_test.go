package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestNewestLivingPod_IsTheOneThatTells(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
	for _, pod := range []struct {
		name, message string
		made          time.Time
		phase         corev1.PodPhase
	}{
		{"a", "of the older", began, corev1.PodPending},
		{"b", "of the newest", began.Add(time.Minute), corev1.PodPending},
		{"c", "of one that was evicted", began.Add(time.Hour), corev1.PodFailed},
	} {
		require.NoError(t, w.host.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.name, CreationTimestamp: metav1.Time{Time: pod.made},
				Labels: map[string]string{v1alpha1.LabelClaimUID: "uid-1"}},
			Status: corev1.PodStatus{Phase: pod.phase, ContainerStatuses: []corev1.ContainerStatus{{
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: pod.message}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}},
			}}},
		}))
	}
	w.settle()
	assert.Equal(t, v1alpha1.ReasonCrashLoopBackOff, w.ready().Reason)
	assert.Equal(t, "pod b: its container ended with exit code 3 (Error); of the newest", w.ready().Message)
}

func TestEndpointsOfAnEarlierServiceOfThisName_LeadNowhere(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	service := &corev1.Service{}
	require.True(t, w.onHost(service))
	service.UID = "service-2"
	require.NoError(t, w.host.Update(t.Context(), service))
	w.serve()
	w.settle()
	require.Equal(t, v1alpha1.PhaseBound, w.claim().Status.Phase)

	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sandboxName + "-x"}}
	require.NoError(t, w.host.Get(t.Context(), client.ObjectKeyFromObject(slice), slice))
	slice.OwnerReferences[0].UID = "service-1"
	require.NoError(t, w.host.Update(t.Context(), slice))
	w.settle()
	assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase)
}
