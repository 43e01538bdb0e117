package lifecycle

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(d time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: now.Add(d)} }

func admission(change func(*Admission)) Admission {
	in := Admission{
		Claim: &v1alpha1.SandboxClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "a"},
			Spec: v1alpha1.SandboxClaimSpec{
				AgentRuntimeRef: &v1alpha1.AgentRuntimeReference{Name: "my-agent"},
				ClassRef:        v1alpha1.ClassReference{Name: "shell", Kind: v1alpha1.ClusterSandboxClassKind}, SessionID: "s",
			},
		},
		Runtime: &omniav1alpha1.AgentRuntime{Spec: omniav1alpha1.AgentRuntimeSpec{Sandbox: &omniav1alpha1.AgentRuntimeSandbox{Enabled: true}}},
		Class:   &v1alpha1.SandboxClassSpec{Image: "shell:1"},
	}
	change(&in)
	return in
}

func written(in *Admission) {
	in.Claim.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProvenanceVerified, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWrittenByOperator}}
}

func withWorkspace(in *Admission) {
	in.Class.Filesystem = &v1alpha1.Filesystem{Workspace: &v1alpha1.WorkspaceMount{MountPath: "/workspace"}}
}

func TestAdmit(t *testing.T) {
	project := []v1alpha1.SandboxMount{{Role: "project", ID: "shop", Path: "p"}}
	tests := map[string]struct {
		change func(*Admission)
		want   string // the reason of Failed; empty: Pending
	}{
		"a plain claim: admitted":                                     {func(*Admission) {}, ""},
		"no AgentRuntime: failed":                                     {func(in *Admission) { in.Runtime = nil }, v1alpha1.ReasonAgentRuntimeNotFound},
		"spec.sandbox unset: failed, a misconfiguration":              {func(in *Admission) { in.Runtime.Spec.Sandbox = nil }, v1alpha1.ReasonSandboxesDisabled},
		"spec.sandbox.enabled unset: failed":                          {func(in *Admission) { in.Runtime.Spec.Sandbox.Enabled = false }, v1alpha1.ReasonSandboxesDisabled},
		"no such class: failed":                                       {func(in *Admission) { in.Class = nil }, v1alpha1.ReasonClassNotFound},
		"no such class, and the runtime forbids: the runtime's cause": {func(in *Admission) { in.Class, in.Runtime.Spec.Sandbox = nil, nil }, v1alpha1.ReasonSandboxesDisabled},
		"a project by hand: not granted":                              {func(in *Admission) { withWorkspace(in); in.Claim.Spec.Mounts = project }, v1alpha1.ReasonMountNotGranted},
		"a project in the deprecated form by hand: not granted":       {func(in *Admission) { withWorkspace(in); in.Claim.Spec.Mount = &project[0] }, v1alpha1.ReasonMountNotGranted},
		"a session workspace by hand: not granted": {func(in *Admission) {
			withWorkspace(in)
			in.Claim.Spec.Mounts = []v1alpha1.SandboxMount{{Role: "session"}}
		}, v1alpha1.ReasonMountNotGranted},
		"a targetPath by hand: not granted": {func(in *Admission) { withWorkspace(in); in.Claim.Spec.TargetPath = "p" }, v1alpha1.ReasonTargetPathNotGranted},
		"a Connection by hand: not granted": {func(in *Admission) {
			in.Claim.Spec.Connections = []v1alpha1.ConnectionBinding{{Role: "r", Connection: "c"}}
		}, v1alpha1.ReasonConnectionsNotGranted},
		"an enrolment: not granted":                               {func(in *Admission) { in.Claim.Spec.Enrolment = &v1alpha1.Enrolment{Connection: "c"} }, v1alpha1.ReasonEnrolmentNotGranted},
		"scratch of a class without a workspace: not supported":   {func(in *Admission) { in.Claim.Spec.Mounts = []v1alpha1.SandboxMount{{Role: "scratch"}} }, v1alpha1.ReasonWorkspaceNotSupported},
		"a granted targetPath without a workspace: not supported": {func(in *Admission) { written(in); in.Claim.Spec.TargetPath = "p" }, v1alpha1.ReasonWorkspaceNotSupported},
		"a class with a workspace: no storage":                    {withWorkspace, v1alpha1.ReasonNoWorkspaceStorage},
		"a granted project: no storage":                           {func(in *Admission) { written(in); withWorkspace(in); in.Claim.Spec.Mounts = project }, v1alpha1.ReasonNoWorkspaceStorage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Admit(admission(tt.change))
			assert.NotEmpty(t, got.Message)
			if tt.want == "" {
				assert.Equal(t, v1alpha1.PhasePending, got.Phase)
				return
			}
			assert.Equal(t, v1alpha1.PhaseFailed, got.Phase)
			assert.Equal(t, tt.want, got.Reason)
		})
	}
}

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
		"a quota: waits, in its words":                      {Observed{PodRefused: "exceeded quota"}, v1alpha1.PhasePending, v1alpha1.ReasonPodRefused, "exceeded quota"},
		"an old refusal and a pod since: the pod tells":     {Observed{PodRefused: "exceeded quota", Pod: PodObserved{Name: "p"}}, v1alpha1.PhasePending, v1alpha1.ReasonPodNotReady, ""},
		"an unpullable image: waits":                        {waiting("ErrImagePull", "no such host"), v1alpha1.PhasePending, v1alpha1.ReasonImagePullBackOff, "no such host"},
		"an unpullable image, backing off: waits":           {waiting("ImagePullBackOff", "back-off"), v1alpha1.PhasePending, v1alpha1.ReasonImagePullBackOff, "back-off"},
		"a crash loop: waits, tells how the container ended": {Observed{Pod: PodObserved{Name: "p", WaitingReason: "CrashLoopBackOff", WaitingMessage: "back-off 10s", LastExit: "exit code 1"}},
			v1alpha1.PhasePending, v1alpha1.ReasonCrashLoopBackOff, "exit code 1; back-off 10s"},
		"a crash loop of unknown cause: waits":    {waiting("CrashLoopBackOff", ""), v1alpha1.PhasePending, v1alpha1.ReasonCrashLoopBackOff, "CrashLoopBackOff"},
		"no image reference: failed":              {waiting("InvalidImageName", "bad"), v1alpha1.PhaseFailed, v1alpha1.ReasonInvalidImageName, "bad"},
		"an image that may not be pulled: failed": {waiting("ErrImageNeverPull", ""), v1alpha1.PhaseFailed, v1alpha1.ReasonErrImageNeverPull, ""},
		"a container being created: not ready":    {waiting("ContainerCreating", ""), v1alpha1.PhasePending, v1alpha1.ReasonPodNotReady, ""},
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

func TestLongWordsAreClipped(t *testing.T) {
	got := Stand(Observed{Rejected: strings.Repeat("é", 1<<16)})
	assert.Less(t, len(got.Message), 4096, "a condition holds 32 KiB at most, or its write is refused for ever")
	assert.True(t, utf8.ValidString(got.Message))
}

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

func TestFullLimit(t *testing.T) {
	limits := SessionLimits{PerSession: 3, Instances: 2}
	assert.Equal(t, Limit(""), FullLimit(SessionUse{Claims: 2, Instances: 1}, limits))
	assert.Equal(t, LimitPerSession, FullLimit(SessionUse{Claims: 3, Instances: 0}, limits))
	assert.Equal(t, LimitInstances, FullLimit(SessionUse{Claims: 2, Instances: 2}, limits))
	assert.False(t, Live(v1alpha1.PhaseFailed, false), "a failed claim holds no place")
	assert.False(t, Live(v1alpha1.PhaseBound, true), "nor does one that ends")
	assert.True(t, Live("", false), "one that was not looked at yet does")
}
