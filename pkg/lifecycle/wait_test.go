package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestWithdraw(t *testing.T) {
	lease := &v1alpha1.WaitLease{RenewTime: *at(-time.Hour), DurationSeconds: 35}
	project := []v1alpha1.SandboxMount{{Role: "project"}}
	tests := map[string]struct {
		phase  v1alpha1.Phase
		lease  *v1alpha1.WaitLease
		mounts []v1alpha1.SandboxMount
		seen   time.Duration // ago
		due    bool
		after  time.Duration
	}{
		"no phase, run out: withdrawn":                         {lease: lease, seen: 35 * time.Second, due: true},
		"queued, run out: withdrawn":                           {phase: v1alpha1.PhaseQueued, lease: lease, seen: time.Minute, due: true},
		"scratch mount, run out: withdrawn":                    {lease: lease, mounts: []v1alpha1.SandboxMount{{}}, seen: time.Minute, due: true},
		"an old renewTime by another clock: counted from seen": {lease: lease, seen: 0, after: 35 * time.Second},
		"a second before: kept":                                {lease: lease, seen: 34 * time.Second, after: time.Second},
		"pending: kept, its pod may be a pull from ready":      {phase: v1alpha1.PhasePending, lease: lease, seen: time.Hour},
		"bound: kept":                               {phase: v1alpha1.PhaseBound, lease: lease, seen: time.Hour},
		"mounts a project: kept":                    {lease: lease, mounts: project, seen: time.Hour},
		"no lease, by hand or not waited for: kept": {seen: time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			claim := &v1alpha1.SandboxClaim{Spec: v1alpha1.SandboxClaimSpec{Mounts: tt.mounts}, Status: v1alpha1.SandboxClaimStatus{Phase: tt.phase, Wait: tt.lease}}
			due, after := Withdraw(claim, now.Add(-tt.seen), now)
			assert.Equal(t, tt.due, due)
			assert.Equal(t, tt.after, after)
		})
	}
}

func TestWait(t *testing.T) {
	first, longer := Wait(nil, 25, now)
	assert.True(t, longer)
	assert.EqualValues(t, 35, first.DurationSeconds, "the wait plus ten seconds")

	_, longer = Wait(&first, 1, now)
	assert.False(t, longer, "a new wait never shortens the lease")

	second, longer := Wait(&first, 25, now.Add(time.Second))
	assert.True(t, longer)
	assert.Equal(t, now.Add(time.Second), second.RenewTime.Time)
}
