package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// ceilings is a runtime that may have so many sandboxes, and a session of it so many.
func ceilings(concurrent, perSession int32) *omniav1alpha1.AgentRuntime {
	return &omniav1alpha1.AgentRuntime{Spec: omniav1alpha1.AgentRuntimeSpec{Sandbox: &omniav1alpha1.AgentRuntimeSandbox{
		Enabled: true, MaxConcurrent: &concurrent, MaxPerSession: &perSession,
	}}}
}

// waiter is a claim that waits since a second of the hour, in a session of its own unless it is changed.
func waiter(uid types.UID, second int, change ...func(*v1alpha1.SandboxClaim)) *v1alpha1.SandboxClaim {
	claim := &v1alpha1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid), Namespace: "agents"},
		Spec: v1alpha1.SandboxClaimSpec{
			AgentRuntimeRef: &v1alpha1.AgentRuntimeReference{Name: "my-agent"}, SessionID: "of-" + string(uid), Handle: "shell/default",
		},
		Status: v1alpha1.SandboxClaimStatus{QueuedAt: at(time.Duration(second) * time.Second)},
	}
	for _, c := range change {
		c(claim)
	}
	return claim
}

// holder is a claim that was admitted before every waiter, and is Bound unless it is changed.
func holder(uid types.UID, change ...func(*v1alpha1.SandboxClaim)) *v1alpha1.SandboxClaim {
	return waiter(uid, -1, append([]func(*v1alpha1.SandboxClaim){admitted, in(v1alpha1.PhaseBound)}, change...)...)
}

func admitted(claim *v1alpha1.SandboxClaim) {
	claim.Status.Class, claim.Status.SandboxName = &v1alpha1.SandboxClassSpec{}, claim.Name+"-sandbox"
}

func terminating(claim *v1alpha1.SandboxClaim) { claim.DeletionTimestamp = &metav1.Time{Time: now} }

func in(phase v1alpha1.Phase) func(*v1alpha1.SandboxClaim) {
	return func(claim *v1alpha1.SandboxClaim) { claim.Status.Phase = phase }
}

func of(session string) func(*v1alpha1.SandboxClaim) {
	return func(claim *v1alpha1.SandboxClaim) { claim.Spec.SessionID = session }
}

// instances makes the claim one of a sandbox of which its session may have so many; 0 is a claim that does not say.
func instances(handle string, most int32) func(*v1alpha1.SandboxClaim) {
	return func(claim *v1alpha1.SandboxClaim) {
		claim.Spec.Handle = handle
		if claim.Spec.MaxInstances = nil; most != 0 {
			claim.Spec.MaxInstances = &most
		}
	}
}

// queueCase is a queue, the claims that may be admitted now in their order, and what every other claim waits for.
type queueCase struct {
	runtime  *omniav1alpha1.AgentRuntime
	claims   []*v1alpha1.SandboxClaim
	standing []types.UID
	next     []types.UID
	wait     map[types.UID]Limit
}

func (c queueCase) check(t *testing.T) {
	queue := Queue{Runtime: c.runtime, Claims: c.claims, Standing: sets.New(c.standing...)}
	var next []types.UID
	for _, claim := range mayBeAdmitted(queue) {
		next = append(next, claim.UID)
	}
	assert.Equal(t, c.next, next, "admitted now, oldest first")
	for _, claim := range c.claims {
		assert.Equal(t, c.wait[claim.UID], queue.Place(claim), "what %s waits for", claim.UID)
	}
}

// eachWaits is what these claims wait for.
func eachWaits(limit Limit, uids ...types.UID) map[types.UID]Limit {
	wait := map[types.UID]Limit{}
	for _, uid := range uids {
		wait[uid] = limit
	}
	return wait
}

