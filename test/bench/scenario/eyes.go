package scenario

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	externalversions "github.com/altairalabs/omnia-sandboxes/generated/informers/externalversions"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// step is something that happens once on a sandbox's way.
type step string

// The steps of a new claim, by the names under which they are told.
const (
	stepStored     step = "claim stored"
	stepAdmitted   step = "admitted"
	stepPolicy     step = "NetworkPolicy made"
	stepService    step = "Service made"
	stepDeployment step = "Deployment made"
	stepReplicaSet step = "ReplicaSet made"
	stepPod        step = "Pod made"
	stepScheduled  step = "Pod scheduled"
	stepRunning    step = "container started"
	stepPodReady   step = "Pod ready"
	stepRouted     step = "EndpointSlice ready"
	stepDeployed   step = "Deployment ready"
	stepBound      step = "claim Bound"
	stepAnswered   step = "acquire answered"
)

// eyes see what becomes of the sandboxes of a namespace, made for claims or bare, by watches. What a step's time is, is when
// its event came in.
type eyes struct {
	cancel context.CancelFunc

	mu      sync.Mutex
	seen    map[string]*seen // by keyOf
	changed chan struct{}    // closed at the next change of any
}

// seen is one sandbox as it was seen.
type seen struct {
	steps    map[step]time.Time
	standing map[string]struct{} // its objects that stand, by kind and name
	ready    bool                // its Deployment has a ready pod
	podReady bool                // its pod is ready
	readyPod string              // the pod that was ready last
	freed    time.Time           // when its Deployment was seen to be gone
	routed   bool                // its Service has a ready endpoint
	claim    *v1alpha1.SandboxClaim
	changed  chan struct{} // closed at the next change
}

// open begins to look.
func open(ctx context.Context, c *framework.Cluster, namespace string) (*eyes, error) {
	ctx, cancel := context.WithCancel(ctx)
	e := &eyes{cancel: cancel, seen: map[string]*seen{}, changed: make(chan struct{})}
	host := informers.NewSharedInformerFactoryWithOptions(c.Kube, 0, informers.WithNamespace(namespace))
	own := externalversions.NewSharedInformerFactoryWithOptions(c.Sandbox, 0, externalversions.WithNamespace(namespace))
	for _, informer := range []cache.SharedIndexInformer{
		own.Sandbox().V1alpha1().SandboxClaims().Informer(),
		host.Networking().V1().NetworkPolicies().Informer(), host.Core().V1().Services().Informer(), host.Apps().V1().Deployments().Informer(),
		host.Apps().V1().ReplicaSets().Informer(), host.Core().V1().Pods().Informer(), host.Discovery().V1().EndpointSlices().Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { e.see(object, false) },
			UpdateFunc: func(_, object any) { e.see(object, false) },
			DeleteFunc: func(object any) { e.see(object, true) },
		}); err != nil {
			cancel()
			return nil, fmt.Errorf("watching namespace %s: %w", namespace, err)
		}
	}
	host.StartWithContext(ctx)
	own.Start(ctx.Done())
	host.WaitForCacheSync(ctx.Done())
	own.WaitForCacheSync(ctx.Done())
	return e, ctx.Err()
}

func (e *eyes) close() { e.cancel() }

// see takes in an event.
func (e *eyes) see(event any, gone bool) {
	now := time.Now()
	if last, ok := event.(cache.DeletedFinalStateUnknown); ok {
		event = last.Obj
	}
	object, ok := event.(client.Object)
	if !ok {
		return
	}
	key := keyOf(object)
	if key == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.of(key)
	name := fmt.Sprintf("%T/%s", object, object.GetName())
	if gone {
		delete(s.standing, name)
	} else {
		s.standing[name] = struct{}{}
	}
	for _, at := range s.take(object, gone) {
		if _, before := s.steps[at]; !before {
			s.steps[at] = now
		}
	}
	close(s.changed)
	close(e.changed)
	s.changed, e.changed = make(chan struct{}), make(chan struct{})
}

