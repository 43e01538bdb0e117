package judge

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Standing are the sandboxes of a namespace in the host cluster, in the order of what becomes of them: their Deployments,
// and their pods. Each state is checked.
type Standing struct {
	*Events

	mu        sync.Mutex
	sandboxes map[types.UID]stood       // by the Deployment's UID
	pods      map[types.UID]*corev1.Pod // that were not asked to end
	made      sets.Set[types.UID]       // the claims that had a Deployment
	byHand    sets.Set[types.UID]       // the claims whose Deployment a person deleted
	watching  sync.WaitGroup
}

// stood is one Deployment.
type stood struct {
	runtime string
	claim   types.UID
	since   time.Time // by the machine's clock
}

// WatchStanding watches until ctx ends.
func WatchStanding(ctx context.Context, events *Events, kube kubernetes.Interface, namespace string) (*Standing, error) {
	s := &Standing{Events: events, sandboxes: map[types.UID]stood{}, pods: map[types.UID]*corev1.Pod{}, made: sets.New[types.UID](), byHand: sets.New[types.UID]()}
	deployments := &follower[*appsv1.Deployment, *appsv1.DeploymentList]{
		client: kube.AppsV1().Deployments(namespace), present: s.deployed, gone: s.undeployed, synced: make(chan struct{}),
		items: func(l *appsv1.DeploymentList) []*appsv1.Deployment { return pointers(l.Items) },
	}
	pods := &follower[*corev1.Pod, *corev1.PodList]{
		client: kube.CoreV1().Pods(namespace), present: s.podStands, gone: s.podGone, synced: make(chan struct{}),
		items: func(l *corev1.PodList) []*corev1.Pod { return pointers(l.Items) },
	}
	s.watching.Go(func() { deployments.follow(ctx) })
	s.watching.Go(func() { pods.follow(ctx) })
	for _, synced := range []chan struct{}{deployments.synced, pods.synced} {
		select {
		case <-synced:
		case <-ctx.Done():
			return nil, fmt.Errorf("listing sandboxes: %w", ctx.Err())
		}
	}
	return s, nil
}

// Wait waits until nothing is watched any more, once the context of WatchStanding has ended.
func (s *Standing) Wait() { s.watching.Wait() }

// DeletedByHand notes that a person deletes the Deployment of a claim, which then is made anew.
func (s *Standing) DeletedByHand(claim types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byHand.Insert(claim)
}

// deployed: never more sandboxes stand than the runtime may have, those of claims that have ended or gone included; and a
// claim has one of them.
func (s *Standing) deployed(deployment *appsv1.Deployment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.sandboxes[deployment.UID]; known {
		return
	}
	// It may be heard of late, but not be younger than it says.
	since := time.Now()
	if made := deployment.CreationTimestamp.Add(time.Second); made.Before(since) {
		since = made
	}
	one := stood{deployment.Labels[v1alpha1.LabelAgentRuntime], types.UID(deployment.Labels[v1alpha1.LabelClaimUID]), since}
	for _, other := range s.sandboxes {
		if other.claim == one.claim {
			s.Broke(Doubled, string(one.claim), "claim %s has two Deployments named %s at once", Short(one.claim), deployment.Name)
		}
	}
	s.sandboxes[deployment.UID] = one
	s.Say("      Deployment %s of %s stands", deployment.Name, Short(one.claim))
	if s.made.Has(one.claim) && !s.byHand.Has(one.claim) && s.WentBy(one.claim, one.since) {
		s.Broke(Leaked, string(one.claim), "Deployment %s was made anew for a claim that was gone", deployment.Name)
	}
	s.made.Insert(one.claim)
	if most := s.Limits(one.runtime).MostStanding; s.count(one.runtime) > most {
		s.CatchUp(context.Background())
		if count := s.count(one.runtime); count > most {
			s.Broke(Wrong, one.runtime, "%d sandboxes of %s stand, which may have %d", count, one.runtime, most)
		}
	}
}

func (s *Standing) undeployed(deployment *appsv1.Deployment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Say("      Deployment %s is gone", deployment.Name)
	delete(s.sandboxes, deployment.UID)
}

// count is how many sandboxes of a runtime stand. One that was under way when its claim went is not a second sandbox in
// the same place for long, and cannot be helped: nothing is written to claims and to the host at once.
func (s *Standing) count(runtime string) int {
	count := 0
	for _, one := range s.sandboxes {
		if one.runtime == runtime && !s.WentBy(one.claim, one.since.Add(Look)) {
			count++
		}
	}
	return count
}

// podStands: a claim has a second pod only once its first was asked to end, or has ended.
func (s *Standing) podStands(pod *corev1.Pod) {
	claim := types.UID(pod.Labels[v1alpha1.LabelClaimUID])
	if claim == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		delete(s.pods, pod.UID)
		return
	}
	if _, known := s.pods[pod.UID]; !known {
		for _, other := range s.pods {
			if types.UID(other.Labels[v1alpha1.LabelClaimUID]) == claim && !s.byHand.Has(claim) {
				s.Broke(Doubled, string(claim), "claim %s has pod %s while it has %s", Short(claim), pod.Name, other.Name)
			}
		}
	}
	s.pods[pod.UID] = pod
}

func (s *Standing) podGone(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, pod.UID)
}

// Pods are the UIDs of the pods that stand for each claim, those that were asked to end left out.
func (s *Standing) Pods() map[types.UID][]types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[types.UID][]types.UID{}
	for uid, pod := range s.pods {
		claim := types.UID(pod.Labels[v1alpha1.LabelClaimUID])
		out[claim] = append(out[claim], uid)
	}
	return out
}
