package validation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

type (
	claim = sandbox.SandboxClaim
	mount = sandbox.SandboxMount
)

func goodClaim() *claim {
	return &claim{
		ObjectMeta: metav1.ObjectMeta{Name: "my-agent-sbx-7k2qp", Namespace: "my-agents"},
		Spec: sandbox.SandboxClaimSpec{
			AgentRuntimeRef: &sandbox.AgentRuntimeReference{Name: "my-agent"},
			ClassRef:        sandbox.ClassReference{Name: "codegen-default", Kind: sandbox.ClusterSandboxClassKind},
			SessionID:       "session-7", Handle: "codegen/default",
		},
	}
}

// onClaim is a change of a good claim, and the fields that are refused for it.
type onClaim struct {
	change func(*claim)
	want   []string
}

func good(change func(*claim)) onClaim                  { return onClaim{change, nil} }
func bad(change func(*claim), fields ...string) onClaim { return onClaim{change, fields} }
func created(c *claim) field.ErrorList                  { return asStored(ValidateSandboxClaim(c), c, nil, "") }
func mounts(m ...mount) func(*claim)                    { return func(c *claim) { c.Spec.Mounts = m } }
func named(name string) func(*claim)                    { return func(c *claim) { c.Name = name } }
func ofRuntime(name string) func(*claim) {
	return func(c *claim) { c.Spec.AgentRuntimeRef.Name = name }
}
func ofSession(id string) func(*claim)    { return func(c *claim) { c.Spec.SessionID = id } }
func ofClass(name string) func(*claim)    { return func(c *claim) { c.Spec.ClassRef.Name = name } }
func ofHandle(handle string) func(*claim) { return func(c *claim) { c.Spec.Handle = handle } }
func into(path string) func(*claim)       { return func(c *claim) { c.Spec.TargetPath = path } }
func binding(b ...sandbox.ConnectionBinding) func(*claim) {
	return func(c *claim) { c.Spec.Connections = b }
}
func onBehalfOf(by sandbox.RequestedBy) func(*claim) {
	return func(c *claim) { c.Spec.RequestedBy = &by }
}
func project(id, path string) mount { return mount{Role: "project", ID: id, Path: path} }

func run(t *testing.T, tests map[string]onClaim) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := goodClaim()
			tt.change(c)
			requireRefused(t, created(c), tt.want...)
		})
	}
}

