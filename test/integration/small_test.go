package integration

import (
	"bufio"
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	sandboxclient "github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	smallName = "small"
	// atOnce is for what must not wait for the re-check of every 10 seconds, on a busy machine.
	atOnce = 5 * time.Second
)

// small is a world with a runtime that may have few sandboxes, and the history of its claims.
type small struct {
	*world
	history *framework.History
}

// unplaceable keeps a class's pods from every node: their claims stay Pending.
func unplaceable(c *framework.ClassWrapper) {
	c.With(func(s *v1alpha1.SandboxClassSpec) { s.NodeSelector = map[string]string{"sandbox.omnia/opens": "never"} })
}

// newSmall makes a runtime named small beside the world's own, under the same ServiceAccount. Its ToolRegistry declares
// shell, three to a session, and one and many, of which a session may have as many as they are called.
func newSmall(t *testing.T, class func(*framework.ClassWrapper), limits func(*framework.RuntimeWrapper)) *small {
	t.Helper()
	s := &small{world: newWorld(t, class)}
	registry := framework.MakeToolRegistry("small", s.namespace).Sandbox("shell", s.class).MaxInstances(3).
		Sandbox("one", s.class).Sandbox("many", s.class).MaxInstances(100)
	runtime := framework.MakeRuntime(smallName, s.namespace).ToolRegistry("small").ServiceAccount(runtimeName + "-facade")
	limits(runtime)
	s.Create(t, registry.Obj(), runtime.Obj())
	s.history = s.Record(t, s.namespace)
	return s
}

