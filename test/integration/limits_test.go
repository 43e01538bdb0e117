package integration

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestSessionLimit_ClaimsByHand_TheNewestStaysQueuedUntilThereIsRoom(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxPerSession(2) })
	for _, name := range []string{"first", "second", "third"} {
		s.Create(t, framework.MakeClaim(name, s.namespace, smallName, s.class).Session("held").Handle("one/"+name).Obj())
	}
	other := framework.MakeClaim("other", s.namespace, smallName, s.class).Session("other").Handle("one/first").Obj()
	s.Create(t, other)
	bound, queued := s.settles(3, 1)
	assert.Equal(t, []string{"first", "second", "other"}, bound, "a claim without maxInstances is held to no instance limit, and another session has room of its own")
	require.Equal(t, []string{"third"}, queued)
	third := s.history.Now()["third"].Claim
	assert.Equal(t, v1alpha1.ReasonSessionLimit, framework.Reason(third))

	s.freed("first", s.deleted)
	s.history.First(t, framework.BoundTimeout, "third", "is Bound", framework.Bound)
}

// Each replica checks the limits in its own view, which is always a moment old; the leader holds the session to them.
func TestSessionLimits_RacedOverTwoServers(t *testing.T) {
	const callers = 24
	tests := map[string]struct {
		limits  func(*framework.RuntimeWrapper)
		sandbox string
		room    int
		refused func(error) bool
	}{
		"maxPerSession: as many as it says, the others refused": {func(r *framework.RuntimeWrapper) { r.MaxPerSession(3) }, "many", 3, v1alpha1.IsMaxPerSession},
		"maxInstances: as many as it says, the others refused":  {func(r *framework.RuntimeWrapper) { r.MaxPerSession(callers) }, "one", 1, v1alpha1.IsMaxInstances},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSmall(t, onFakeNodes, tt.limits)
			servers := s.direct()
			var racing sync.WaitGroup
			var mu sync.Mutex
			won := map[string]bool{}
			for i := range callers {
				racing.Go(func() {
					got, err := s.acquireOf(t.Context(), servers[i%len(servers)], "raced", fmt.Sprintf("%s/i%d", tt.sandbox, i), v1alpha1.MaxWaitSeconds)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						won[got.ClaimName] = true
						assert.Equal(t, v1alpha1.PhaseBound, got.Phase)
					} else {
						assert.True(t, tt.refused(err), "got %v", err)
					}
				})
			}
			racing.Wait()
			assert.Len(t, won, tt.room)
			claims, err := s.Sandbox.SandboxV1alpha1().SandboxClaims(s.namespace).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, claim := range claims.Items {
				assert.True(t, won[claim.Name] || claim.DeletionTimestamp != nil, "claim %s of a refused request is left", claim.Name)
			}
			assert.Equal(t, tt.room, s.mostAdmitted())
		})
	}
}

func TestSessionLimits_Lowered_RefuseNothingThatWasAdmitted(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.MaxPerSession(3) })
	var claims []string
	for _, instance := range []string{"a", "b", "c"} {
		got, err := s.acquireOf(t.Context(), s.agent, "held", "many/"+instance, v1alpha1.MaxWaitSeconds)
		require.NoError(t, err)
		require.Equal(t, v1alpha1.PhaseBound, got.Phase)
		claims = append(claims, got.ClaimName)
	}
	s.limit(`{"maxPerSession":1,"maxConcurrent":1}`)
	s.Create(t, framework.MakeClaim("late", s.namespace, smallName, s.class).Session("held").Obj())
	s.history.First(t, framework.BoundTimeout, "late", "is told of the limit as it is now", func(c *v1alpha1.SandboxClaim) bool {
		return framework.Reason(c) == v1alpha1.ReasonSessionLimit && strings.Contains(framework.Message(c), "maxPerSession is 1")
	})
	for i, instance := range []string{"a", "b", "c"} {
		again, err := s.acquireOf(t.Context(), s.agent, "held", "many/"+instance, 0)
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.PhaseBound, again.Phase)
		assert.Equal(t, claims[i], again.ClaimName)
		assert.Equal(t, 1, count(s.phases(claims[i]), v1alpha1.PhaseBound), "it was Bound all the time")
	}
}
