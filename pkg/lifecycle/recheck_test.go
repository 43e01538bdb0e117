package lifecycle

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestQueue_Recheck(t *testing.T) {
	class, all := &v1alpha1.SandboxClassSpec{}, []string{"next", "last", "full"}
	first, second := ceilings(1, 1), ceilings(2, 1)
	disabled := ceilings(1, 1)
	disabled.Spec.Sandbox.Enabled = false
	// As Admit has left them: one is Bound, two wait for a slot, one for its session.
	queue := func(change ...func(*v1alpha1.SandboxClaim)) Queue {
		q := Queue{Runtime: first, Claims: []*v1alpha1.SandboxClaim{
			holder("x", of("s")), waiter("next", 1), waiter("last", 2), waiter("full", 3, of("s")),
		}}
		for _, claim := range q.Claims[1:] {
			verdict := Admit(Admission{Claim: claim, Runtime: first, Class: class, Queue: q})
			in(verdict.Phase)(claim)
			says(verdict.Reason, verdict.Message)(claim)
		}
		for _, c := range change {
			c(q.Claims[0])
		}
		return q
	}
	tests := map[string]struct {
		queue   Queue
		runtime *omniav1alpha1.AgentRuntime
		class   *v1alpha1.SandboxClassSpec
		want    []string
	}{
		"nothing has changed: nobody":                                 {queue(), first, class, nil},
		"a slot is free: the oldest, and who waits for a slot by now": {queue(terminating), first, class, []string{"next", "full"}},
		"more slots: the oldest, and whose words name how many":       {queue(), second, class, []string{"next", "last"}},
		"no class: all fail":                                          {queue(), first, nil, all},
		"a class with a workspace by now: all fail":                   {queue(), first, &v1alpha1.SandboxClassSpec{Filesystem: &v1alpha1.Filesystem{Workspace: &v1alpha1.WorkspaceMount{MountPath: "/workspace"}}}, all},
		"no runtime: all fail":                                        {queue(), nil, class, all},
		"sandboxes disabled: all fail":                                {queue(), disabled, class, all},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.queue.Runtime = tt.runtime
			var names []string
			for _, claim := range tt.queue.Recheck(func(*v1alpha1.SandboxClaim) *v1alpha1.SandboxClassSpec { return tt.class }) {
				names = append(names, claim.Name)
			}
			assert.Equal(t, tt.want, names)
		})
	}
}

// TestQueue_AnyClaims_RecheckedTogether: in one pass comes out what each claim's own admission says.
func TestQueue_AnyClaims_RecheckedTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queue := anyQueue(t)
		if rapid.IntRange(0, 9).Draw(t, "runtime gone") == 0 {
			queue.Runtime = nil
		}
		class := rapid.SampledFrom([]*v1alpha1.SandboxClassSpec{{}, {}, {}, nil}).Draw(t, "class")
		var want []*v1alpha1.SandboxClaim
		for _, claim := range queue.Claims {
			if claim.Status.Phase != v1alpha1.PhaseQueued || claim.DeletionTimestamp != nil || Admitted(claim) {
				continue
			}
			verdict := Admit(Admission{Claim: claim, Runtime: queue.Runtime, Class: class, Queue: queue})
			if verdict.Phase == v1alpha1.PhaseQueued && rapid.Bool().Draw(t, "says so") {
				says(verdict.Reason, verdict.Message)(claim)
				continue
			}
			want = append(want, claim)
		}
		slices.SortFunc(want, older)
		got := queue.Recheck(func(*v1alpha1.SandboxClaim) *v1alpha1.SandboxClassSpec { return class })
		assert.Equal(t, uidsOf(want), uidsOf(got))
	})
}