func TestQueue_MaxConcurrent(t *testing.T) {
	two := []*v1alpha1.SandboxClaim{waiter("a", 0), waiter("b", 1)}
	tests := map[string]queueCase{
		"room for all: all are admitted": {runtime: ceilings(2, 3), claims: two, next: []types.UID{"a", "b"}},
		"no room: all wait":              {runtime: ceilings(1, 3), claims: append([]*v1alpha1.SandboxClaim{holder("x")}, two...), wait: eachWaits(LimitConcurrent, "a", "b")},
		"one slot free: one, the oldest": {runtime: ceilings(2, 3), claims: append([]*v1alpha1.SandboxClaim{holder("x")}, two...), next: []types.UID{"a"}, wait: eachWaits(LimitConcurrent, "b")},
		"maxConcurrent 0: none":          {runtime: ceilings(0, 3), claims: two, wait: eachWaits(LimitConcurrent, "a", "b")},
		"a negative maxConcurrent: none": {runtime: ceilings(-1, 3), claims: two, wait: eachWaits(LimitConcurrent, "a", "b")},
		"no runtime: none":               {claims: two, wait: eachWaits(LimitConcurrent, "a", "b")},
		"maxConcurrent unset: ten at once": {
			runtime: &omniav1alpha1.AgentRuntime{},
			claims: []*v1alpha1.SandboxClaim{
				holder("1"), holder("2"), holder("3"), holder("4"), holder("5"), holder("6"), holder("7"), holder("8"),
				waiter("a", 0), waiter("b", 1), waiter("c", 2),
			},
			next: []types.UID{"a", "b"}, wait: eachWaits(LimitConcurrent, "c"),
		},
		"as many as there are free slots": {
			runtime: ceilings(3, 3), claims: []*v1alpha1.SandboxClaim{holder("x"), waiter("a", 0), waiter("b", 1), waiter("c", 2)},
			next: []types.UID{"a", "b"}, wait: eachWaits(LimitConcurrent, "c"),
		},
	}
	for name, tt := range tests {
		t.Run(name, tt.check)
	}
}

func TestQueue_Order(t *testing.T) {
	tests := map[string]queueCase{
		"oldest first, by queuedAt and not by place, name or creation": {
			runtime: ceilings(2, 3),
			claims: []*v1alpha1.SandboxClaim{
				waiter("a", 3, func(c *v1alpha1.SandboxClaim) { c.CreationTimestamp.Time = now.Add(-time.Hour) }),
				waiter("c", 1), waiter("b", 2),
			},
			next: []types.UID{"c", "b"}, wait: eachWaits(LimitConcurrent, "a"),
		},
		"queued within a second: by the microsecond": {
			runtime: ceilings(1, 3),
			claims: []*v1alpha1.SandboxClaim{
				waiter("a", 0, func(c *v1alpha1.SandboxClaim) { c.Status.QueuedAt = at(2 * time.Microsecond) }),
				waiter("b", 0, func(c *v1alpha1.SandboxClaim) { c.Status.QueuedAt = at(time.Microsecond) }),
			},
			next: []types.UID{"b"}, wait: eachWaits(LimitConcurrent, "a"),
		},
		"queued at the same moment: by UID": {
			runtime: ceilings(1, 3), claims: []*v1alpha1.SandboxClaim{waiter("b", 0), waiter("a", 0)},
			next: []types.UID{"a"}, wait: eachWaits(LimitConcurrent, "b"),
		},
	}
	for name, tt := range tests {
		t.Run(name, tt.check)
	}
}

