package claim

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

// observe notes how the sandbox's objects, which all stand, do.
func (r *Reconciler) observe(ctx context.Context, claim *v1alpha1.SandboxClaim, service *corev1.Service, deployment *appsv1.Deployment, seen *lifecycle.Observed) error {
	if ip := service.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		seen.Addresses = sandbox.Addresses(claim, ip)
	}
	told := rolloutOf(deployment)
	seen.Deployment = sandbox.Record(deployment)
	seen.DeploymentReady = told.ready
	seen.Refused = told.refusal
	if told.ready {
		routed, err := r.routed(ctx, service)
		if seen.Routed = routed; err != nil || routed {
			return err
		}
	}
	if err := r.observePod(ctx, claim, seen); err != nil || told.updated {
		return err
	}
	// What pods there are may have been made from an older template, so nothing ends for what they say. That they do not
	// answer, or cannot be placed, holds all the same: a Deployment that has just lost its pod does not count the next one yet.
	seen.Pod = lifecycle.PodObserved{Name: seen.Pod.Name, Unschedulable: seen.Pod.Unschedulable}
	return nil
}

// rollout is what a Deployment tells of its current generation: nothing while its controller has not seen that yet.
type rollout struct {
	// updated says that a pod of the current template exists, and ready that one is ready.
	updated, ready bool
	// refusal is why the pod cannot be created, in the refuser's words.
	refusal string
}

func rolloutOf(d *appsv1.Deployment) rollout {
	if d.Generation == 0 || d.Status.ObservedGeneration < d.Generation {
		return rollout{}
	}
	told := rollout{updated: d.Status.UpdatedReplicas >= 1}
	told.ready = told.updated && d.Status.ReadyReplicas >= 1
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			told.refusal = c.Message
		}
	}
	return told
}

// routed says whether the Service has a ready endpoint. One of an earlier Service of this name, which is still being
// collected, leads nowhere for long.
func (r *Reconciler) routed(ctx context.Context, service *corev1.Service) (bool, error) {
	var standing discoveryv1.EndpointSliceList
	if err := r.Host.List(ctx, &standing, client.InNamespace(service.Namespace), client.MatchingFields{slicesByService: service.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the sandbox's EndpointSlices: %w", err)
	}
	return slices.ContainsFunc(standing.Items, func(slice discoveryv1.EndpointSlice) bool {
		return metav1.IsControlledBy(&slice, service) && sandbox.Answering(&slice)
	}), nil
}

// observePod notes what the newest living pod waits for.
func (r *Reconciler) observePod(ctx context.Context, claim *v1alpha1.SandboxClaim, seen *lifecycle.Observed) error {
	pods, err := r.podsOf(ctx, claim)
	if err != nil {
		return err
	}
	var newest *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if living(pod) && (newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			newest = pod
		}
	}
	if newest != nil {
		seen.Pod = observedPod(newest)
	}
	return nil
}

// podsOf gives the sandbox's pods as the cache has them, which are only read.
func (r *Reconciler) podsOf(ctx context.Context, claim *v1alpha1.SandboxClaim) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.Host.List(ctx, &pods, client.InNamespace(claim.Namespace), client.MatchingFields{podsByClaim: string(claim.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the sandbox's pods: %w", err)
	}
	return pods.Items, nil
}

// living says whether a pod may still become the sandbox: one that ends or has ended, evicted say, is replaced.
func living(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

// passingWaits are kubelet's reasons that every container passes through, and which tell nothing.
var passingWaits = sets.New("ContainerCreating", "PodInitializing")

func observedPod(pod *corev1.Pod) lifecycle.PodObserved {
	out := lifecycle.PodObserved{Name: pod.Name}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			out.Unschedulable = c.Message
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Ready {
			continue
		}
		if w := c.State.Waiting; w != nil && !passingWaits.Has(w.Reason) {
			out.WaitingReason, out.WaitingMessage = w.Reason, w.Message
		}
		if out.LastExit = lastExit(c.State.Terminated); out.LastExit == "" {
			out.LastExit = lastExit(c.LastTerminationState.Terminated)
		}
	}
	return out
}

func lastExit(ended *corev1.ContainerStateTerminated) string {
	if ended == nil {
		return ""
	}
	return fmt.Sprintf("its container ended with exit code %d (%s)", ended.ExitCode, ended.Reason)
}