func TestValidateSandboxClaimIdentity(t *testing.T) {
	run(t, map[string]onClaim{
		"the specification's example: good": good(func(*claim) {}),
		"a name of 55 characters: good":     good(named(characters(55))),
		"a name of 56 characters":           bad(named(characters(56)), "metadata.name"),
		"a name that begins with a digit":   bad(named("7up"), "metadata.name"),
		"a name with a dot":                 bad(named("a.b"), "metadata.name"),
		"a field's owner out of time": bad(func(c *claim) {
			c.ManagedFields = []metav1.ManagedFieldsEntry{{Operation: "Update", FieldsType: "FieldsV1", Time: ptr.To(metav1.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}}
		}, "metadata.managedFields[0].time"),
		"neither runtime nor enrolment":                  bad(func(c *claim) { c.Spec.AgentRuntimeRef = nil }, "spec.agentRuntimeRef"),
		"a runtime without a name":                       bad(ofRuntime(""), "spec.agentRuntimeRef.name"),
		"a runtime's name of 63 characters: good":        good(ofRuntime(characters(63))),
		"a runtime's name of 64 characters":              bad(ofRuntime(characters(64)), "spec.agentRuntimeRef.name"),
		"a runtime's name with a dot: good":              good(ofRuntime("my.agent")),
		"a runtime's name in capitals":                   bad(ofRuntime("My-Agent"), "spec.agentRuntimeRef.name"),
		"no class":                                       bad(ofClass(""), "spec.classRef.name"),
		"a class's name of 253 characters: good":         good(ofClass(characters(253))),
		"a class's name of 254 characters":               bad(ofClass(characters(254)), "spec.classRef.name"),
		"a class's name with a slash":                    bad(ofClass("a/b"), "spec.classRef.name"),
		"a class of the claim's namespace: good":         good(func(c *claim) { c.Spec.ClassRef.Kind = sandbox.SandboxClassKind }),
		"an unknown kind of class":                       bad(func(c *claim) { c.Spec.ClassRef.Kind = "Class" }, "spec.classRef.kind"),
		"no kind of class, which decoding would default": bad(func(c *claim) { c.Spec.ClassRef.Kind = "" }, "spec.classRef.kind"),
		"no session":                                bad(ofSession(""), "spec.sessionID"),
		"a session of 63 characters: good":          good(ofSession(characters(63))),
		"a session of 64 characters":                bad(ofSession(characters(64)), "spec.sessionID"),
		"a session in capitals with _ and .: good":  good(ofSession("Session_7.b")),
		"a session with a slash":                    bad(ofSession("a/b"), "spec.sessionID"),
		"a session that ends in a dash":             bad(ofSession("a-"), "spec.sessionID"),
		"no handle: good":                           good(ofHandle("")),
		"a handle of 63 and 63 characters: good":    good(ofHandle(characters(63) + "/" + characters(63))),
		"a handle of 64 characters and an instance": bad(ofHandle(characters(64)+"/default"), "spec.handle"),
		"a handle whose instance has 64 characters": bad(ofHandle("shell/"+characters(64)), "spec.handle"),
		"a handle of one label":                     bad(ofHandle("codegen"), "spec.handle"),
		"a handle of three labels":                  bad(ofHandle("a/b/c"), "spec.handle"),
		"a handle without a sandbox":                bad(ofHandle("/default"), "spec.handle"),
		"a handle without an instance":              bad(ofHandle("codegen/"), "spec.handle"),
		"a handle in capitals":                      bad(ofHandle("Codegen/default"), "spec.handle"),
		"a handle with a dot":                       bad(ofHandle("code.gen/default"), "spec.handle"),
	})
}

func TestValidateSandboxClaimMounts(t *testing.T) {
	run(t, map[string]onClaim{
		"a scratch mount: good":                   good(mounts(mount{Role: "scratch"})),
		"a mount without a role: scratch, good":   good(mounts(mount{})),
		"a session mount: good":                   good(mounts(mount{Role: "session"})),
		"a configured mount: good":                good(mounts(mount{Role: "project", ID: "shop", Path: "arena/workspaces/shop", MustExist: true})),
		"the deprecated mount alone: good":        good(func(c *claim) { c.Spec.Mount = ptr.To(project("shop", "arena/shop")) }),
		"the deprecated mount is checked as well": bad(func(c *claim) { c.Spec.Mount = ptr.To(project("", "arena/shop")) }, "spec.mount.id"),
		"two mounts":                      bad(mounts(mount{}, mount{}), "spec.mounts"),
		"mount beside mounts":             bad(func(c *claim) { c.Spec.Mounts, c.Spec.Mount = []mount{{}}, &mount{} }, "spec.mount"),
		"a session mount with an id":      bad(mounts(mount{Role: "session", ID: "x"}), "spec.mounts[0].id"),
		"a scratch mount with a path":     bad(mounts(mount{Role: "scratch", Path: "x"}), "spec.mounts[0].path"),
		"a scratch mount that must exist": bad(mounts(mount{MustExist: true}), "spec.mounts[0].mustExist"),
		"a scratch mount with all three": bad(mounts(mount{ID: "x", Path: "x", MustExist: true}),
			"spec.mounts[0].id", "spec.mounts[0].path", "spec.mounts[0].mustExist"),
		"a configured role without an id":         bad(mounts(project("", "p")), "spec.mounts[0].id"),
		"a configured role without a path":        bad(mounts(project("p", "")), "spec.mounts[0].path"),
		"a role of 63 characters: good":           good(mounts(mount{Role: characters(63), ID: "x", Path: "p"})),
		"a role of 64 characters":                 bad(mounts(mount{Role: characters(64), ID: "x", Path: "p"}), "spec.mounts[0].role"),
		"a role that is no label":                 bad(mounts(mount{Role: "My_Role", ID: "x", Path: "p"}), "spec.mounts[0].role"),
		"an id of 253 characters: good":           good(mounts(project(characters(253), "p"))),
		"an id of 254 characters":                 bad(mounts(project(characters(254), "p")), "spec.mounts[0].id"),
		"an id that is two segments":              bad(mounts(project("a/b", "p")), "spec.mounts[0].id"),
		"an id that stays":                        bad(mounts(project(".", "p")), "spec.mounts[0].id"),
		"an id that climbs":                       bad(mounts(project("..", "p")), "spec.mounts[0].id"),
		"an id with a NUL":                        bad(mounts(project("a\x00", "p")), "spec.mounts[0].id"),
		"a path of 1024 characters: good":         good(mounts(project("p", characters(1024)))),
		"a path of 1025 characters":               bad(mounts(project("p", characters(1025))), "spec.mounts[0].path"),
		"an absolute path":                        bad(mounts(project("p", "/p")), "spec.mounts[0].path"),
		"a path that climbs":                      bad(mounts(project("p", "a/../../b")), "spec.mounts[0].path"),
		"a segment that only begins so: good":     good(mounts(project("p", "a/..b/c.."))),
		"a path that is the whole content":        bad(mounts(project("p", "./")), "spec.mounts[0].path"),
		"no targetPath: good":                     good(into("")),
		"a targetPath of 512 characters: good":    good(into(characters(512))),
		"a targetPath of 513 characters":          bad(into(characters(513)), "spec.targetPath"),
		"a targetPath that is absolute":           bad(into("/projects/x"), "spec.targetPath"),
		"a targetPath that climbs":                bad(into("projects/../../x"), "spec.targetPath"),
		"a targetPath that is the whole content":  bad(into("."), "spec.targetPath"),
		"a targetPath that ends in a slash: good": good(into("projects/x/")),
		"a targetPath that is counted in letters": good(into(characters(511) + "é")),
		"a targetPath with a control character":   bad(into("projects/\n"), "spec.targetPath"),
	})
}

func TestValidateSandboxClaimRecords(t *testing.T) {
	run(t, map[string]onClaim{
		"requestedBy of 253 characters: good":             good(onBehalfOf(sandbox.RequestedBy{Subject: characters(253), Agent: characters(253)})),
		"a subject of 254 characters":                     bad(onBehalfOf(sandbox.RequestedBy{Subject: characters(254)}), "spec.requestedBy.subject"),
		"an agent of 254 characters":                      bad(onBehalfOf(sandbox.RequestedBy{Agent: characters(254)}), "spec.requestedBy.agent"),
		"declaredBy of 256 characters: good":              good(func(c *claim) { c.Spec.DeclaredBy = characters(256) }),
		"declaredBy of 257 characters":                    bad(func(c *claim) { c.Spec.DeclaredBy = characters(257) }, "spec.declaredBy"),
		"maxInstances of 1: good":                         good(func(c *claim) { c.Spec.MaxInstances = ptr.To[int32](1) }),
		"maxInstances of 0":                               bad(func(c *claim) { c.Spec.MaxInstances = ptr.To[int32](0) }, "spec.maxInstances"),
		"16 connections: good":                            good(binding(bindings(16)...)),
		"17 connections":                                  bad(binding(bindings(17)...), "spec.connections"),
		"a role bound twice":                              bad(binding(append(bindings(1), bindings(1)...)...), "spec.connections[1]"),
		"a role bound to nothing":                         bad(binding(sandbox.ConnectionBinding{Role: "a"}), "spec.connections[0].connection"),
		"no role":                                         bad(binding(sandbox.ConnectionBinding{Connection: "a"}), "spec.connections[0].role"),
		"a role and a Connection of 253 characters: good": good(binding(sandbox.ConnectionBinding{Role: characters(253), Connection: characters(253)})),
		"a role of 254 characters":                        bad(binding(sandbox.ConnectionBinding{Role: characters(254), Connection: "a"}), "spec.connections[0].role"),
		"a Connection of 254 characters":                  bad(binding(sandbox.ConnectionBinding{Role: "a", Connection: characters(254)}), "spec.connections[0].connection"),
	})
}

func TestValidateSandboxClaimEnrolment(t *testing.T) {
	lasting := func(d time.Duration) func(*claim) {
		return enrolled(func(c *claim) { c.Spec.Enrolment.MaxDuration.Duration = d })
	}
	run(t, map[string]onClaim{
		"an enrolment: good": good(enrolled(func(*claim) {})),
		"runtime beside enrolment": bad(func(c *claim) {
			c.Spec.Enrolment, c.Spec.Connections = enrolmentOf("b0"), bindings(1)
		}, "spec.agentRuntimeRef"),
		"20 minutes: good":                good(lasting(20 * time.Minute)),
		"more than 20 minutes":            bad(lasting(20*time.Minute+1), "spec.enrolment.maxDuration"),
		"1 minute: good":                  good(lasting(time.Minute)),
		"less than 1 minute":              bad(lasting(time.Minute-1), "spec.enrolment.maxDuration"),
		"it mounts":                       bad(enrolled(mounts(mount{})), "spec.mounts"),
		"it mounts in the deprecated way": bad(enrolled(func(c *claim) { c.Spec.Mount = &mount{} }), "spec.mount"),
		"it has a target":                 bad(enrolled(into("p")), "spec.targetPath"),
		"it binds nothing":                bad(enrolled(binding()), "spec.connections"),
		"it binds two Connections":        bad(enrolled(binding(bindings(2)...)), "spec.connections"),
		"it binds another Connection":     bad(enrolled(func(c *claim) { c.Spec.Connections[0].Connection = "other" }), "spec.connections[0].connection"),
		"no Connection":                   bad(enrolled(func(c *claim) { c.Spec.Enrolment.Connection = "" }), "spec.enrolment.connection"),
		"a Connection of 253 characters: good": good(enrolled(func(c *claim) {
			c.Spec.Enrolment.Connection, c.Spec.Connections[0].Connection = characters(253), characters(253)
		})),
		"a Connection of 254 characters, twice": bad(enrolled(func(c *claim) {
			c.Spec.Enrolment.Connection, c.Spec.Connections[0].Connection = characters(254), characters(254)
		}), "spec.connections[0].connection", "spec.enrolment.connection"),
		"a subject of 256 characters: good": good(enrolled(func(c *claim) { c.Spec.Enrolment.Subject = characters(256) })),
		"a subject of 257 characters":       bad(enrolled(func(c *claim) { c.Spec.Enrolment.Subject = characters(257) }), "spec.enrolment.subject"),
	})
}

func bindings(n int) []sandbox.ConnectionBinding {
	var out []sandbox.ConnectionBinding
	for i := range n {
		out = append(out, sandbox.ConnectionBinding{Role: "r" + string(rune('a'+i)), Connection: "b0"})
	}
	return out
}

func enrolmentOf(connection string) *sandbox.Enrolment {
	return &sandbox.Enrolment{Connection: connection, MaxDuration: &metav1.Duration{Duration: 15 * time.Minute}}
}

// enrolled makes the claim an enrolment, then changes that.
func enrolled(change func(*claim)) func(*claim) {
	return func(c *claim) {
		c.Spec.AgentRuntimeRef = nil
		c.Spec.Handle = ""
		c.Spec.Enrolment, c.Spec.Connections = enrolmentOf("b0"), bindings(1)
		change(c)
	}
}

func TestClaimRefusalsSayWhatToDo(t *testing.T) {
	for words, change := range map[string]func(*claim){
		"metadata.name: Invalid value: \"" + characters(56) + "\": must be no more than 55": named(characters(56)),
		"spec.agentRuntimeRef: Required value: name the AgentRuntime":                       func(c *claim) { c.Spec.AgentRuntimeRef = nil },
		"spec.classRef.name: Required value: name the class":                                ofClass(""),
		"spec.sessionID: Invalid value: \"a/b\": becomes a pod's label":                     ofSession("a/b"),
		"for example shell/default":                                                         ofHandle("codegen"),
		"supported values: \"ClusterSandboxClass\", \"SandboxClass\"":                       func(c *claim) { c.Spec.ClassRef.Kind = "Class" },
		"spec.mounts: Too many: 2: must have at most 1 item":                                mounts(mount{}, mount{}),
		"its newer form: drop mount":                                                        func(c *claim) { c.Spec.Mounts, c.Spec.Mount = []mount{{}}, &mount{} },
		"for example projects/checkout-service: no leading /":                               into("/x"),
		"spec.maxInstances: Invalid value: 0: must be greater than or equal to 1":           func(c *claim) { c.Spec.MaxInstances = new(int32) },
		"spec.declaredBy: Too long: may not be more than 256 characters":                    func(c *claim) { c.Spec.DeclaredBy = characters(257) },
		"must lie between 1m and 20m":                                                       enrolled(func(c *claim) { c.Spec.Enrolment.MaxDuration.Duration = 0 }),
	} {
		t.Run(words, func(t *testing.T) {
			c := goodClaim()
			change(c)
			requireSays(t, created(c), words)
		})
	}
}

func TestValidateSandboxClaimUpdate(t *testing.T) {
	old := goodClaim()
	old.ResourceVersion = "1"
	update := func(change func(*claim)) field.ErrorList {
		c := old.DeepCopy()
		change(c)
		return asStored(ValidateSandboxClaimUpdate(c, old), c, old, "")
	}
	requireRefused(t, update(func(c *claim) { c.Labels, c.Finalizers = map[string]string{"a": "b"}, []string{"a.b/c"} }))
	requireRefused(t, update(func(c *claim) { c.Labels = map[string]string{"-": ""} }), "metadata.labels")
	for name, change := range map[string]func(*claim){
		"agentRuntimeRef": ofRuntime("other"), "classRef": ofClass("other"), "sessionID": ofSession("other"),
		"handle removed": ofHandle(""), "handle changed": ofHandle("codegen/other"), "targetPath": into("projects/x"),
		"mounts": mounts(mount{}), "mount": func(c *claim) { c.Spec.Mount = &mount{} },
		"requestedBy": onBehalfOf(sandbox.RequestedBy{Agent: "a"}), "declaredBy": func(c *claim) { c.Spec.DeclaredBy = "a" },
		"maxInstances": func(c *claim) { c.Spec.MaxInstances = ptr.To[int32](1) },
		"connections":  binding(bindings(1)...), "enrolment": func(c *claim) { c.Spec.Enrolment = enrolmentOf("b0") },
	} {
		t.Run(name+": immutable", func(t *testing.T) {
			errs := update(change)
			requireRefused(t, errs, "spec")
			requireSays(t, errs, "delete the claim and create it again")
		})
	}
}

func TestValidateSandboxClaimStatusUpdate(t *testing.T) {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Creating", LastTransitionTime: metav1.Unix(1, 0)}
	old := goodClaim()
	old.ResourceVersion = "1"
	phase := func(p sandbox.Phase) func(*sandbox.SandboxClaimStatus) {
		return func(s *sandbox.SandboxClaimStatus) { s.Phase = p }
	}
	waits := func(seconds int32) func(*sandbox.SandboxClaimStatus) {
		return func(s *sandbox.SandboxClaimStatus) { s.Wait = &sandbox.WaitLease{DurationSeconds: seconds} }
	}
	bound := func(at time.Time) func(*sandbox.SandboxClaimStatus) {
		return func(s *sandbox.SandboxClaimStatus) { s.BoundAt = ptr.To(metav1.NewMicroTime(at)) }
	}
	east, west := time.FixedZone("east", 3600), time.FixedZone("west", -3600)
	tests := map[string]struct {
		change func(*sandbox.SandboxClaimStatus)
		want   []string
	}{
		"no phase: good":             {phase(""), nil},
		"Queued: good":               {phase(sandbox.PhaseQueued), nil},
		"Pending: good":              {phase(sandbox.PhasePending), nil},
		"Bound: good":                {phase(sandbox.PhaseBound), nil},
		"Completed: good":            {phase(sandbox.PhaseCompleted), nil},
		"Failed: good":               {phase(sandbox.PhaseFailed), nil},
		"an unknown phase":           {phase("Running"), []string{"status.phase"}},
		"a lease of 0 seconds: good": {waits(0), nil},
		"a lease of -1 seconds":      {waits(-1), []string{"status.wait.durationSeconds"}},
		"a generation of -1":         {func(s *sandbox.SandboxClaimStatus) { s.ObservedGeneration = -1 }, []string{"status.observedGeneration"}},
		"a condition: good":          {func(s *sandbox.SandboxClaimStatus) { s.Conditions = []metav1.Condition{ready} }, nil},
		"a condition twice":          {func(s *sandbox.SandboxClaimStatus) { s.Conditions = []metav1.Condition{ready, ready} }, []string{"status.conditions[1]"}},
		"the last year: good":        {bound(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)), nil},
		"a year after the last":      {bound(time.Date(9999, 12, 31, 23, 59, 59, 0, west)), []string{"status.boundAt"}},
		"a year before the first":    {bound(time.Date(0, 1, 1, 0, 0, 0, 0, east)), []string{"status.boundAt"}},
		"a lease renewed out of time": {func(s *sandbox.SandboxClaimStatus) {
			s.Wait = &sandbox.WaitLease{RenewTime: metav1.NewMicroTime(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}
		}, []string{"status.wait.renewTime"}},
		"a condition out of time": {func(s *sandbox.SandboxClaimStatus) {
			late := ready
			late.LastTransitionTime = metav1.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
			s.Conditions = []metav1.Condition{late}
		}, []string{"status.conditions[0].lastTransitionTime"}},
		"the copy of a class as it stood": {func(s *sandbox.SandboxClaimStatus) {
			s.Class = &sandbox.SandboxClassSpec{Args: make([]string, 65), Ports: make([]sandbox.ClassPort, 1)}
		}, nil},
		"a class without ports, of which nothing can be built": {func(s *sandbox.SandboxClaimStatus) { s.Class = &sandbox.SandboxClassSpec{} }, []string{"status.class.ports"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := old.DeepCopy()
			tt.change(&c.Status)
			for _, subresource := range []string{"status", ""} { // the server's own writes name no subresource
				requireRefused(t, asStored(ValidateSandboxClaimStatusUpdate(c, old), c, old, subresource), tt.want...)
			}
		})
	}
}
