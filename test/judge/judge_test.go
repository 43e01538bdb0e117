package judge

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// court judges a history that a test tells.
type court struct {
	*Events
	t        *testing.T
	revision int64
}

func newCourt(t *testing.T) *court {
	limits := Limits{MostConcurrent: 2, MostStanding: 2, MostPerSession: 1, LeastPerSession: 1}
	return &court{t: t, Events: New(Options{
		Clock: clock.RealClock{}, Limits: func(string) Limits { return limits }, Say: t.Logf,
		Changed: func(_, _ *Claim) {}, Gone: func(*Claim) {},
	})}
}

// queued is a claim as acquire writes it, in a session of its own.
func queued(uid types.UID, after time.Duration) *v1alpha1.SandboxClaim {
	claim := framework.MakeClaim("claim-"+string(uid), "ns", "agent", "class").Session("session-" + string(uid)).Handle("shell/one").Obj()
	claim.UID = uid
	claim.Status.QueuedAt = ptr.To(metav1.NewMicroTime(time.Unix(1000, 0).Add(after)))
	claim.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProvenanceVerified, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWrittenByOperator}}
	return claim
}

func (c *court) put(claim *v1alpha1.SandboxClaim) {
	c.t.Helper()
	data, err := json.Marshal(claim)
	require.NoError(c.t, err)
	c.revision++
	created := c.revision
	if before := c.claims[claim.Name]; before != nil {
		created = before.created
	}
	c.Change(func() { c.take(change{name: claim.Name, claim: data, created: created, revision: c.revision}) })
}

func (c *court) remove(claim *v1alpha1.SandboxClaim) {
	c.revision++
	c.Change(func() { c.take(change{name: claim.Name, gone: true, revision: c.revision}) })
}

// admit writes the claim as admitted, and then as Bound.
func (c *court) admit(claim *v1alpha1.SandboxClaim) {
	claim.Status.Class, claim.Status.SandboxName = &v1alpha1.SandboxClassSpec{}, claim.Name+"-sandbox"
	claim.Status.Phase, claim.Status.LastUsedAt = v1alpha1.PhasePending, claim.Status.QueuedAt
	c.put(claim)
	claim.Status.Phase, claim.Status.BoundAt = v1alpha1.PhaseBound, claim.Status.QueuedAt
	c.put(claim)
}

func (c *court) kinds() []Kind {
	var out []Kind
	for _, one := range c.Broken() {
		out = append(out, one.Kind)
	}
	return out
}

func TestHistory(t *testing.T) {
	for name, tell := range map[string]struct {
		history func(*court)
		broken  []Kind
	}{
		"queued, admitted, bound, gone: nothing to say": {func(c *court) {
			claim := queued("a", 0)
			c.put(claim)
			c.admit(claim)
			c.remove(claim)
		}, nil},
		"two live claims of one handle: doubled": {func(c *court) {
			one, two := queued("a", 0), queued("b", time.Second)
			two.Spec.SessionID = one.Spec.SessionID
			c.put(one)
			c.put(two)
		}, []Kind{Doubled}},
		"another UID under a name that was never free: doubled": {func(c *court) {
			one, two := queued("a", 0), queued("b", 0)
			two.Name = one.Name
			c.put(one)
			c.put(two)
		}, []Kind{Doubled}},
		"one more than the runtime may have: wrong": {func(c *court) {
			for _, uid := range []types.UID{"a", "b", "c"} {
				claim := queued(uid, 0)
				c.put(claim)
				c.admit(claim)
			}
		}, []Kind{Wrong}},
		"the younger before the older for the last place: wrong": {func(c *court) {
			first, older, younger := queued("a", 0), queued("b", time.Second), queued("c", 2*time.Second)
			for _, claim := range []*v1alpha1.SandboxClaim{first, older, younger} {
				c.put(claim)
			}
			c.admit(first)
			c.admit(younger)
		}, []Kind{Wrong}},
		"the younger, because the older's session is full: nothing to say": {func(c *court) {
			first, older, younger := queued("a", 0), queued("b", time.Second), queued("c", 2*time.Second)
			older.Spec.SessionID, older.Spec.Handle = first.Spec.SessionID, "shell/two"
			c.put(first)
			c.admit(first)
			c.put(older)
			c.put(younger)
			c.admit(younger)
		}, nil},
		"a place in the queue that changes: wrong": {func(c *court) {
			claim := queued("a", 0)
			c.put(claim)
			claim.Status.QueuedAt = ptr.To(metav1.NewMicroTime(time.Unix(2000, 0)))
			c.put(claim)
		}, []Kind{Wrong}},
		"a Bound claim that is Queued again: wrong": {func(c *court) {
			claim := queued("a", 0)
			c.put(claim)
			c.admit(claim)
			claim.Status.Phase = v1alpha1.PhaseQueued
			c.put(claim)
		}, []Kind{Wrong}},
		"a claim that was born Bound: wrong": {func(c *court) {
			claim := queued("a", 0)
			claim.Status.Phase = v1alpha1.PhaseBound
			c.put(claim)
		}, []Kind{Wrong}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			tell.history(c)
			assert.Equal(t, tell.broken, c.kinds())
		})
	}
}

func TestPods_ASecondWhileTheFirstStands_IsDoubled(t *testing.T) {
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-" + string(uid), UID: uid, Labels: map[string]string{v1alpha1.LabelClaimUID: "claim"}}}
	}
	ending := pod("a")
	ending.DeletionTimestamp = ptr.To(metav1.Now())
	failed := pod("a")
	failed.Status.Phase = corev1.PodFailed
	for name, c := range map[string]struct {
		told   []*corev1.Pod
		broken []Kind
	}{
		"the same pod twice":                {told: []*corev1.Pod{pod("a"), pod("a")}},
		"another after it was asked to end": {told: []*corev1.Pod{pod("a"), ending, pod("b")}},
		"another after it failed":           {told: []*corev1.Pod{pod("a"), failed, pod("b")}},
		"another beside it":                 {told: []*corev1.Pod{pod("a"), pod("b")}, broken: []Kind{Doubled}},
	} {
		t.Run(name, func(t *testing.T) {
			court := newCourt(t)
			s := &Standing{Events: court.Events, pods: map[types.UID]*corev1.Pod{}, byHand: sets.New[types.UID]()}
			for _, pod := range c.told {
				s.podStands(pod)
			}
			assert.Equal(t, c.broken, court.kinds())
		})
	}
}

// After a gap two that followed on one another must not seem to have been there at once.
func TestFollower_AfterAGap_WhatWentIsToldBeforeWhatCame(t *testing.T) {
	pod := func(uid types.UID) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}} }
	var told []string
	f := &follower[*corev1.Pod, *corev1.PodList]{
		known:   map[types.UID]*corev1.Pod{},
		present: func(p *corev1.Pod) { told = append(told, "there: "+string(p.UID)) },
		gone:    func(p *corev1.Pod) { told = append(told, "gone: "+string(p.UID)) },
	}
	f.replace([]*corev1.Pod{pod("a"), pod("b")})
	f.replace([]*corev1.Pod{pod("b"), pod("c")})
	assert.Equal(t, []string{"there: a", "there: b", "gone: a", "there: b", "there: c"}, told)
}
