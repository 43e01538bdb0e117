package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// eventsOf gives what our server's Events of a namespace say, each as "Kind/name Type Reason: note", with how often it was
// said.
func (w *world) eventsOf(ctx context.Context) (map[string]int, error) {
	list, err := w.Kube.EventsV1().Events(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	said := map[string]int{}
	for i := range list.Items {
		event := &list.Items[i]
		if event.ReportingController != server {
			continue
		}
		times := 1
		if event.Series != nil {
			times = int(event.Series.Count)
		}
		said[fmt.Sprintf("%s/%s %s %s: %s", event.Regarding.Kind, event.Regarding.Name, event.Type, event.Reason, event.Note)] += times
	}
	return said, nil
}

// eventually waits until Events say exactly what is wanted, each once. What is wanted is how they begin.
func (w *world) eventually(want ...string) {
	w.t.Helper()
	framework.Eventually(w.t, framework.Shortly, fmt.Sprintf("Events say each of %d things once", len(want)), w.eventsOf, func(said map[string]int) bool {
		return len(said) == len(want) && saysOnce(said, want)
	})
}

func saysOnce(said map[string]int, want []string) bool {
	for _, wanted := range want {
		times := 0
		for what, n := range said {
			if strings.HasPrefix(what, wanted) {
				times += n
			}
		}
		if times != 1 {
			return false
		}
	}
	return true
}

// stir has the controller look at a claim again, and again.
func (w *world) stir(name string) {
	w.t.Helper()
	for i := range 5 {
		_, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Patch(w.t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{"stirred":"%d"}}}`, i), metav1.PatchOptions{})
		require.NoError(w.t, err)
	}
}

func TestEvents_OfClaimsAndTheirRuntime_OnceEach(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxConcurrent(1).ReleaseGrace(time.Second) })
	claims := s.asks("a", "b", "c")
	bound, queued := s.settles(1, 2)
	require.Equal(t, claims[:1], bound)
	for _, name := range claims {
		s.stir(name)
	}
	want := []string{
		"SandboxClaim/" + claims[1] + " Normal CeilingReached: AgentRuntime",
		"SandboxClaim/" + claims[2] + " Normal CeilingReached: AgentRuntime",
		"AgentRuntime/small Warning CeilingReached: ",
	}
	s.eventually(want...)
	assert.Contains(t, s.kubectl(t, "describe", "sbclaim", queued[0]), "CeilingReached")
	assert.Contains(t, s.kubectl(t, "describe", "agentruntime", smallName), "CeilingReached")

	require.NoError(t, s.released(claims[0]))
	s.history.First(t, framework.BoundTimeout, claims[1], "is Bound", framework.Bound)
	want = append(want,
		"SandboxClaim/"+claims[0]+" Normal Released: ",
		"AgentRuntime/small Normal Released: the conversation of claim "+claims[0],
	)
	s.eventually(want...)

	s.Create(t, framework.MakeClaim("doomed", s.namespace, smallName, "none").Obj())
	s.history.First(t, framework.BoundTimeout, "doomed", "is Failed", framework.Failed)
	s.stir("doomed")
	// Whatever would be said twice is said before this.
	s.Create(t, framework.MakeClaim("doomed-too", s.namespace, smallName, "none").Obj())
	want = append(want,
		"SandboxClaim/doomed Warning ClassNotFound: there is no ClusterSandboxClass none",
		"AgentRuntime/small Warning ClassNotFound: claim doomed failed: there is no ClusterSandboxClass none",
		"SandboxClaim/doomed-too Warning ClassNotFound: ",
		"AgentRuntime/small Warning ClassNotFound: claim doomed-too failed: ",
	)
	s.eventually(want...)
}

func TestEvents_OfWhatNeedsAPerson_InTheOtherPartysWords(t *testing.T) {
	tests := map[string]struct {
		class  func(*framework.ClassWrapper)
		before func(*world)
		reason string
		words  string
	}{
		"a pod that cannot be placed": {unplaceable, func(*world) {}, v1alpha1.ReasonUnschedulable, "nodes are available"},
		"a pod that is refused":       {onFakeNodes, func(w *world) { w.quota("pods", "0") }, v1alpha1.ReasonPodRefused, "exceeded quota"},
		"a name that is taken": {onFakeNodes, func(w *world) {
			w.Create(w.t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "waits-sandbox"},
				Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		}, v1alpha1.ReasonNameTaken, "waits-sandbox"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.class)
			tt.before(w)
			w.Create(t, framework.MakeClaim("waits", w.namespace, runtimeName, w.class).Obj())
			w.Claim(t, w.namespace, "waits", func(c *v1alpha1.SandboxClaim) bool { return framework.Reason(c) == tt.reason })
			w.stir("waits")
			// Whatever would be said twice is said before this.
			w.Create(t, framework.MakeClaim("doomed", w.namespace, runtimeName, "none").Obj())
			w.eventually("SandboxClaim/waits Warning "+tt.reason+": ", "SandboxClaim/doomed Warning ", "AgentRuntime/agent Warning ")
			said, err := w.eventsOf(t.Context())
			require.NoError(t, err)
			for what := range said {
				if strings.HasPrefix(what, "SandboxClaim/waits ") {
					assert.Contains(t, what, tt.words)
				}
			}
			assert.Contains(t, w.kubectl(t, "describe", "sbclaim", "waits"), tt.reason)
		})
	}
}

func TestEvents_OfObjectsPutBack(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	w.kubectl(t, "delete", "netpol", claim.Status.SandboxName)
	w.kubectl(t, "patch", "svc", claim.Status.SandboxName, "--type=merge", "--patch", `{"spec":{"publishNotReadyAddresses":true}}`)
	// The Service's endpoints may be made anew, so that the claim may be Bound a second time: that is not looked at here.
	framework.Eventually(t, framework.Shortly, "both are told", w.eventsOf, func(said map[string]int) bool {
		return saysOnce(said, []string{
			"SandboxClaim/" + claim.Name + " Warning Repaired: NetworkPolicy " + claim.Status.SandboxName,
			"SandboxClaim/" + claim.Name + " Warning Repaired: Service " + claim.Status.SandboxName,
		})
	})
	list, err := w.Kube.EventsV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	about := sets.New[string]()
	for i := range list.Items {
		if event := &list.Items[i]; event.ReportingController == server {
			about.Insert(event.Regarding.APIVersion + " " + string(event.Regarding.UID))
			assertComplete(t, event)
		}
	}
	assert.Equal(t, sets.New(v1alpha1.SchemeGroupVersion.String()+" "+string(claim.UID)), about)
}

func assertComplete(t *testing.T, event *eventsv1.Event) {
	t.Helper()
	assert.NotEmpty(t, event.Action)
	assert.NotEmpty(t, event.ReportingInstance)
	assert.False(t, event.EventTime.IsZero())
}
