package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestStand(t *testing.T) {
	addresses := map[string]string{"mcp": "10.0.0.1:8080"}
	waiting := func(reason, message string) Observed {
		return Observed{Pod: PodObserved{Name: "p", WaitingReason: reason, WaitingMessage: message}}
	}
	tests := map[string]struct {
		seen    Observed
		phase   v1alpha1.Phase
		reason  string
		message string // a part of it
	}{
		"nothing yet: being created":                        {Observed{}, v1alpha1.PhasePending, v1alpha1.ReasonCreating, ""},
		"a pod without news: not ready":                     {Observed{Pod: PodObserved{Name: "p"}}, v1alpha1.PhasePending, v1alpha1.ReasonPodNotReady, "pod p"},
		"ready and routed: bound":                           {Observed{DeploymentReady: true, Routed: true, Addresses: addresses}, v1alpha1.PhaseBound, v1alpha1.ReasonSandboxReady, ""},
		"ready and not routed yet: its address races":       {Observed{DeploymentReady: true, Addresses: addresses}, v1alpha1.PhasePending, v1alpha1.ReasonCreating, ""},
		"ready without a cluster IP: no address to promise": {Observed{DeploymentReady: true, Routed: true}, v1alpha1.PhasePending, v1alpha1.ReasonCreating, ""},
		"routed and not ready: not bound":                   {Observed{Routed: true, Addresses: addresses, Pod: PodObserved{Name: "p"}}, v1alpha1.PhasePending, v1alpha1.ReasonPodNotReady, ""},
		"somebody else's object: waits, names it":           {Observed{Taken: "Service a/b"}, v1alpha1.PhasePending, v1alpha1.ReasonNameTaken, "Service a/b"},
		"an earlier claim's object: waits for it":           {Observed{Clearing: "Deployment a/b"}, v1alpha1.PhasePending, v1alpha1.ReasonClearingPrevious, "Deployment a/b"},
		"rejected objects: failed, with the server's words": {Observed{Rejected: "spec.x: no"}, v1alpha1.PhaseFailed, v1alpha1.ReasonSandboxRejected, "spec.x: no"},
		"unschedulable: waits, in the scheduler's words":    {Observed{Pod: PodObserved{Name: "p", Unschedulable: "0/3 nodes"}}, v1alpha1.PhasePending, v1alpha1.ReasonUnschedulable, "0/3 nodes"},
		"ready and routed, and kubelet still tells of before: bound": {Observed{DeploymentReady: true, Routed: true, Addresses: addresses, Pod: PodObserved{Name: "p", WaitingReason: "InvalidImageName"}},
			v1alpha1.PhaseBound, v1alpha1.ReasonSandboxReady, ""},
		"a quota: waits, in its words":                  {Observed{Refused: "exceeded quota"}, v1alpha1.PhasePending, v1alpha1.ReasonPodRefused, "exceeded quota"},
		"an old refusal and a pod since: the pod tells": {Observed{Refused: "exceeded quota", Pod: PodObserved{Name: "p"}}, v1alpha1.PhasePending, v1alpha1.ReasonPodNotReady, ""},
		"an unpullable image: waits":                    {waiting("ErrImagePull", "no such host"), v1alpha1.PhasePending, v1alpha1.ReasonImagePullBackOff, "no such host"},
		"an unpullable image, backing off: waits":       {waiting("ImagePullBackOff", "back-off"), v1alpha1.PhasePending, v1alpha1.ReasonImagePullBackOff, "back-off"},
		"a crash loop: waits, tells how the container ended": {Observed{Pod: PodObserved{Name: "p", WaitingReason: "CrashLoopBackOff", WaitingMessage: "back-off 10s", LastExit: "exit code 1"}},
			v1alpha1.PhasePending, v1alpha1.ReasonCrashLoopBackOff, "exit code 1; back-off 10s"},
		"a crash loop of unknown cause: waits":    {waiting("CrashLoopBackOff", ""), v1alpha1.PhasePending, v1alpha1.ReasonCrashLoopBackOff, "CrashLoopBackOff"},
		"no image reference: failed":              {waiting("InvalidImageName", "bad"), v1alpha1.PhaseFailed, v1alpha1.ReasonInvalidImageName, "bad"},
		"an image that may not be pulled: failed": {waiting("ErrImageNeverPull", ""), v1alpha1.PhaseFailed, v1alpha1.ReasonErrImageNeverPull, ""},
		"a container that ended and runs again: not ready, tells how it ended": {Observed{Pod: PodObserved{Name: "p", LastExit: "exit code 137 (OOMKilled)"}},
			v1alpha1.PhasePending, v1alpha1.ReasonPodNotReady, "exit code 137 (OOMKilled)"},
		"a pod without news of a new claim: being created": {Observed{Starting: true, Pod: PodObserved{Name: "p"}}, v1alpha1.PhasePending, v1alpha1.ReasonCreating, ""},
		"a container of a new claim that ended: told at once": {Observed{Starting: true, Pod: PodObserved{Name: "p", LastExit: "exit code 1"}},
			v1alpha1.PhasePending, v1alpha1.ReasonPodNotReady, "exit code 1"},
		"a new claim's pod that cannot be placed: told at once": {Observed{Starting: true, Pod: PodObserved{Name: "p", Unschedulable: "0/3 nodes"}},
			v1alpha1.PhasePending, v1alpha1.ReasonUnschedulable, "0/3 nodes"},
		"a new claim's container that cannot be run: told at once": {Observed{Starting: true, Pod: PodObserved{Name: "p", WaitingReason: "RunContainerError", WaitingMessage: "no such file"}},
			v1alpha1.PhasePending, v1alpha1.ReasonPodNotReady, "no such file"},
		"a container being created: not ready": {waiting("ContainerCreating", ""), v1alpha1.PhasePending, v1alpha1.ReasonPodNotReady, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Stand(tt.seen)
			assert.Equal(t, tt.phase, got.Phase)
			assert.Equal(t, tt.reason, got.Reason)
			assert.Contains(t, got.Message, tt.message)
			assert.Equal(t, tt.phase == v1alpha1.PhaseBound, got.Addresses != nil, "addresses stand only while Bound")
		})
	}
}

