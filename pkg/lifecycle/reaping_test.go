package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// idle is a runtime whose sandboxes may go untouched for so long.
func idle(timeout time.Duration) *omniav1alpha1.AgentRuntime {
	return &omniav1alpha1.AgentRuntime{Spec: omniav1alpha1.AgentRuntimeSpec{Sandbox: &omniav1alpha1.AgentRuntimeSandbox{
		Enabled: true, IdleTimeout: &metav1.Duration{Duration: timeout},
	}}}
}

// used is a claim in a phase, last used so long ago.
func used(phase v1alpha1.Phase, ago time.Duration, change ...func(*v1alpha1.SandboxClaim)) *v1alpha1.SandboxClaim {
	last := func(claim *v1alpha1.SandboxClaim) { claim.Status.LastUsedAt = at(-ago) }
	return waiter("a", 0, append([]func(*v1alpha1.SandboxClaim){in(phase), last}, change...)...)
}

func neverUsed(claim *v1alpha1.SandboxClaim) { claim.Status.LastUsedAt = nil }

func wasBound(claim *v1alpha1.SandboxClaim) { claim.Status.BoundAt = at(-2 * time.Hour) }

func enrolling(claim *v1alpha1.SandboxClaim) {
	claim.Spec.Enrolment = &v1alpha1.Enrolment{Connection: "c"}
}

// dueCase is a claim, and what is due of it: a cause and what it brings, or after how long to ask again.
type dueCase struct {
	claim   *v1alpha1.SandboxClaim
	runtime *omniav1alpha1.AgentRuntime
	cause   EndCause
	failed  string // the reason; empty: it is deleted
	after   time.Duration
}

func (c dueCase) check(t *testing.T) {
	end, after := Due(c.claim, c.runtime, now)
	assert.Equal(t, c.after, after, "when to ask again")
	assert.Equal(t, c.cause, end.Cause)
	assert.Equal(t, c.cause != "" && c.failed == "", end.Delete, "deleted")
	if c.failed == "" {
		assert.Nil(t, end.Failed)
		return
	}
	require.NotNil(t, end.Failed)
	assert.Equal(t, v1alpha1.PhaseFailed, end.Failed.Phase)
	assert.Equal(t, c.failed, end.Failed.Reason)
}

