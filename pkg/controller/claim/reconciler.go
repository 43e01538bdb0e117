// Package claim reconciles SandboxClaims: it reads what there is, asks pkg/lifecycle what is due, applies what
// pkg/sandbox built, and writes the claim's status where it changed. It refuses to decide: a rule of the specification that is
// found here is in the wrong place.
package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
)

const (
	// recheck is when to look again at what sends no event: an object of somebody else's, a refusal that may pass, and
	// whoever waits.
	recheck = 10 * time.Second
	// soon is when to look again at what changed under a write.
	soon = time.Second
	// atOnce is when to look again at what came due a moment ago.
	atOnce = time.Millisecond
	// admissionLocks is among how many locks the runtimes share themselves out.
	admissionLocks = 64
)

// Reconciler turns claims into sandboxes.
type Reconciler struct {
	// Claims reads our own group from a cache that holds what this client wrote, and writes it; ClaimsLive reads it uncached.
	Claims     client.Client
	ClaimsLive client.Reader
	// Host reads the host cluster from a cache and writes it; HostLive reads it uncached.
	Host     client.Client
	HostLive client.Reader
	// Events tells people what they must know.
	Events events.EventRecorder
	// Resolver is who answers as the cluster's DNS.
	Resolver []sandbox.DNSPeer
	Clock    clock.PassiveClock
	// Confirm gives an error if claims may be missing because their store is not the one that it was. It is asked before anything
	// of a claim that is not found is removed; nil never objects.
	Confirm func(context.Context) error
	// Spans makes those of the reconciles that an acquire waits for.
	Spans spans.Tracer

	// claims, deployments, services and policies are what the caches of Claims and Host hold: claims and Deployments by
	// AgentRuntime, claims by the Services that they reach besides, policies by whom they may concern, and a sandbox's objects by claim.
	claims, deployments, services, policies index

	leases leases
	// admissions has one claim of a runtime at a time decided on, so that none is admitted on another's slot.
	admissions keymutex.KeyMutex
	takeover   takeover
	// building are the claims for which a Deployment may be under way, and given what was decided of claims a moment ago.
	building building
	given    given
	// freed are the runtimes of which a place became free in a way that no event tells.
	freed chan types.NamespacedName
}

var _ reconcile.Reconciler = &Reconciler{}

// work is one claim as it is worked on.
type work struct {
	// claim is as it should be, and before as it is stored.
	claim, before *v1alpha1.SandboxClaim
	// runtime is the claim's; nil if there is none.
	runtime *omniav1alpha1.AgentRuntime
	// end is how the claim ends now, if it does.
	end lifecycle.End
	// confirmed says that the API, and not only the cache, had the claim since this work began.
	confirmed bool
	// reach is what the sandbox may reach; nil until that is known, which is when its NetworkPolicy was made ahead, or is looked at.
	reach *reach
	// again is when to look again at what keeps no status waiting; zero is never.
	again time.Duration
	// firstQueued says that no other claim of the runtime waits for a slot.
	firstQueued bool
}

// Reconcile brings one claim a step further.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	began := r.Clock.Now()
	result, err := r.reconcile(ctx, request)
	observeReconcile(r.Clock.Since(began), err)
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, request reconcile.Request) (_ reconcile.Result, err error) {
	claim := &v1alpha1.SandboxClaim{}
	err = r.Claims.Get(ctx, request.NamespacedName, claim)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading a claim: %w", err)
	}
	r.given.drop(request.NamespacedName) // the cache has by now what was written of it
	gone := apierrors.IsNotFound(err)
	if err := r.clear(ctx, request.NamespacedName, claim.UID); err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case gone:
		r.leases.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	case claim.DeletionTimestamp != nil:
		r.leases.forget(request.NamespacedName)
		return reconcile.Result{}, r.finalize(ctx, claim)
	}
	if unwaited, _ := r.unwaited(claim); unwaited {
		return reconcile.Result{}, r.withdraw(ctx, claim)
	}
	ctx, span := r.join(ctx, claim)
	defer func() { endSpan(span, claim, err) }()
	runtime, err := r.runtime(ctx, r.Host, runtimeOf(claim))
	if err != nil {
		return reconcile.Result{}, err
	}
	defer r.built(ctx, claim)
	w := &work{claim: claim, before: claim.DeepCopy(), runtime: runtime}
	if w.end, _ = lifecycle.Due(claim, runtime, r.Clock.Now()); w.end.Delete {
		return r.end(ctx, claim)
	}
	after, err := r.advance(ctx, w)
	if errors.Is(err, errChanged) {
		after, err = soon, nil // and sooner, by the event of whoever changed it
	}
	written, werr := r.record(ctx, w)
	if err = errors.Join(err, werr); err != nil {
		return reconcile.Result{}, err
	}
	if !written {
		after = soon
	}
	return reconcile.Result{RequeueAfter: soonest(after, w.again, r.timeLeft(w))}, nil
}

// timeLeft is how long it is until time alone concerns the claim: at once, if that was while it was worked on.
func (r *Reconciler) timeLeft(w *work) time.Duration {
	unwaited, leaseEnds := r.unwaited(w.claim)
	now := r.Clock.Now()
	end, due := lifecycle.Due(w.claim, w.runtime, now)
	switch {
	case end.Now() && w.end.Now():
		return soon // it could not be carried out
	case end.Now(), unwaited:
		return atOnce
	}
	return soonest(leaseEnds, due, lifecycle.Starting(w.claim, now))
}

// soonest is the shortest of several delays of which zero is none.
func soonest(delays ...time.Duration) time.Duration {
	var out time.Duration
	for _, d := range delays {
		if d > 0 && (out == 0 || d < out) {
			out = d
		}
	}
	return out
}

// advance changes the claim's status to what it should say, and says when to look again.
func (r *Reconciler) advance(ctx context.Context, w *work) (time.Duration, error) {
	switch {
	case lifecycle.Terminal(w.claim.Status.Phase):
		return 0, r.stop(ctx, w.claim)
	case lifecycle.Admitted(w.claim):
	case w.end.Failed != nil:
		r.report(w.claim, *w.end.Failed)
		return 0, nil
	default:
		if after, admitted, err := r.admit(ctx, w); err != nil || !admitted {
			return after, err
		}
	}
	seen, after, err := r.apply(ctx, w)
	if err != nil {
		if w.end.Failed != nil && !errors.Is(err, errChanged) {
			r.report(w.claim, *w.end.Failed) // what cannot be built for so long holds no slot
		}
		return 0, err
	}
	seen.Starting = lifecycle.Starting(w.claim, r.Clock.Now()) > 0
	r.report(w.claim, w.end.Instead(w.claim.Status.Phase, lifecycle.Stand(seen)))
	return after, nil
}
