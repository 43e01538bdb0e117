// Package controller runs the controllers beside the API: on the one replica that holds the Lease, over two clusters,
// the host's and, by the loopback, our own group's. A lost Lease ends the controllers and not the process: they are
// built again and wait for their turn, while the API keeps serving. It refuses to know what a controller does.
package controller

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/controller/claim"
	"github.com/altairalabs/omnia-sandboxes/pkg/controller/kept"
	"github.com/altairalabs/omnia-sandboxes/pkg/controller/toolregistry"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

const (
	// leaseName is the Lease of the replica that runs the controllers.
	leaseName = "sandbox-apiserver"
	// reconcilers is how many claims, or ToolRegistries, are worked on at once.
	reconcilers = 8
	// reconcileTimeout bounds the work on one of them, so that a host that does not answer holds no reconciler for ever.
	reconcileTimeout = time.Minute
	// shutdownTimeout bounds the wait for what is under way when the controllers end.
	shutdownTimeout = 5 * time.Second
)

// Config says where the controllers work.
type Config struct {
	// Host leads to the cluster in which sandboxes run.
	Host *rest.Config
	// Loopback leads to our own group, past the aggregator.
	Loopback *rest.Config
	// Namespace is the server's own. It holds the Lease.
	Namespace string
	// Resolver is who answers as the cluster's DNS, for the classes that allow it.
	Resolver []sandbox.DNSPeer
	// Confirm gives an error if claims may be missing because their store is not the one that it was. It is asked before anything of
	// a claim that is not found is removed; nil never objects.
	Confirm func(context.Context) error
	// Clock tells the time that claims live by.
	Clock clock.WithTicker
	// Traces makes the spans of reconciles; nil makes none.
	Traces trace.TracerProvider
}

// Run runs the controllers whenever this replica holds the Lease, until ctx ends. It gives no error: what goes wrong
// is logged and tried again after a growing delay.
func Run(ctx context.Context, cfg Config) error {
	delay := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 6, Cap: 30 * time.Second}
	again := delay
	for ctx.Err() == nil {
		began := cfg.Clock.Now()
		if err := runOnce(ctx, cfg); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Controllers ended; building them again")
		}
		if cfg.Clock.Since(began) > delay.Cap {
			again = delay
		}
		select {
		case <-cfg.Clock.After(again.Step()):
		case <-ctx.Done():
		}
	}
	return nil
}

func runOnce(ctx context.Context, cfg Config) error {
	keeper := kept.NewKeeper()
	manager, err := ctrl.NewManager(countWrites(cfg.Host, "host"), ctrl.Options{
		Scheme: hostScheme(),
		Cache:  hostCache(keeper),
		// Whoever looks at a claim again sees what was just built for it.
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		Logger:                        klog.FromContext(ctx),
		LeaderElection:                true,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       cfg.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // the API server serves them
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		Controller: config.Controller{
			MaxConcurrentReconciles: reconcilers,
			ReconciliationTimeout:   reconcileTimeout,
			SkipNameValidation:      ptr.To(true), // they are built again after a lost Lease
		},
	})
	if err != nil {
		return fmt.Errorf("building the controllers' manager: %w", err)
	}
	claims, err := cluster.New(countWrites(cfg.Loopback, "own"), func(o *cluster.Options) {
		o.Scheme = claimsScheme()
		o.Logger = klog.FromContext(ctx)
		o.Cache = cache.Options{DefaultTransform: keeper.Keep}
		// Whoever looks at a claim again sees what was just written of it.
		o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
	})
	if err != nil {
		return fmt.Errorf("connecting to our own group: %w", err)
	}
	if err := manager.Add(claims); err != nil {
		return fmt.Errorf("adding our own group to the manager: %w", err)
	}
	if err := claim.Add(ctx, manager, claims, claim.Options{
		Clock: cfg.Clock, NewQueue: queueOn(cfg.Clock), Resolver: cfg.Resolver, Confirm: cfg.Confirm, Traces: cfg.Traces,
	}); err != nil {
		return err
	}
	if err := toolregistry.Add(ctx, manager, claims, toolregistry.Options{Clock: cfg.Clock, NewQueue: queueOn(cfg.Clock)}); err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

func hostScheme() *runtime.Scheme {
	out := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, omniav1alpha1.AddToScheme} {
		must(add(out))
	}
	return out
}

func claimsScheme() *runtime.Scheme {
	out := runtime.NewScheme()
	must(v1alpha1.AddToScheme(out))
	return out
}

// hostCache keeps of the host's objects those that belong to claims, which are found by label here and trusted by owner, and all
// Services and NetworkPolicies: sandboxes reach other Services, and are opened by other policies.
func hostCache(keeper *kept.Keeper) cache.Options {
	exists, err := labels.NewRequirement(v1alpha1.LabelClaim, selection.Exists, nil)
	must(err)
	ours := cache.ByObject{Label: labels.NewSelector().Add(*exists)}
	return cache.Options{
		DefaultTransform: keeper.Keep,
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}:         ours,
			&corev1.Pod{}:                ours,
			&discoveryv1.EndpointSlice{}: ours,
		},
	}
}

// must is for what can only fail if the program itself is wrong.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