func TestDue_Stale(t *testing.T) {
	const (
		pending, queued, bound, failed = v1alpha1.PhasePending, v1alpha1.PhaseQueued, v1alpha1.PhaseBound, v1alpha1.PhaseFailed
		never, waited                  = v1alpha1.ReasonSandboxNeverReady, v1alpha1.ReasonQueueWaitExceeded
		hour, tick                     = time.Hour, time.Microsecond
	)
	tests := map[string]dueCase{
		"Bound, idleTimeout ago: deleted":                                   {claim: used(bound, hour), runtime: idle(hour), cause: EndIdle},
		"Bound, a microsecond before: kept":                                 {claim: used(bound, hour-tick), runtime: idle(hour), after: tick},
		"Bound, a short idleTimeout: no floor":                              {claim: used(bound, time.Minute), runtime: idle(time.Minute), cause: EndIdle},
		"Pending, idleTimeout ago: SandboxNeverReady":                       {claim: used(pending, hour), runtime: idle(hour), cause: EndNeverReady, failed: never},
		"Pending, a microsecond before: kept":                               {claim: used(pending, hour-tick), runtime: idle(hour), after: tick},
		"Pending, a short idleTimeout, 10 minutes: SandboxNeverReady":       {claim: used(pending, 10*time.Minute), runtime: idle(time.Minute), cause: EndNeverReady, failed: never},
		"Pending, a short idleTimeout, not yet 10 minutes: kept":            {claim: used(pending, 10*time.Minute-tick), runtime: idle(time.Minute), after: tick},
		"Queued, idleTimeout ago: QueueWaitExceeded":                        {claim: used(queued, hour), runtime: idle(hour), cause: EndQueueWait, failed: waited},
		"Queued, a microsecond before: kept":                                {claim: used(queued, hour-tick), runtime: idle(hour), after: tick},
		"Queued, a short idleTimeout, 10 minutes: QueueWaitExceeded":        {claim: used(queued, 10*time.Minute), runtime: idle(time.Minute), cause: EndQueueWait, failed: waited},
		"Queued, a short idleTimeout, not yet 10 minutes: kept":             {claim: used(queued, 10*time.Minute-tick), runtime: idle(time.Minute), after: tick},
		"Failed, idleTimeout ago: deleted":                                  {claim: used(failed, hour), runtime: idle(hour), cause: EndFailed},
		"Failed, a microsecond before: kept":                                {claim: used(failed, hour-tick), runtime: idle(hour), after: tick},
		"Failed, a short idleTimeout, 10 minutes: deleted":                  {claim: used(failed, 10*time.Minute), runtime: idle(time.Minute), cause: EndFailed},
		"Failed, a short idleTimeout, not yet 10 minutes: kept":             {claim: used(failed, 10*time.Minute-tick), runtime: idle(time.Minute), after: tick},
		"long past: due all the same":                                       {claim: used(bound, 100*hour), runtime: idle(hour), cause: EndIdle},
		"used in the future, by another clock: kept":                        {claim: used(bound, -time.Minute), runtime: idle(hour), after: hour + time.Minute},
		"Bound, never used: not measured, never reaped":                     {claim: used(bound, 0, neverUsed), runtime: idle(hour)},
		"no phase: not judged":                                              {claim: used("", 100*hour), runtime: idle(hour)},
		"Completed: not judged by idleness":                                 {claim: used(v1alpha1.PhaseCompleted, 100*hour), runtime: idle(hour)},
		"an enrolment: no idle reaping":                                     {claim: used(bound, 100*hour, enrolling), runtime: idle(hour)},
		"terminating: nothing more is due":                                  {claim: used(bound, 100*hour, terminating), runtime: idle(hour)},
		"idleTimeout unset: 30 minutes":                                     {claim: used(bound, 30*time.Minute), runtime: &omniav1alpha1.AgentRuntime{}, cause: EndIdle},
		"idleTimeout unset, a microsecond before: kept":                     {claim: used(bound, 30*time.Minute-tick), runtime: &omniav1alpha1.AgentRuntime{}, after: tick},
		"the runtime is gone: 30 minutes":                                   {claim: used(bound, 30*time.Minute), cause: EndIdle},
		"the runtime is gone, a microsecond before: kept":                   {claim: used(bound, 30*time.Minute-tick), after: tick},
		"an idleTimeout of zero: counts as unset, not as always idle":       {claim: used(bound, time.Minute), runtime: idle(0), after: 29 * time.Minute},
		"a negative idleTimeout: counts as unset, not as always idle":       {claim: used(bound, time.Minute), runtime: idle(-hour), after: 29 * time.Minute},
		"Pending, the default idleTimeout is above the floor: 30 minutes":   {claim: used(pending, 10*time.Minute), after: 20 * time.Minute},
		"Bound once and Pending again: SandboxNeverReady, like every other": {claim: used(pending, hour, wasBound), runtime: idle(hour), cause: EndNeverReady, failed: never},
	}
	for name, tt := range tests {
		t.Run(name, tt.check)
	}
}