// keyOf is the name under which a sandbox is looked for: its claim's, or the one that a bare one was given.
func keyOf(object client.Object) string {
	if claim, ok := object.(*v1alpha1.SandboxClaim); ok {
		return claim.Name
	}
	if bare := object.GetLabels()[bareLabel]; bare != "" {
		return bare
	}
	return object.GetLabels()[v1alpha1.LabelClaim]
}

func (e *eyes) of(key string) *seen {
	s := e.seen[key]
	if s == nil {
		s = &seen{steps: map[step]time.Time{}, standing: map[string]struct{}{}, changed: make(chan struct{})}
		e.seen[key] = s
	}
	return s
}

// take notes what an object says of its sandbox, and gives the steps that it shows.
func (s *seen) take(object client.Object, gone bool) []step {
	switch o := object.(type) {
	case *v1alpha1.SandboxClaim:
		s.claim = o
		if gone {
			s.claim = nil
		}
		return claimSteps(o)
	case *networkingv1.NetworkPolicy:
		return []step{stepPolicy}
	case *corev1.Service:
		return []step{stepService}
	case *appsv1.Deployment:
		s.ready = !gone && o.Status.ReadyReplicas > 0 && o.Status.UpdatedReplicas > 0
		if gone {
			s.freed = time.Now()
		}
		return having([]step{stepDeployment}, s.ready, stepDeployed)
	case *appsv1.ReplicaSet:
		return []step{stepReplicaSet}
	case *corev1.Pod:
		s.podReady = !gone && podReady(o)
		if s.podReady && o.DeletionTimestamp == nil {
			s.readyPod = o.Name
		}
		return podSteps(o)
	case *discoveryv1.EndpointSlice:
		s.routed = !gone && len(o.Endpoints) > 0 && ptr.Deref(o.Endpoints[0].Conditions.Ready, false)
		return having(nil, s.routed, stepRouted)
	}
	return nil
}

func claimSteps(claim *v1alpha1.SandboxClaim) []step {
	out := having([]step{stepStored}, claim.Status.Class != nil, stepAdmitted)
	return having(out, claim.Status.Phase == v1alpha1.PhaseBound, stepBound)
}

func podSteps(pod *corev1.Pod) []step {
	out := having([]step{stepPod}, pod.Spec.NodeName != "", stepScheduled)
	for _, container := range pod.Status.ContainerStatuses {
		out = having(out, container.State.Running != nil, stepRunning)
	}
	return having(out, podReady(pod), stepPodReady)
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func having(steps []step, is bool, also step) []step {
	if is {
		return append(steps, also)
	}
	return steps
}

// await waits until a sandbox is seen as wanted.
func (e *eyes) await(ctx context.Context, key string, wanted func(*seen) bool) error {
	for {
		e.mu.Lock()
		s := e.of(key)
		done, changed := wanted(s), s.changed
		e.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for what becomes of %s: %w", key, context.Cause(ctx))
		}
	}
}

// awaitAll waits until at least so many sandboxes are seen as wanted.
func (e *eyes) awaitAll(ctx context.Context, many int, wanted func(*seen) bool) error {
	for {
		e.mu.Lock()
		count, changed := 0, e.changed
		for _, s := range e.seen {
			if wanted(s) {
				count++
			}
		}
		e.mu.Unlock()
		if count >= many {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d sandboxes, %d are as wanted: %w", many, count, context.Cause(ctx))
		}
	}
}

// look gives a sandbox as it was seen last.
func (e *eyes) look(key string) seen {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := *e.of(key)
	out.steps, out.standing = maps.Clone(out.steps), maps.Clone(out.standing)
	return out
}

// steps gives when each step was seen, and forgets the sandbox.
func (e *eyes) steps(key string) map[step]time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	steps := e.of(key).steps
	delete(e.seen, key)
	return steps
}

// answers says that a sandbox can be dialled, as far as its objects tell.
func answers(s *seen) bool { return s.ready && s.routed }

// podAnswers says so of a sandbox that is a bare pod.
func podAnswers(s *seen) bool { return s.podReady && s.routed }

// allGone says that nothing of a sandbox is left.
func allGone(s *seen) bool { return len(s.standing) == 0 }
