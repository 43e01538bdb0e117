// Package controller runs the controllers beside the API: on the one replica that holds the Lease, over two clusters,
// the host's and, by the loopback, our own group's. A lost Lease ends the controllers and not the process: they are
// built again and wait for their turn, while the API keeps serving. It refuses to know what a controller does, and to send
// what one writes while another replica may hold the Lease.
package controller

import (
	"context"
	"errors"
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
	// reconcilers is how many claims, or ToolRegistries, are worked on at once.
	reconcilers = 8
	// reconcileTimeout bounds the work on one of them, so that a host that does not answer holds no reconciler for ever.
	reconcileTimeout = time.Minute
	// shutdownTimeout bounds the wait for what is under way when the controllers end.
	shutdownTimeout = 5 * time.Second
	// longestPause bounds the wait between two buildings that fail, and so how late it is noticed that the host is back.
	longestPause = 3 * time.Second
)

// Config says where the controllers work.
type Config struct {
	// Host leads to the cluster in which sandboxes run.
	Host *rest.Config
	// Loopback leads to our own group, past the aggregator.
	Loopback *rest.Config
	// Namespace is the server's own. It holds the Lease.
	Namespace string
	// Election says how the Lease is held.
	Election Election
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

// Run runs the controllers whenever this replica holds the Lease, until ctx ends. What goes wrong is logged and tried again:
// at once if they had run for a while, else after a growing pause. Both count by the machine's clock, as the Lease does. It
// gives an error only where cfg.Host makes no client.
func Run(ctx context.Context, cfg Config) error {
	replica, stop, err := newCandidate(ctx, cfg)
	if err != nil {
		return err
	}
	defer stop()
	again := pauses()
	for ctx.Err() == nil {
		began := time.Now()
		err := runTerm(ctx, cfg, replica)
		termsEnded.WithLabelValues(causeOf(ctx, err)).Inc()
		if ctx.Err() != nil {
			return nil
		}
		klog.FromContext(ctx).Error(err, "Controllers ended; building them again")
		if time.Since(began) > longestPause {
			again = pauses()
			continue
		}
		select {
		case <-time.After(again.Step()):
		case <-ctx.Done():
		}
	}
	return nil
}

// pauses are those between buildings that fail.
func pauses() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 4, Cap: longestPause}
}

// causeOf is what ended the controllers, as it is counted.
func causeOf(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return causeStopped
	case errors.Is(err, errLeaseLost), errors.Is(err, errReleased): // given up unasked, that is, because it was not renewed
		return causeLeaseLost
	case errors.Is(err, errHostGone):
		return causeHostUnreachable
	}
	return causeError
}

// runTerm builds the controllers, waits for the Lease, and runs them until it is lost or ctx ends. What is left of them then
// cannot write.
func runTerm(ctx context.Context, cfg Config, replica *candidate) error {
	t := newTerm(ctx, cfg.Election, clock.RealClock{})
	defer t.finish(errReleased)
	keeper := kept.NewKeeper()
	manager, err := ctrl.NewManager(t.fence(countWrites(cfg.Host, "host"), "host"), replica.managerOptions(ctx, t, keeper))
	if err != nil {
		return fmt.Errorf("building the controllers' manager: %w", err)
	}
	claims, err := cluster.New(t.fence(countWrites(cfg.Loopback, "own"), "own"), func(o *cluster.Options) {
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
	if err := claim.Add(t.ctx, manager, claims, claim.Options{
		Clock: cfg.Clock, NewQueue: queueOn(cfg.Clock), Resolver: cfg.Resolver, Confirm: cfg.Confirm, Traces: cfg.Traces,
	}); err != nil {
		return err
	}
	if err := toolregistry.Add(t.ctx, manager, claims, toolregistry.Options{Clock: cfg.Clock, NewQueue: queueOn(cfg.Clock)}); err != nil {
		return err
	}
	if err := manager.Start(t.ctx); err != nil {
		return errors.Join(t.over(), fmt.Errorf("running the controllers: %w", err))
	}
	return t.over()
}

// managerOptions have the manager fill its caches at once, wait for the Lease with them, and give it up when it ends.
func (c *candidate) managerOptions(ctx context.Context, t *term, keeper *kept.Keeper) ctrl.Options {
	return ctrl.Options{
		Scheme: hostScheme(),
		Cache:  hostCache(keeper),
		// Whoever looks at a claim again sees what was just built for it.
		Client:                              client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		Logger:                              klog.FromContext(ctx),
		LeaderElection:                      true,
		LeaderElectionID:                    leaseName,
		LeaderElectionResourceLockInterface: c.lock(t),
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       ptr.To(c.LeaseDuration),
		RenewDeadline:                       ptr.To(c.RenewDeadline),
		RetryPeriod:                         ptr.To(c.RetryPeriod),
		Metrics:                             metricsserver.Options{BindAddress: "0"}, // the API server serves them
		GracefulShutdownTimeout:             ptr.To(shutdownTimeout),
		Controller: config.Controller{
			MaxConcurrentReconciles: reconcilers,
			ReconciliationTimeout:   reconcileTimeout,
			SkipNameValidation:      ptr.To(true), // they are built again after a lost Lease
		},
	}
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