func TestStarting(t *testing.T) {
	tests := map[string]struct {
		ago    time.Duration // its admission, or what was written in its stead
		reason string
		change func(*v1alpha1.SandboxClaim)
		left   time.Duration
	}{
		"just admitted: for five seconds":                      {0, v1alpha1.ReasonCreating, nil, 5 * time.Second},
		"four seconds ago: for another one":                    {4 * time.Second, v1alpha1.ReasonCreating, nil, time.Second},
		"five seconds ago: no longer":                          {5 * time.Second, v1alpha1.ReasonCreating, nil, 0},
		"something was told: it is told on":                    {time.Second, v1alpha1.ReasonPodNotReady, nil, 0},
		"it was Bound: that it drops out is news":              {time.Second, v1alpha1.ReasonCreating, wasBound, 0},
		"admitted by a clock that is ahead: not kept back":     {-time.Microsecond, v1alpha1.ReasonCreating, nil, 0},
		"when it was admitted is not on record: not kept back": {0, v1alpha1.ReasonCreating, neverUsed, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			claim := used(v1alpha1.PhasePending, tt.ago, admitted, says(tt.reason, "words"))
			if tt.change != nil {
				tt.change(claim)
			}
			assert.Equal(t, tt.left, Starting(claim, now))
		})
	}
}

// TestStand_DeploymentOnRecord: only what is Bound is left as it is by a newer server.
func TestStand_DeploymentOnRecord(t *testing.T) {
	stands := &v1alpha1.DeploymentRecord{UID: "d", Generation: 2}
	seen := Observed{Deployment: stands, DeploymentReady: true, Routed: true, Addresses: map[string]string{"mcp": "10.0.0.1:8080"}}
	assert.Equal(t, stands, Stand(seen).Deployment)
	seen.Routed = false
	assert.Nil(t, Stand(seen).Deployment)
}
