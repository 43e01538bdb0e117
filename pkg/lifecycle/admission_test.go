package lifecycle

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

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
	in.Queue = Queue{Runtime: in.Runtime, Claims: []*v1alpha1.SandboxClaim{in.Claim}}
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
		"an enrolment: not granted":                                          {func(in *Admission) { in.Claim.Spec.Enrolment = &v1alpha1.Enrolment{Connection: "c"} }, v1alpha1.ReasonEnrolmentNotGranted},
		"scratch of a class without a workspace: not supported":              {func(in *Admission) { in.Claim.Spec.Mounts = []v1alpha1.SandboxMount{{Role: "scratch"}} }, v1alpha1.ReasonWorkspaceNotSupported},
		"the deprecated mount of a class without a workspace: not supported": {func(in *Admission) { in.Claim.Spec.Mount = &v1alpha1.SandboxMount{} }, v1alpha1.ReasonWorkspaceNotSupported},
		"a granted targetPath without a workspace: not supported":            {func(in *Admission) { written(in); in.Claim.Spec.TargetPath = "p" }, v1alpha1.ReasonWorkspaceNotSupported},
		"a class with a workspace: no storage":                               {withWorkspace, v1alpha1.ReasonNoWorkspaceStorage},
		"a granted project: no storage":                                      {func(in *Admission) { written(in); withWorkspace(in); in.Claim.Spec.Mounts = project }, v1alpha1.ReasonNoWorkspaceStorage},
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

// TestAdmit_SeveralCauses: the cause that is told is the one that the others depend on.
func TestAdmit_SeveralCauses(t *testing.T) {
	// Each change adds a cause and leaves those before it in place; the earliest is told until it is mended.
	causes := []struct {
		reason     string
		have, mend func(*Admission)
	}{
		{v1alpha1.ReasonEnrolmentNotGranted, func(in *Admission) { in.Claim.Spec.Enrolment = &v1alpha1.Enrolment{Connection: "c"} }, func(in *Admission) { in.Claim.Spec.Enrolment = nil }},
		{v1alpha1.ReasonAgentRuntimeNotFound, func(in *Admission) { in.Runtime = nil }, func(in *Admission) { in.Runtime = &omniav1alpha1.AgentRuntime{} }},
		{v1alpha1.ReasonSandboxesDisabled, func(*Admission) {}, func(in *Admission) { in.Runtime = ceilings(0, 0) }},
		{v1alpha1.ReasonMountNotGranted, func(in *Admission) {
			in.Claim.Spec.Mounts = []v1alpha1.SandboxMount{{Role: "session"}}
		}, func(in *Admission) { in.Claim.Spec.Mounts[0].Role = "scratch" }},
		{v1alpha1.ReasonTargetPathNotGranted, func(in *Admission) { in.Claim.Spec.TargetPath = "p" }, func(in *Admission) { in.Claim.Spec.TargetPath = "" }},
		{v1alpha1.ReasonConnectionsNotGranted, func(in *Admission) {
			in.Claim.Spec.Connections = []v1alpha1.ConnectionBinding{{Role: "r", Connection: "c"}}
		}, func(in *Admission) { in.Claim.Spec.Connections = nil }},
		{v1alpha1.ReasonClassNotFound, func(in *Admission) { in.Class = nil }, func(in *Admission) { in.Class = &v1alpha1.SandboxClassSpec{} }},
		{v1alpha1.ReasonWorkspaceNotSupported, func(*Admission) {}, withWorkspace},
		{v1alpha1.ReasonNoWorkspaceStorage, func(*Admission) {}, func(in *Admission) { in.Class.Filesystem = nil; in.Claim.Spec.Mounts = nil }},
	}
	claim := admission(func(in *Admission) {
		for _, cause := range causes {
			cause.have(in)
		}
		in.Queue = Queue{Runtime: ceilings(0, 0), Claims: []*v1alpha1.SandboxClaim{in.Claim}}
	})
	for _, cause := range causes {
		got := Admit(claim)
		require.Equal(t, v1alpha1.PhaseFailed, got.Phase, "a cause for ever is told before a limit, which passes")
		require.Equal(t, cause.reason, got.Reason)
		cause.mend(&claim)
	}
	assert.Equal(t, v1alpha1.PhaseQueued, Admit(claim).Phase, "nothing but a limit is left")
}

func TestAdmit_Queued(t *testing.T) {
	s := of("s")
	shell := func(handle string) func(*v1alpha1.SandboxClaim) { return instances(handle, 2) }
	tests := map[string]struct {
		runtime  *omniav1alpha1.AgentRuntime
		others   []*v1alpha1.SandboxClaim
		reason   string // empty: admitted
		messages []string
	}{
		"room: admitted": {ceilings(2, 2), []*v1alpha1.SandboxClaim{holder("x", s)}, "", nil},
		"the runtime's maxConcurrent is full: CeilingReached, names the field and what it waits for": {
			ceilings(2, 2), []*v1alpha1.SandboxClaim{holder("x"), holder("y")},
			v1alpha1.ReasonCeilingReached, []string{"AgentRuntime agents/my-agent", "spec.sandbox.maxConcurrent of 2", "waiting for one to end"},
		},
		"the runtime's maxPerSession is full: SessionLimitReached, names the field and the remedy": {
			ceilings(2, 1), []*v1alpha1.SandboxClaim{holder("x", s, instances("browser/default", 1))},
			v1alpha1.ReasonSessionLimit, []string{"session s", "AgentRuntime agents/my-agent", "spec.sandbox.maxPerSession", "release one"},
		},
		"the claim's maxInstances is full: InstanceLimitReached, names the field and the remedy": {
			ceilings(9, 9), []*v1alpha1.SandboxClaim{holder("x", s, shell("shell/1")), holder("y", s, shell("shell/2"))},
			v1alpha1.ReasonInstanceLimit, []string{"session s", "instances of sandbox shell", "maxInstances is 2", "release one"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			claim := waiter("a", 0, s, shell("shell/default"))
			// The claim stands last, as what is asked for it must not depend on where it was read.
			got := Admit(Admission{
				Claim: claim, Runtime: tt.runtime, Class: &v1alpha1.SandboxClassSpec{},
				Queue: Queue{Runtime: tt.runtime, Claims: append(slices.Clone(tt.others), claim)},
			})
			if tt.reason == "" {
				assert.Equal(t, v1alpha1.PhasePending, got.Phase)
				return
			}
			assert.Equal(t, v1alpha1.PhaseQueued, got.Phase)
			assert.Equal(t, tt.reason, got.Reason)
			for _, message := range tt.messages {
				assert.Contains(t, got.Message, message)
			}
		})
	}
}

func TestAdmit_QueueThatDoesNotKnowTheClaim(t *testing.T) {
	in := admission(func(*Admission) {})
	in.Queue.Claims = nil
	assert.Equal(t, v1alpha1.PhaseQueued, Admit(in).Phase, "where it stands is not known, so it takes nobody's slot")
}