func TestQueue_MaxConcurrent_BesideWhatWasAdmitted(t *testing.T) {
	tests := map[string]queueCase{
		"a Pending claim holds a slot": {
			runtime: ceilings(1, 3), claims: []*v1alpha1.SandboxClaim{holder("x", in(v1alpha1.PhasePending)), waiter("a", 0)}, wait: eachWaits(LimitConcurrent, "a"),
		},
		"an admitted claim that lost its phase holds its slot, and is not admitted again": {
			runtime: ceilings(1, 3), claims: []*v1alpha1.SandboxClaim{holder("x", in("")), waiter("a", 0)}, wait: eachWaits(LimitConcurrent, "a"),
		},
		"an admitted claim whose Deployment stands holds one slot, not two": {
			runtime: ceilings(2, 3), claims: []*v1alpha1.SandboxClaim{holder("x"), waiter("a", 0)}, standing: []types.UID{"x"}, next: []types.UID{"a"},
		},
		"a ceiling lowered below what stands: nothing admitted is refused, and nobody follows": {
			runtime: ceilings(1, 3), claims: []*v1alpha1.SandboxClaim{holder("x"), holder("y"), holder("z"), waiter("a", 0)}, wait: eachWaits(LimitConcurrent, "a"),
		},
		"a lowered ceiling, and one of those above it gone: still nobody follows": {
			runtime: ceilings(1, 3), claims: []*v1alpha1.SandboxClaim{holder("x"), waiter("a", 0)}, wait: eachWaits(LimitConcurrent, "a"),
		},
		"a ceiling raised: the oldest waiters move, as many as it was raised by": {
			runtime: ceilings(3, 3), claims: []*v1alpha1.SandboxClaim{holder("x"), waiter("a", 0, in(v1alpha1.PhaseQueued)), waiter("b", 1, in(v1alpha1.PhaseQueued)), waiter("c", 2)},
			next: []types.UID{"a", "b"}, wait: eachWaits(LimitConcurrent, "c"),
		},
	}
	for name, tt := range tests {
		t.Run(name, tt.check)
	}
}

func TestQueue_SlotsOfWhatEnds(t *testing.T) {
	full := map[types.UID]Limit{"a": LimitConcurrent}
	tests := map[string]queueCase{
		"terminating, its Deployment stands: holds its slot": {claims: []*v1alpha1.SandboxClaim{holder("x", terminating)}, standing: []types.UID{"x"}, wait: full},
		"terminating, its Deployment gone: holds none":       {claims: []*v1alpha1.SandboxClaim{holder("x", terminating)}, next: []types.UID{"a"}},
		"failed, its Deployment stands: holds its slot":      {claims: []*v1alpha1.SandboxClaim{holder("x", in(v1alpha1.PhaseFailed))}, standing: []types.UID{"x"}, wait: full},
		"failed, its Deployment gone: holds none":            {claims: []*v1alpha1.SandboxClaim{holder("x", in(v1alpha1.PhaseFailed))}, next: []types.UID{"a"}},
		"gone, its Deployment stands: holds its slot":        {standing: []types.UID{"x"}, wait: full},
		"failed before it was admitted: holds none":          {claims: []*v1alpha1.SandboxClaim{waiter("x", -1, in(v1alpha1.PhaseFailed))}, next: []types.UID{"a"}},
		"terminating before it was admitted: holds none, and is not admitted": {
			claims: []*v1alpha1.SandboxClaim{waiter("x", -1, terminating)}, next: []types.UID{"a"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.runtime, tt.claims = ceilings(1, 3), append(tt.claims, waiter("a", 0))
			tt.check(t)
		})
	}
}

