package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// bound is a claim in a phase that was Bound once.
func bound(phase v1alpha1.Phase, change ...func(*v1alpha1.SandboxClaim)) *v1alpha1.SandboxClaim {
	claim := waiter("a", 0, append([]func(*v1alpha1.SandboxClaim){in(phase)}, change...)...)
	claim.Status.BoundAt = at(-time.Hour)
	return claim
}

func mounting(role string) func(*v1alpha1.SandboxClaim) {
	return func(claim *v1alpha1.SandboxClaim) { claim.Spec.Mounts = []v1alpha1.SandboxMount{{Role: role}} }
}

func releaseAt(d time.Duration) func(*v1alpha1.SandboxClaim) {
	return func(claim *v1alpha1.SandboxClaim) { claim.Status.ReleaseAt = at(d) }
}

func graces(release, mountRelease time.Duration) *omniav1alpha1.AgentRuntime {
	return &omniav1alpha1.AgentRuntime{Spec: omniav1alpha1.AgentRuntimeSpec{Sandbox: &omniav1alpha1.AgentRuntimeSandbox{
		Enabled: true, ReleaseGrace: &metav1.Duration{Duration: release}, MountReleaseGrace: &metav1.Duration{Duration: mountRelease},
	}}}
}

func TestRelease(t *testing.T) {
	unset, own := &omniav1alpha1.AgentRuntime{}, graces(time.Minute, 10*time.Minute)
	atOnce, nothing := Released{Delete: true}, Released{}
	tests := map[string]struct {
		claim   *v1alpha1.SandboxClaim
		runtime *omniav1alpha1.AgentRuntime
		want    Released
	}{
		"no phase: never had a sandbox, deleted at once":                            {waiter("a", 0), own, atOnce},
		"Queued: never had a sandbox, deleted at once":                              {waiter("a", 0, in(v1alpha1.PhaseQueued)), own, atOnce},
		"Pending and never Bound: deleted at once":                                  {waiter("a", 0, in(v1alpha1.PhasePending)), own, atOnce},
		"Pending, never Bound, mounts a project: deleted at once":                   {waiter("a", 0, in(v1alpha1.PhasePending), mounting("project")), own, atOnce},
		"Bound: after the runtime's releaseGrace":                                   {bound(v1alpha1.PhaseBound), own, Released{At: at(time.Minute)}},
		"dropped back to Pending: after its grace, like a Bound one":                {bound(v1alpha1.PhasePending), own, Released{At: at(time.Minute)}},
		"mounts a project: after the mountReleaseGrace":                             {bound(v1alpha1.PhaseBound, mounting("project")), own, Released{At: at(10 * time.Minute)}},
		"mounts the session workspace: after the mountReleaseGrace":                 {bound(v1alpha1.PhaseBound, mounting("session")), own, Released{At: at(10 * time.Minute)}},
		"mounts scratch: after the releaseGrace":                                    {bound(v1alpha1.PhaseBound, mounting("scratch")), own, Released{At: at(time.Minute)}},
		"dropped back to Pending and mounts a project: after the mountReleaseGrace": {bound(v1alpha1.PhasePending, mounting("project")), own, Released{At: at(10 * time.Minute)}},
		"releaseGrace unset: 2 minutes":                                             {bound(v1alpha1.PhaseBound), unset, Released{At: at(2 * time.Minute)}},
		"mountReleaseGrace unset: 5 minutes":                                        {bound(v1alpha1.PhaseBound, mounting("project")), unset, Released{At: at(5 * time.Minute)}},
		"the runtime is gone: the default":                                          {bound(v1alpha1.PhaseBound), nil, Released{At: at(2 * time.Minute)}},
		"a grace of zero: due now":                                                  {bound(v1alpha1.PhaseBound), graces(0, 0), Released{At: at(0)}},
		"a mount's grace of zero: due now":                                          {bound(v1alpha1.PhaseBound, mounting("project")), graces(0, 0), Released{At: at(0)}},
		"a negative grace: counts as unset":                                         {bound(v1alpha1.PhaseBound), graces(-1, -1), Released{At: at(2 * time.Minute)}},
		"a mount's negative grace: counts as unset":                                 {bound(v1alpha1.PhaseBound, mounting("project")), graces(-1, -1), Released{At: at(5 * time.Minute)}},
		"Bound, and no record of when: after its grace, since it has a sandbox":     {waiter("a", 0, in(v1alpha1.PhaseBound)), own, Released{At: at(time.Minute)}},
		"scheduled already: keeps its time":                                         {bound(v1alpha1.PhaseBound, releaseAt(time.Second)), own, Released{At: at(time.Second)}},
		"scheduled already, its time is past: keeps it":                             {bound(v1alpha1.PhaseBound, releaseAt(-time.Second)), own, Released{At: at(-time.Second)}},
		"Failed: left to the reaper":                                                {bound(v1alpha1.PhaseFailed), own, nothing},
		"Failed and never Bound: left to the reaper":                                {waiter("a", 0, in(v1alpha1.PhaseFailed)), own, nothing},
		"terminating: goes already":                                                 {bound(v1alpha1.PhaseBound, terminating), own, nothing},
		"terminating, never Bound: goes already":                                    {waiter("a", 0, terminating), own, nothing},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, Release(tt.claim, tt.runtime, now)) })
	}
}

func TestRelease_WithinAMicrosecond_IsWhatCanBeStored(t *testing.T) {
	claim := bound(v1alpha1.PhaseBound)
	got := Release(claim, nil, now.Add(1500*time.Nanosecond))
	assert.Equal(t, at(2*time.Minute+time.Microsecond), got.At, "whoever reads it back finds the same time")
}

func TestUseIsWritten(t *testing.T) {
	tests := map[string]struct {
		lastUsed, releaseAt *metav1.MicroTime
		want                bool
	}{
		"never used: written":                               {nil, nil, true},
		"used a moment ago: within the throttle":            {at(-time.Second), nil, false},
		"just within half the idle timeout: not written":    {at(-15*time.Minute + time.Microsecond), nil, false},
		"half the idle timeout ago: written":                {at(-15 * time.Minute), nil, true},
		"a scheduled release, used a moment ago: withdrawn": {at(-time.Second), at(time.Minute), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, UseIsWritten(tt.lastUsed, tt.releaseAt, 30*time.Minute, now))
		})
	}
}
