package play

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/soak/plan"
)

const (
	// agentsRuntime has the sessions, and standingRuntime the claims that only stand.
	agentsRuntime, standingRuntime = "agents", "standing"

	sandboxName = "shell"
	// releaseGrace is short, so that a release is scheduled and carried out later, as most are.
	releaseGrace = 5 * time.Second
	// enough is a ceiling that the load does not meet: who waits for a place would make the load unsteady.
	enough = 10000
	// fillers make the standing claims.
	fillers = 16
	// eventsEvery is how often Events are removed.
	eventsEvery = time.Minute
)

// furnish makes a namespace with two AgentRuntimes, their class and their callers.
func (s *Soak) furnish(ctx context.Context) error {
	made, err := s.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "soak-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making a namespace: %w", err)
	}
	s.namespace = made.Name
	objects := []framework.Object{
		framework.MakeClass("fake").OnFakeNodes().In(s.namespace),
		framework.MakeToolRegistry("tools", s.namespace).SandboxOf(sandboxName, v1alpha1.SandboxClassKind, "fake").MaxInstances(plan.MostHandles).Obj(),
		framework.MakeRuntime(agentsRuntime, s.namespace).ToolRegistry("tools").MaxConcurrent(enough).MaxPerSession(plan.MostHandles).
			IdleTimeout(plan.IdleTimeout).ReleaseGrace(releaseGrace).Obj(),
		framework.MakeRuntime(standingRuntime, s.namespace).ToolRegistry("tools").MaxConcurrent(enough).
			IdleTimeout(s.during + 24*time.Hour).ReleaseGrace(0).Obj(), // nobody uses them until the end
	}
	for _, object := range objects {
		if err := s.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("making %T %s: %w", object, object.GetName(), err)
		}
	}
	if s.agents, err = s.caller(ctx, agentsRuntime); err != nil {
		return err
	}
	s.standing, err = s.caller(ctx, standingRuntime)
	return err
}

// caller makes a runtime's own ServiceAccount, and gives the client helper as its agents use it.
func (s *Soak) caller(ctx context.Context, runtime string) (*client.Client, error) {
	account := runtime + "-facade"
	_, err := s.Kube.CoreV1().ServiceAccounts(s.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("making ServiceAccount %s: %w", account, err)
	}
	config, err := s.AsServiceAccount(ctx, s.namespace, account)
	if err != nil {
		return nil, err
	}
	set, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	made := client.New(set.SandboxV1alpha1(), s.namespace)
	made.DialTimeout = 0 // nothing listens behind a fake node's address
	return made, nil
}

// stand makes the claims that nobody uses, and waits until each is Bound.
func (s *Soak) stand(ctx context.Context) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fillers)
	for i := range plan.Standing {
		group.Go(func() error {
			sandbox, err := s.standing.Acquire(ctx, acquireOf(standingRuntime, standingSession(i), 0))
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			s.stood[sandbox.UID] = sandbox.Name
			return nil
		})
	}
	return group.Wait()
}

func standingSession(i int) string { return fmt.Sprintf("standing-%d", i) }

// acquireOf asks for a session's sandbox of this number.
func acquireOf(runtime, session string, number int) v1alpha1.SandboxAcquireSpec {
	return framework.MakeAcquire(runtime, session, fmt.Sprintf("%s/n%d", sandboxName, number)).Spec
}

// clearEvents removes the namespace's Events now and then until ctx ends: Kubernetes keeps them for an hour, so that etcd would
// grow for as long as a soak lasts, whatever the servers do.
func (s *Soak) clearEvents(ctx context.Context) {
	for pause(ctx, eventsEvery) == nil {
		if err := s.Kube.CoreV1().Events(s.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil && ctx.Err() == nil {
			s.say("removing Events: %v", err)
		}
	}
}

// clear removes the namespace, whose objects follow by themselves.
func (s *Soak) clear() error {
	if s.namespace == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.Kube.CoreV1().Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{})
}
