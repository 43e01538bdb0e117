package toolregistry

import (
	"context"
	"fmt"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

const (
	// eventSource is who tells, in Events.
	eventSource = "sandbox-apiserver"
	// byClass indexes ToolRegistries by the classes that their sandboxes name.
	byClass = "class"
	// again is when to ask again for a kind that the cluster does not know.
	again = 10 * time.Second
)

// firstRetry and lastRetry bound the growing delay after which a reconcile that ended in an error is tried again.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

// Options say by what the controller works.
type Options struct {
	// Clock tells the time.
	Clock clock.Clock
	// NewQueue makes the queue of registries to be looked at; nil makes controller-runtime's own.
	NewQueue func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Add puts the controller into the manager of the host cluster, with our own group as its second cluster.
func Add(ctx context.Context, host manager.Manager, own cluster.Cluster, options Options) error {
	all := &registries{cache: host.GetCache()}
	// The cache is filled before the Lease is there, if it can be.
	if err := all.list(ctx); err != nil && !apimeta.IsNoMatchError(err) {
		return err
	}
	r := &Reconciler{
		Host: host.GetClient(), Own: own.GetClient(), OwnLive: own.GetAPIReader(),
		Events: host.GetEventRecorder(eventSource), Clock: options.Clock, listed: all.listed,
	}
	err := builder.ControllerManagedBy(host).
		Named("toolregistry").
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
			NewQueue:    options.NewQueue,
		}).
		WatchesRawSource(all.source(options.Clock)).
		WatchesRawSource(source.Kind(own.GetCache(), &v1alpha1.SandboxClass{}, handler.TypedEnqueueRequestsFromMapFunc(r.namingClass))).
		WatchesRawSource(source.Kind(own.GetCache(), &v1alpha1.ClusterSandboxClass{}, handler.TypedEnqueueRequestsFromMapFunc(r.namingClusterClass))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("building the ToolRegistries' controller: %w", err)
	}
	return nil
}

func (r *Reconciler) namingClass(ctx context.Context, class *v1alpha1.SandboxClass) []reconcile.Request {
	return r.naming(ctx, class.Namespace, v1alpha1.ClassReference{Kind: v1alpha1.SandboxClassKind, Name: class.Name})
}

func (r *Reconciler) namingClusterClass(ctx context.Context, class *v1alpha1.ClusterSandboxClass) []reconcile.Request {
	return r.naming(ctx, "", v1alpha1.ClassReference{Kind: v1alpha1.ClusterSandboxClassKind, Name: class.Name})
}

// naming gives the registries of a namespace, or of all, that name a class. While the cache does not have them all it gives
// none: each is looked at when the cache has it, which then has the class as well.
func (r *Reconciler) naming(ctx context.Context, namespace string, ref v1alpha1.ClassReference) []reconcile.Request {
	if !r.listed() {
		return nil
	}
	found := &omniav1alpha1.ToolRegistryList{}
	if err := r.Host.List(ctx, found, client.InNamespace(namespace), client.MatchingFields{byClass: indexOf(ref)}); err != nil {
		klog.FromContext(ctx).Error(err, "Finding the ToolRegistries that name a class", "kind", ref.Kind, "class", klog.KRef(namespace, ref.Name))
		return nil
	}
	var out []reconcile.Request
	for i := range found.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found.Items[i])})
	}
	return out
}

// indexOf is a class as the index has it.
func indexOf(ref v1alpha1.ClassReference) string { return string(ref.Kind) + "/" + ref.Name }

// classesOf are the classes that a registry's sandboxes name.
func classesOf(o client.Object) []string {
	registry, ok := o.(*omniav1alpha1.ToolRegistry)
	if !ok {
		return nil
	}
	var out []string
	for _, sandbox := range registry.Spec.Sandboxes {
		out = append(out, indexOf(lifecycle.ClassOf(sandbox)))
	}
	return out
}

// registries are the cluster's ToolRegistries as a cache holds them, from when on the cluster knows the kind.
type registries struct {
	cache cache.Cache

	mu       sync.Mutex
	informer cache.Informer // nil until then
}

// list has the cache hold them, and find them by the classes that they name.
func (r *registries) list(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.informer != nil {
		return nil
	}
	informer, err := r.cache.GetInformer(ctx, &omniav1alpha1.ToolRegistry{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("filling the cache of ToolRegistries: %w", err)
	}
	if err := r.cache.IndexField(ctx, &omniav1alpha1.ToolRegistry{}, byClass, classesOf); err != nil {
		return fmt.Errorf("indexing ToolRegistries: %w", err)
	}
	r.informer = informer
	return nil
}

// listed says whether the cache has them all.
func (r *registries) listed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.informer != nil && r.informer.HasSynced()
}

// source has them all looked at, and each that changes. A cluster without the kind is asked again and again, beside the
// controllers, which controller-runtime's own source would end after two minutes: there are claims without ToolRegistries.
func (r *registries) source(by clock.Clock) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			for {
				err := r.list(ctx)
				if err == nil {
					break
				}
				if !apimeta.IsNoMatchError(err) { // of which the server tells when it starts
					klog.FromContext(ctx).Error(err, "Watching ToolRegistries")
				}
				select {
				case <-by.After(again):
				case <-ctx.Done():
					return
				}
			}
			each := source.Kind(r.cache, &omniav1alpha1.ToolRegistry{}, &handler.TypedEnqueueRequestForObject[*omniav1alpha1.ToolRegistry]{})
			if err := each.Start(ctx, queue); err != nil {
				klog.FromContext(ctx).Error(err, "Watching ToolRegistries")
			}
		}()
		return nil
	})
}
