package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

// firstRetry and lastRetry bound the growing delay after which a reconcile that ended in an error is tried again.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

// Add puts the controller into the manager of the host cluster, with our own group as its second cluster.
func Add(ctx context.Context, host manager.Manager, claims cluster.Cluster, clock clock.PassiveClock) error {
	if err := addIndexes(ctx, host.GetFieldIndexer()); err != nil {
		return err
	}
	r := &Reconciler{
		Claims: claims.GetClient(), ClaimsLive: claims.GetAPIReader(),
		Host: host.GetClient(), HostLive: host.GetAPIReader(), Clock: clock,
	}
	byOwner, byLabel := handler.EnqueueRequestsFromMapFunc(owningClaim), handler.EnqueueRequestsFromMapFunc(labelledClaim)
	err := builder.ControllerManagedBy(host).
		Named("sandboxclaim").
		WithOptions(controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)}).
		WatchesRawSource(source.Kind(claims.GetCache(), &v1alpha1.SandboxClaim{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.SandboxClaim]{}, notOwnStep())).
		Watches(&networkingv1.NetworkPolicy{}, byOwner, builder.WithPredicates(changedOrGone())).
		Watches(&corev1.Service{}, byOwner, builder.WithPredicates(changedOrGone())).
		Watches(&appsv1.Deployment{}, byOwner, builder.WithPredicates(tellingDeploymentChange())).
		Watches(&discoveryv1.EndpointSlice{}, byLabel, builder.WithPredicates(readinessChanged())).
		Watches(&corev1.Pod{}, byLabel, builder.WithPredicates(tellingPodChange())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("building the claims' controller: %w", err)
	}
	return nil
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, podsByClaim, labelIndex(v1alpha1.LabelClaimUID)); err != nil {
		return fmt.Errorf("indexing pods by claim: %w", err)
	}
	if err := indexer.IndexField(ctx, &discoveryv1.EndpointSlice{}, slicesByService, labelIndex(discoveryv1.LabelServiceName)); err != nil {
		return fmt.Errorf("indexing EndpointSlices by Service: %w", err)
	}
	return nil
}

func labelIndex(label string) client.IndexerFunc {
	return func(o client.Object) []string { return []string{o.GetLabels()[label]} }
}

// owningClaim maps an object to the claim that controls it.
func owningClaim(_ context.Context, o client.Object) []reconcile.Request {
	return requestFor(o.GetNamespace(), sandbox.ClaimOf(o))
}

// labelledClaim maps an object that a claim does not control itself. A wrong label costs a reconcile that finds nothing to do.
func labelledClaim(_ context.Context, o client.Object) []reconcile.Request {
	return requestFor(o.GetNamespace(), o.GetLabels()[v1alpha1.LabelClaim])
}

func requestFor(namespace, name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// notOwnStep drops a claim's step into Pending or Bound: this controller alone takes it, and knew it first. What others
// ask of the claim by its status passes, also where a gap in the watch shows both as one.
func notOwnStep() predicate.TypedPredicate[*v1alpha1.SandboxClaim] {
	return predicate.TypedFuncs[*v1alpha1.SandboxClaim]{
		UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.SandboxClaim]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			stepped := before.Status.Phase != after.Status.Phase && (after.Status.Phase == v1alpha1.PhasePending || after.Status.Phase == v1alpha1.PhaseBound)
			asked := !equality.Semantic.DeepEqual(before.Status.Wait, after.Status.Wait) || !before.Status.ReleaseAt.Equal(after.Status.ReleaseAt)
			return !stepped || asked || before.UID != after.UID || after.DeletionTimestamp != nil
		},
	}
}

// changedOrGone drops the creation of what this controller created itself. What it finds standing when it starts is
// looked at for the claim's own sake.
func changedOrGone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: predicate.ResourceVersionChangedPredicate{}.Update,
	}
}

// tellingDeploymentChange lets pass what changes a verdict or what was built. The creation passes, because it says that
// the cache holds all that was made.
func tellingDeploymentChange() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*appsv1.Deployment), e.ObjectNew.(*appsv1.Deployment)
			return before.UID != after.UID || before.Generation != after.Generation || rolloutOf(before) != rolloutOf(after) ||
				!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
				!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
				(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
		},
	}
}

// tellingPodChange lets pass what changes a verdict: a pod has some seven events in its life, and few of them tell.
func tellingPodChange() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			pod := observedPod(e.Object.(*corev1.Pod))
			return pod.Unschedulable != "" || pod.WaitingReason != ""
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
			return observedPod(before) != observedPod(after) || living(before) != living(after)
		},
	}
}

// readinessChanged lets pass what changes whether the Service has a ready endpoint.
func readinessChanged() predicate.Predicate {
	ready := func(o client.Object) bool {
		return slices.ContainsFunc(o.(*discoveryv1.EndpointSlice).Endpoints, func(e discoveryv1.Endpoint) bool {
			return e.Conditions.Ready != nil && *e.Conditions.Ready
		})
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return ready(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return ready(e.ObjectOld) != ready(e.ObjectNew) },
	}
}