func TestDue_Released(t *testing.T) {
	const (
		pending, queued, bound, failed = v1alpha1.PhasePending, v1alpha1.PhaseQueued, v1alpha1.PhaseBound, v1alpha1.PhaseFailed
		hour, tick                     = time.Hour, time.Microsecond
	)
	tests := map[string]dueCase{
		"releaseAt is now: deleted":                              {claim: used(bound, 0, releaseAt(0)), cause: EndReleased},
		"a microsecond before releaseAt: kept":                   {claim: used(bound, 0, releaseAt(tick)), after: tick},
		"releaseAt is past: deleted":                             {claim: used(bound, 0, releaseAt(-hour)), cause: EndReleased},
		"dropped back to Pending: deleted like a Bound one":      {claim: used(pending, 0, wasBound, releaseAt(0)), cause: EndReleased},
		"Queued, which should not be marked: deleted":            {claim: used(queued, 0, releaseAt(0)), cause: EndReleased},
		"Failed since: left to the reaper":                       {claim: used(failed, 0, releaseAt(-hour)), after: 30 * time.Minute},
		"Failed since, and stale: reaped, not released":          {claim: used(failed, hour, releaseAt(-hour)), cause: EndFailed},
		"never used: released all the same":                      {claim: used(bound, 0, releaseAt(0), neverUsed), cause: EndReleased},
		"never used, a microsecond before: kept":                 {claim: used(bound, 0, releaseAt(tick), neverUsed), after: tick},
		"release before it is stale: asked again at the release": {claim: used(bound, 0, releaseAt(time.Minute)), after: time.Minute},
		"stale before the release: asked again when it is stale": {claim: used(bound, 29*time.Minute, releaseAt(5*time.Minute)), after: time.Minute},
		"within its grace, and idle for too long: still reaped":  {claim: used(bound, hour, releaseAt(time.Minute)), cause: EndIdle},
		"released and idle at once: the release is told":         {claim: used(bound, hour, releaseAt(0)), cause: EndReleased},
		"terminating: nothing more is due":                       {claim: used(bound, 0, releaseAt(-hour), terminating)},
		"an enrolment: no release":                               {claim: used(bound, 0, releaseAt(-hour), enrolling)},
	}
	for name, tt := range tests {
		t.Run(name, tt.check)
	}
}

// says gives the claim's Ready condition a reason and a message.
func says(reason, message string) func(*v1alpha1.SandboxClaim) {
	return func(claim *v1alpha1.SandboxClaim) {
		claim.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason, Message: message}}
	}
}

func TestDue_FailedQuotesWhatItWaitedFor(t *testing.T) {
	tests := map[string]struct {
		claim *v1alpha1.SandboxClaim
		want  []string
	}{
		"Pending: how long, and the scheduler's own words": {
			used(v1alpha1.PhasePending, time.Hour, says(v1alpha1.ReasonUnschedulable, "0/3 nodes are available")), []string{"30m0s", "Unschedulable", "0/3 nodes are available"},
		},
		"Queued: how long, and the limit": {
			used(v1alpha1.PhaseQueued, time.Hour, says(v1alpha1.ReasonCeilingReached, "maxConcurrent of 2")), []string{"30m0s", "CeilingReached", "maxConcurrent of 2"},
		},
		"nothing was said: says so": {used(v1alpha1.PhasePending, time.Hour), []string{"nothing was heard"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			end, _ := Due(tt.claim, nil, now)
			require.NotNil(t, end.Failed)
			for _, words := range tt.want {
				assert.Contains(t, end.Failed.Message, words)
			}
		})
	}
}

func TestEnd_Instead(t *testing.T) {
	const pending, bound, failed = v1alpha1.PhasePending, v1alpha1.PhaseBound, v1alpha1.PhaseFailed
	never := End{Failed: &Verdict{Phase: failed, Reason: v1alpha1.ReasonSandboxNeverReady}, Cause: EndNeverReady}
	tests := map[string]struct {
		end     End
		verdict Verdict
		reason  string
	}{
		"no further than it was: it has come to its end":  {never, Verdict{Phase: pending, Reason: v1alpha1.ReasonUnschedulable}, v1alpha1.ReasonSandboxNeverReady},
		"ready at the last moment: it goes on":            {never, Verdict{Phase: bound, Reason: v1alpha1.ReasonSandboxReady}, v1alpha1.ReasonSandboxReady},
		"failed for a cause of its own: that is told":     {never, Verdict{Phase: failed, Reason: v1alpha1.ReasonInvalidImageName}, v1alpha1.ReasonInvalidImageName},
		"it has not come to its end: as it stands":        {End{}, Verdict{Phase: pending, Reason: v1alpha1.ReasonUnschedulable}, v1alpha1.ReasonUnschedulable},
		"one that is deleted is not failed: as it stands": {End{Delete: true}, Verdict{Phase: pending, Reason: v1alpha1.ReasonCreating}, v1alpha1.ReasonCreating},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.reason, tt.end.Instead(pending, tt.verdict).Reason) })
	}
}