func TestQueue_SessionLimits(t *testing.T) {
	s := of("s")
	tests := map[string]queueCase{
		"a session's claims are admitted oldest first, and the rest waits": {
			runtime: ceilings(9, 2), claims: []*v1alpha1.SandboxClaim{waiter("c", 2, s), waiter("b", 1, s), waiter("a", 0, s)},
			next: []types.UID{"a", "b"}, wait: eachWaits(LimitPerSession, "c"),
		},
		"maxPerSession unset: three": {
			runtime: &omniav1alpha1.AgentRuntime{}, claims: []*v1alpha1.SandboxClaim{holder("x", s), holder("y", s), waiter("a", 0, s), waiter("b", 1, s)},
			next: []types.UID{"a"}, wait: eachWaits(LimitPerSession, "b"),
		},
		"maxPerSession 0: none": {runtime: ceilings(9, 0), claims: []*v1alpha1.SandboxClaim{waiter("a", 0)}, wait: eachWaits(LimitPerSession, "a")},
		"another session's claims: not counted": {
			runtime: ceilings(9, 1), claims: []*v1alpha1.SandboxClaim{holder("x"), waiter("a", 0), waiter("b", 1)}, next: []types.UID{"a", "b"},
		},
		"whatever their sandbox: counted": {
			runtime: ceilings(9, 1), claims: []*v1alpha1.SandboxClaim{holder("x", s, instances("browser/default", 1)), waiter("a", 0, s, instances("shell/default", 1))},
			wait: eachWaits(LimitPerSession, "a"),
		},
		"a terminating or failed claim leaves its place in the session, though its Deployment stands": {
			runtime: ceilings(9, 1), claims: []*v1alpha1.SandboxClaim{holder("x", s, terminating), holder("y", s, in(v1alpha1.PhaseFailed)), waiter("a", 0, s)},
			standing: []types.UID{"x", "y"}, next: []types.UID{"a"},
		},
		"limits lowered below what is admitted: none of them is refused": {
			runtime: ceilings(9, 1), claims: []*v1alpha1.SandboxClaim{holder("x", s, instances("shell/1", 1)), holder("y", s, instances("shell/2", 1)), waiter("a", 0, s)},
			wait: eachWaits(LimitPerSession, "a"),
		},
		"maxPerSession raised: the oldest waiter moves": {
			runtime: ceilings(9, 2), claims: []*v1alpha1.SandboxClaim{holder("x", s), waiter("a", 0, s, in(v1alpha1.PhaseQueued)), waiter("b", 1, s, in(v1alpha1.PhaseQueued))},
			next: []types.UID{"a"}, wait: eachWaits(LimitPerSession, "b"),
		},
	}
	for name, tt := range tests {
		t.Run(name, tt.check)
	}
}

func TestQueue_MaxInstances(t *testing.T) {
	s := of("s")
	tests := map[string]queueCase{
		"maxInstances: the newer instance waits, another sandbox does not": {
			runtime: ceilings(9, 9),
			claims: []*v1alpha1.SandboxClaim{
				waiter("a", 0, s, instances("shell/default", 1)), waiter("b", 1, s, instances("shell/second", 1)), waiter("c", 2, s, instances("browser/default", 1)),
			},
			next: []types.UID{"a", "c"}, wait: eachWaits(LimitInstances, "b"),
		},
		"another session's instances: not counted": {
			runtime: ceilings(9, 9), claims: []*v1alpha1.SandboxClaim{holder("x", instances("shell/default", 1)), waiter("a", 0, s, instances("shell/default", 1))},
			next: []types.UID{"a"},
		},
		"without maxInstances: not held to it": {
			runtime: ceilings(9, 9), claims: []*v1alpha1.SandboxClaim{holder("x", s, instances("shell/1", 1)), waiter("a", 0, s, instances("shell/2", 0))},
			next: []types.UID{"a"},
		},
		"without maxInstances: counted among the others' instances": {
			runtime: ceilings(9, 9), claims: []*v1alpha1.SandboxClaim{holder("x", s, instances("shell/1", 0)), waiter("a", 0, s, instances("shell/2", 1))},
			wait: eachWaits(LimitInstances, "a"),
		},
		"each by its own maxInstances, as it was when it was created": {
			runtime: ceilings(9, 9),
			claims:  []*v1alpha1.SandboxClaim{holder("x", s, instances("shell/1", 1)), waiter("a", 0, s, instances("shell/2", 1)), waiter("b", 1, s, instances("shell/3", 2))},
			next:    []types.UID{"b"}, wait: eachWaits(LimitInstances, "a"),
		},
		"one that waits for its session's instances does not count toward its maxPerSession": {
			runtime: ceilings(9, 2),
			claims: []*v1alpha1.SandboxClaim{
				holder("x", s, instances("shell/1", 1)), waiter("a", 0, s, instances("shell/2", 1)), waiter("b", 1, s, instances("browser/1", 1)),
			},
			next: []types.UID{"b"}, wait: eachWaits(LimitInstances, "a"),
		},
	}
	for name, tt := range tests {
		t.Run(name, tt.check)
	}
}

