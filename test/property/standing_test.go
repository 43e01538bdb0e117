package property

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// standing are the Deployments of a namespace's sandboxes, in the order of what becomes of them.
type standing struct {
	*world
	mu       sync.Mutex
	sandbox  map[types.UID]stood // by the Deployment's UID
	made     sets.Set[types.UID] // the claims that had one
	byHand   sets.Set[types.UID] // the claims whose Deployment a person deleted
	watching sync.WaitGroup
}

// stood is one Deployment.
type stood struct {
	runtime string
	claim   types.UID
	since   time.Time // by the machine's clock
}

// watchStanding watches until ctx ends. Each state is checked: never more sandboxes stand than the runtime may have, those
// of claims that have ended or gone included.
func watchStanding(ctx context.Context, w *world) (*standing, error) {
	deployments := w.Kube.AppsV1().Deployments(w.namespace)
	none, err := deployments.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing Deployments: %w", err)
	}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, none.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return deployments.Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching Deployments: %w", err)
	}
	s := &standing{world: w, sandbox: map[types.UID]stood{}, made: sets.New[types.UID](), byHand: sets.New[types.UID]()}
	s.watching.Go(func() {
		for event := range events.ResultChan() {
			s.take(event)
		}
	})
	return s, nil
}

func (s *standing) take(event watch.Event) {
	deployment, ok := event.Object.(*appsv1.Deployment)
	if !ok {
		s.events.wrongly("watching Deployments: %v", apierrors.FromObject(event.Object))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if event.Type == watch.Deleted {
		s.say("      Deployment %s is gone", deployment.Name)
		delete(s.sandbox, deployment.UID)
		return
	}
	if _, known := s.sandbox[deployment.UID]; known {
		return
	}
	one := stood{deployment.Labels[v1alpha1.LabelAgentRuntime], types.UID(deployment.Labels[v1alpha1.LabelClaimUID]), time.Now()}
	s.sandbox[deployment.UID] = one
	s.say("      Deployment %s of %s stands", deployment.Name, one.claim[:8])
	if s.made.Has(one.claim) && !s.byHand.Has(one.claim) && s.events.wentBy(one.claim, one.since) {
		s.events.wrongly("Deployment %s was made anew for a claim that was gone", deployment.Name)
	}
	s.made.Insert(one.claim)
	if most := s.runtimes[one.runtime].concurrent.most(3 * lag); s.count(one.runtime) > most {
		s.catchUp()
		if count := s.count(one.runtime); count > most {
			s.events.wrongly("%d sandboxes of %s stand, which may have %d", count, one.runtime, most)
		}
	}
}

// count is how many sandboxes of a runtime stand. One that was under way when its claim went is not a second sandbox in
// the same place for long, and cannot be helped: nothing is written to claims and to the host at once.
func (s *standing) count(runtime string) int {
	count := 0
	for _, one := range s.sandbox {
		if one.runtime == runtime && !s.events.wentBy(one.claim, one.since.Add(look)) {
			count++
		}
	}
	return count
}

// deletedByHand notes that a person deletes the Deployment of a claim, which then is made anew.
func (s *standing) deletedByHand(claim types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byHand.Insert(claim)
}