// limit changes the runtime's spec.sandbox.
func (s *small) limit(patch string) {
	s.t.Helper()
	runtime := framework.MakeRuntime(smallName, s.namespace).Obj()
	require.NoError(s.t, s.Client.Patch(s.t.Context(), runtime, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"sandbox":`+patch+`}}`))))
}

// ask acquires without waiting, and gives the claim's name. Nobody waits on it, so it is never withdrawn.
func (s *small) ask(session string) string {
	s.t.Helper()
	got, err := s.acquireOf(s.t.Context(), s.agent, session, handle, 0)
	require.NoError(s.t, err)
	return got.ClaimName
}

// asks acquires for sessions one after another, and gives the claims' names in that order.
func (s *small) asks(sessions ...string) []string {
	s.t.Helper()
	var names []string
	for _, session := range sessions {
		names = append(names, s.ask(session))
	}
	return names
}

func (s *small) acquireOf(ctx context.Context, set versioned.Interface, session, handle string, seconds int32) (*v1alpha1.SandboxAcquireStatus, error) {
	body := framework.MakeAcquire(smallName, session, handle)
	body.Spec.WaitSeconds = ptr.To(seconds)
	got, err := set.SandboxV1alpha1().SandboxClaims(s.namespace).Acquire(ctx, v1alpha1.AnyClaim, body, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &got.Status, nil
}

// waiting is an acquire by the client helper that goes on beside the test.
type waiting struct {
	sandbox *sandboxclient.Sandbox
	err     error
	done    chan struct{}
	hangUp  context.CancelFunc
}

// wait begins to acquire by the client helper.
func (s *small) wait(session string) *waiting {
	ctx, hangUp := context.WithCancel(s.t.Context())
	w := &waiting{done: make(chan struct{}), hangUp: hangUp}
	go func() {
		defer close(w.done)
		w.sandbox, w.err = s.helper().Acquire(ctx, v1alpha1.SandboxAcquireSpec{AgentRuntime: smallName, SessionID: session, Handle: handle})
	}()
	return w
}

// inPhase are the claims that stand in a phase now, those that queued first before the others.
func (s *small) inPhase(phase v1alpha1.Phase) []*v1alpha1.SandboxClaim {
	return inPhase(s.history, phase)
}

func inPhase(h *framework.History, phase v1alpha1.Phase) []*v1alpha1.SandboxClaim {
	var found []*v1alpha1.SandboxClaim
	for _, seen := range h.Now() {
		if !seen.Gone && seen.Claim.Status.Phase == phase {
			found = append(found, seen.Claim)
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.SandboxClaim) int {
		if c := a.Status.QueuedAt.Compare(b.Status.QueuedAt.Time); c != 0 {
			return c
		}
		return strings.Compare(string(a.UID), string(b.UID))
	})
	return found
}

func names(claims []*v1alpha1.SandboxClaim) []string {
	out := []string{}
	for _, claim := range claims {
		out = append(out, claim.Name)
	}
	return out
}

// settles waits until so many claims are Bound and so many Queued, and gives the names of the two.
func (s *small) settles(bound, queued int) ([]string, []string) {
	s.t.Helper()
	s.history.Wait(s.t, framework.BoundTimeout, "claims settle", func(h *framework.History) bool {
		return len(inPhase(h, v1alpha1.PhaseBound)) == bound && len(inPhase(h, v1alpha1.PhaseQueued)) == queued
	})
	return names(s.inPhase(v1alpha1.PhaseBound)), names(s.inPhase(v1alpha1.PhaseQueued))
}

// admitted waits for a claim to be admitted, and says when it was.
func (s *small) admitted(name string) time.Time {
	s.t.Helper()
	return s.history.First(s.t, framework.BoundTimeout, name, "is admitted", func(c *v1alpha1.SandboxClaim) bool { return c.Status.Class != nil }).At
}

// mostAdmitted is how many claims were admitted at once, at most.
func (s *small) mostAdmitted() int {
	most, now := 0, map[types.UID]bool{}
	for _, seen := range s.history.All() {
		now[seen.Claim.UID] = !seen.Gone && seen.Claim.Status.Class != nil && seen.Claim.Status.Phase != v1alpha1.PhaseFailed
		admitted := 0
		for _, is := range now {
			if is {
				admitted++
			}
		}
		most = max(most, admitted)
	}
	return most
}

// phases are the phases that a claim went through.
func (s *small) phases(name string) []v1alpha1.Phase {
	var phases []v1alpha1.Phase
	for _, seen := range s.history.Of(name) {
		phases = append(phases, seen.Claim.Status.Phase)
	}
	return slices.Compact(phases)
}

// freed ends a claim as given, waits until its Deployment is gone, which frees its slot, and says when that was.
func (s *small) freed(name string, end func(name string) error) time.Time {
	s.t.Helper()
	claim := s.history.Now()[name].Claim
	ctx, cancel := context.WithTimeout(s.t.Context(), framework.GoneTimeout)
	defer cancel()
	watcher, err := s.Kube.AppsV1().Deployments(s.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + claim.Status.SandboxName})
	require.NoError(s.t, err)
	defer watcher.Stop()
	require.NoError(s.t, end(name))
	for event := range watcher.ResultChan() {
		if event.Type == "DELETED" {
			return time.Now()
		}
	}
	require.Fail(s.t, "the Deployment of claim "+name+" stays")
	return time.Time{}
}

func (w *world) deleted(name string) error {
	return w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{})
}

func (s *small) released(name string) error {
	_, err := s.agent.SandboxV1alpha1().SandboxClaims(s.namespace).Release(s.t.Context(), name, &v1alpha1.SandboxRelease{}, metav1.CreateOptions{})
	return err
}

// hold keeps a claim's Deployment from going until let go of.
func (s *small) hold(name string) (letGo func()) {
	s.t.Helper()
	set := func(ctx context.Context, finalizers string) error {
		_, err := s.Kube.AppsV1().Deployments(s.namespace).Patch(ctx, s.history.Now()[name].Claim.Status.SandboxName, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{})
		return err
	}
	require.NoError(s.t, set(s.t.Context(), `["sandbox.omnia/test"]`))
	letGo = func() { require.NoError(s.t, set(context.WithoutCancel(s.t.Context()), `[]`)) }
	s.t.Cleanup(func() {
		if s.t.Failed() {
			_ = set(context.Background(), `[]`) // else the namespace would stay; where it was let go of already, there is nothing left
		}
	})
	return letGo
}

// deployment is a claim's Deployment as it stands.
func (w *world) deployment(claim *v1alpha1.SandboxClaim) *appsv1.Deployment {
	w.t.Helper()
	deployment, err := w.Kube.AppsV1().Deployments(w.namespace).Get(w.t.Context(), claim.Status.SandboxName, metav1.GetOptions{})
	require.NoError(w.t, err)
	return deployment
}

// leader waits for a server to lead, and gives it with the other. The Lease alone does not tell: it names one that was killed, too.
func (w *world) leader() (leader, other *framework.Server) {
	w.t.Helper()
	leads := framework.Eventually(w.t, framework.FailoverTimeout, "a server leads", func(ctx context.Context) ([]int, error) {
		var leads []int
		for i, server := range w.servers.List {
			is, err := w.leads(ctx, server)
			if err != nil {
				return nil, err
			}
			if is {
				leads = append(leads, i)
			}
		}
		return leads, nil
	}, func(leads []int) bool { return len(leads) == 1 })
	return w.servers.List[leads[0]], w.servers.List[1-leads[0]]
}

// leads says whether a server takes itself for the leader.
func (w *world) leads(ctx context.Context, server *framework.Server) (bool, error) {
	status, err := w.metric(ctx, server, "/metrics/controllers", "leader_election_master_status{")
	return status == 1, err
}

// metric is the sum of a server's metrics whose lines begin so.
func (w *world) metric(ctx context.Context, server *framework.Server, path, begins string) (float64, error) {
	set, err := versioned.NewForConfig(server.Direct(w.Config))
	if err != nil {
		return 0, err
	}
	metrics, err := set.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	var sum float64
	for lines := bufio.NewScanner(bytes.NewReader(metrics)); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, begins) {
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				return 0, err
			}
			sum += value
		}
	}
	return sum, nil
}
