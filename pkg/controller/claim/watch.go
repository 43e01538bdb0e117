package claim

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
)

// eventSource is who tells, in Events.
const eventSource = "sandbox-apiserver"

// firstRetry and lastRetry bound the growing delay after which a reconcile that ended in an error is tried again.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

// Options say by what the controller works.
type Options struct {
	// Clock tells the time that claims live by.
	Clock clock.WithTicker
	// NewQueue makes the queue of claims to be looked at; nil makes controller-runtime's own.
	NewQueue func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]
	// Resolver is who answers as the cluster's DNS, for the classes that allow it.
	Resolver []sandbox.DNSPeer
	// Confirm gives an error if claims may be missing because their store is not the one that it was; nil never objects.
	Confirm func(context.Context) error
	// Traces makes the spans of reconciles; nil makes none.
	Traces trace.TracerProvider
}

// Add puts the controller into the manager of the host cluster, with our own group as its second cluster.
func Add(ctx context.Context, host manager.Manager, claims cluster.Cluster, options Options) error {
	r := &Reconciler{
		Claims: claims.GetClient(), ClaimsLive: claims.GetAPIReader(),
		Host: host.GetClient(), HostLive: host.GetAPIReader(),
		Events: host.GetEventRecorder(eventSource), Clock: options.Clock, Resolver: options.Resolver,
		Confirm: options.Confirm, Spans: spans.By(options.Traces),
		admissions: keymutex.NewHashed(admissionLocks), freed: make(chan types.NamespacedName, admissionLocks),
	}
	if err := r.addIndexes(ctx, host.GetCache(), claims.GetCache()); err != nil {
		return err
	}
	if err := warm(ctx, host.GetCache(), claims.GetCache()); err != nil {
		return err
	}
	byOwner, byLabel := handler.EnqueueRequestsFromMapFunc(owningClaim), handler.EnqueueRequestsFromMapFunc(labelledClaim)
	err := builder.ControllerManagedBy(host).
		Named("sandboxclaim").
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
			NewQueue:    options.NewQueue,
		}).
		WatchesRawSource(source.Kind(claims.GetCache(), &v1alpha1.SandboxClaim{}, &waitersFirst{}, notOwnStep())).
		WatchesRawSource(source.Kind(claims.GetCache(), &v1alpha1.SandboxClaim{}, handler.TypedEnqueueRequestsFromMapFunc(r.nextAfterClaim), placeFreed())).
		WatchesRawSource(r.recheckAll(options.Clock, func(ctx context.Context) bool {
			return claims.GetCache().WaitForCacheSync(ctx) && host.GetCache().WaitForCacheSync(ctx)
		})).
		Watches(&omniav1alpha1.AgentRuntime{}, handler.EnqueueRequestsFromMapFunc(r.claimsOfRuntime), builder.WithPredicates(sandboxTermsChanged())).
		Watches(&networkingv1.NetworkPolicy{}, byOwner, builder.WithPredicates(changedOrGone())).
		Watches(&networkingv1.NetworkPolicy{}, handler.EnqueueRequestsFromMapFunc(r.claimsConcerned), builder.WithPredicates(concerning())).
		Watches(&corev1.Service{}, byOwner, builder.WithPredicates(changedOrGone())).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.claimsThatReach), builder.WithPredicates(leadsElsewhere())).
		Watches(&appsv1.Deployment{}, byOwner, builder.WithPredicates(tellingDeploymentChange())).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.nextAfterDeployment), builder.WithPredicates(gone())).
		Watches(&discoveryv1.EndpointSlice{}, byLabel, builder.WithPredicates(readinessChanged())).
		Watches(&corev1.Pod{}, byLabel, builder.WithPredicates(tellingPodChange())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("building the claims' controller: %w", err)
	}
	if err := host.Add(&gaugeSource{claims: claims.GetClient(), clock: options.Clock}); err != nil {
		return fmt.Errorf("adding the claims' gauges: %w", err)
	}
	return nil
}

// warm has the caches filled before the Lease is there, so that a replica that takes over begins at once. The controller's
// own warm-up would fill its queue besides, with each claim that ever was.
func warm(ctx context.Context, host, claims cache.Cache) error {
	for _, informed := range []struct {
		by      cache.Cache
		objects []client.Object
	}{
		{claims, []client.Object{&v1alpha1.SandboxClaim{}, &v1alpha1.SandboxClass{}, &v1alpha1.ClusterSandboxClass{}}},
		{host, []client.Object{
			&omniav1alpha1.AgentRuntime{}, &networkingv1.NetworkPolicy{}, &corev1.Service{}, &appsv1.Deployment{}, &discoveryv1.EndpointSlice{}, &corev1.Pod{},
			namespaceMeta(),
		}},
	} {
		for _, object := range informed.objects {
			// A cluster without Omnia's kinds is told of when one is needed.
			if _, err := informed.by.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil && !apimeta.IsNoMatchError(err) {
				return fmt.Errorf("filling the cache of %T: %w", object, err)
			}
		}
	}
	return nil
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

// ownSteps are the phases into which this controller alone takes a claim and after which it has nothing to do at once.
var ownSteps = sets.New(v1alpha1.PhaseQueued, v1alpha1.PhasePending, v1alpha1.PhaseBound)

// notOwnStep drops a claim's step into Queued, Pending or Bound: this controller alone takes it, and knew it first. What others
// ask of the claim by its status passes, also where a gap in the watch shows both as one.
func notOwnStep() predicate.TypedPredicate[*v1alpha1.SandboxClaim] {
	return predicate.TypedFuncs[*v1alpha1.SandboxClaim]{
		UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.SandboxClaim]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			stepped := before.Status.Phase != after.Status.Phase && ownSteps.Has(after.Status.Phase)
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

// tellingDeploymentChange lets pass what changes a verdict or what was built.
func tellingDeploymentChange() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
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
			return observedPod(before) != observedPod(after) || living(before) != living(after) || !equality.Semantic.DeepEqual(before.Labels, after.Labels)
		},
	}
}

// readinessChanged lets pass what changes whether the Service has a ready endpoint.
func readinessChanged() predicate.Predicate {
	ready := func(o client.Object) bool { return sandbox.Answering(o.(*discoveryv1.EndpointSlice)) }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return ready(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return ready(e.ObjectOld) != ready(e.ObjectNew) },
	}
}
