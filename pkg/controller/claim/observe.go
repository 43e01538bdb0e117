package claim

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

const (
	// podsByClaim indexes pods by the UID of their claim.
	podsByClaim = "claim-uid"
	// slicesByService indexes EndpointSlices by their Service.
	slicesByService = "service"
)

// observe notes how the sandbox's objects stand. All is read from the cache.
func (r *Reconciler) observe(ctx context.Context, claim *v1alpha1.SandboxClaim, seen *lifecycle.Observed) error {
	key := client.ObjectKey{Namespace: claim.Namespace, Name: claim.Status.SandboxName}
	deployment := &appsv1.Deployment{}
	if err := r.Host.Get(ctx, key, deployment); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the sandbox's Deployment: %w", err)
	}
	if sandbox.OwnerOf(claim, deployment) == sandbox.Own {
		seen.DeploymentReady = deploymentReady(deployment)
		if refusal := podRefusal(deployment); refusal != "" {
			seen.PodRefused = refusal
		}
	}
	service := &corev1.Service{}
	if err := r.Host.Get(ctx, key, service); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the sandbox's Service: %w", err)
	}
	if sandbox.OwnerOf(claim, service) == sandbox.Own && service.Spec.ClusterIP != "" {
		seen.Addresses = sandbox.Addresses(claim, service.Spec.ClusterIP)
	}
	if seen.DeploymentReady {
		routed, err := r.routed(ctx, key)
		seen.Routed = routed
		return err
	}
	return r.observePod(ctx, claim, seen)
}

func deploymentReady(d *appsv1.Deployment) bool {
	return d.Generation > 0 && d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= 1 && d.Status.ReadyReplicas >= 1
}

// podRefusal is why the Deployment's pod cannot be created, in the refuser's words.
func podRefusal(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// routed says whether the Service has a ready endpoint.
func (r *Reconciler) routed(ctx context.Context, service client.ObjectKey) (bool, error) {
	var slices discoveryv1.EndpointSliceList
	if err := r.Host.List(ctx, &slices, client.InNamespace(service.Namespace), client.MatchingFields{slicesByService: service.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the sandbox's EndpointSlices: %w", err)
	}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, false) {
				return true, nil
			}
		}
	}
	return false, nil
}

// observePod notes what the newest living pod waits for.
func (r *Reconciler) observePod(ctx context.Context, claim *v1alpha1.SandboxClaim, seen *lifecycle.Observed) error {
	var pods corev1.PodList
	if err := r.Host.List(ctx, &pods, client.InNamespace(claim.Namespace), client.MatchingFields{podsByClaim: string(claim.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the sandbox's pods: %w", err)
	}
	var newest *corev1.Pod
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp == nil && (newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			newest = pod
		}
	}
	if newest != nil {
		seen.Pod = observedPod(newest)
	}
	return nil
}

func observedPod(pod *corev1.Pod) lifecycle.PodObserved {
	out := lifecycle.PodObserved{Name: pod.Name}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			out.Unschedulable = c.Message
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			out.WaitingReason, out.WaitingMessage = w.Reason, w.Message
		}
	}
	return out
}