func TestQueue_SeveralLimits(t *testing.T) {
	s := of("s")
	tests := map[string]queueCase{
		"both limits full: maxPerSession is named": {
			runtime: ceilings(9, 1), claims: []*v1alpha1.SandboxClaim{holder("x", s), waiter("a", 0, s, instances("shell/second", 1))},
			wait: eachWaits(LimitPerSession, "a"),
		},
		"an older one that waits for its session: stands in nobody's way": {
			runtime: ceilings(3, 1), claims: []*v1alpha1.SandboxClaim{holder("x", s), waiter("a", 0, s), waiter("b", 1)},
			next: []types.UID{"b"}, wait: eachWaits(LimitPerSession, "a"),
		},
		"an older one that waits for its session takes no slot, though only one is free": {
			runtime: ceilings(2, 1), claims: []*v1alpha1.SandboxClaim{holder("x", s), waiter("a", 0, s), waiter("b", 1)},
			next: []types.UID{"b"}, wait: eachWaits(LimitPerSession, "a"),
		},
		"an older one that waits for a slot: the younger is not admitted before it": {
			runtime: ceilings(1, 9), claims: []*v1alpha1.SandboxClaim{waiter("a", 0), waiter("b", 1), waiter("c", 2)},
			next: []types.UID{"a"}, wait: eachWaits(LimitConcurrent, "b", "c"),
		},
		"one that waits for a slot counts toward its session": {
			runtime: ceilings(1, 1), claims: []*v1alpha1.SandboxClaim{holder("x"), waiter("a", 0, s), waiter("b", 1, s)},
			wait: map[types.UID]Limit{"a": LimitConcurrent, "b": LimitPerSession},
		},
	}
	for name, tt := range tests {
		t.Run(name, tt.check)
	}
}

func TestSlots(t *testing.T) {
	queue := Queue{
		Claims: []*v1alpha1.SandboxClaim{
			holder("bound"), holder("pending", in(v1alpha1.PhasePending)), holder("failed", in(v1alpha1.PhaseFailed)), waiter("waits", 0),
		},
		Standing: sets.New[types.UID]("bound", "gone"),
	}
	assert.EqualValues(t, 3, queue.Slots(), "bound, pending, and the Deployment of one that is gone")
	assert.EqualValues(t, 2, queue.Standing.Len(), "what it was given stays as it was")
	assert.Zero(t, Queue{}.Slots())
}

func TestAdmitted(t *testing.T) {
	claim := holder("x")
	assert.True(t, Admitted(claim))
	claim.Status.SandboxName = ""
	assert.False(t, Admitted(claim), "half a record is none")
	claim = waiter("x", 0, func(c *v1alpha1.SandboxClaim) { c.Spec.MaxInstances = ptr.To[int32](1) }, in(v1alpha1.PhaseQueued))
	assert.False(t, Admitted(claim))
}

func TestQueue_Again(t *testing.T) {
	waitsFor := func(reason string) func(*v1alpha1.SandboxClaim) {
		return func(claim *v1alpha1.SandboxClaim) {
			in(v1alpha1.PhaseQueued)(claim)
			says(reason, "it is full")(claim)
		}
	}
	q := Queue{Runtime: ceilings(2, 1), Claims: []*v1alpha1.SandboxClaim{
		holder("x", of("s")),
		waiter("next", 1, waitsFor(v1alpha1.ReasonCeilingReached)),
		waiter("new", 2),
		waiter("waits", 3, waitsFor(v1alpha1.ReasonCeilingReached)),
		waiter("full", 4, of("s"), waitsFor(v1alpha1.ReasonSessionLimit)),
		waiter("no-longer-full", 5, waitsFor(v1alpha1.ReasonSessionLimit)),
	}}
	var names []string
	for _, claim := range q.Again() {
		names = append(names, claim.Name)
	}
	assert.Equal(t, []string{"next", "no-longer-full"}, names, "who may be admitted, and who says what is not so any more")
}
