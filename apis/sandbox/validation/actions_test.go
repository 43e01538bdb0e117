package validation

import (
	"testing"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

type asked = sandbox.SandboxAcquireSpec

func goodAcquire() *sandbox.SandboxAcquire {
	return &sandbox.SandboxAcquire{Spec: asked{AgentRuntime: "my-agent", SessionID: "session-7", Handle: "shell/default"}}
}

func declares(m ...sandbox.DeclaredMount) func(*asked) {
	return func(s *asked) { s.Declaration = &sandbox.Declaration{Mounts: m} }
}

func replacing(session string) func(*asked) {
	return func(s *asked) { s.Declaration = &sandbox.Declaration{ReplacesSession: session} }
}

func waiting(seconds int32) func(*asked) {
	return func(s *asked) { s.WaitSeconds = &seconds }
}

func TestValidateSandboxAcquire(t *testing.T) {
	type declared = sandbox.DeclaredMount
	tests := map[string]struct {
		change func(*asked)
		want   []string
	}{
		"a runtime, session and handle: good":      {func(*asked) {}, nil},
		"no runtime":                               {func(s *asked) { s.AgentRuntime = "" }, []string{"spec.agentRuntime"}},
		"a runtime's name of 63 characters: good":  {func(s *asked) { s.AgentRuntime = characters(63) }, nil},
		"a runtime's name of 64 characters":        {func(s *asked) { s.AgentRuntime = characters(64) }, []string{"spec.agentRuntime"}},
		"no session":                               {func(s *asked) { s.SessionID = "" }, []string{"spec.sessionID"}},
		"a session that is no label value":         {func(s *asked) { s.SessionID = "a b" }, []string{"spec.sessionID"}},
		"no handle":                                {func(s *asked) { s.Handle = "" }, []string{"spec.handle"}},
		"a handle of one label":                    {func(s *asked) { s.Handle = "shell" }, []string{"spec.handle"}},
		"it does not wait: good":                   {waiting(0), nil},
		"it waits longer than one call may: good":  {waiting(3600), nil},
		"it waits a negative time":                 {waiting(-1), []string{"spec.waitSeconds"}},
		"requestedBy of 253 characters: good":      {func(s *asked) { s.RequestedBy = &sandbox.RequestedBy{Subject: characters(253), Agent: characters(253)} }, nil},
		"a subject of 254 characters":              {func(s *asked) { s.RequestedBy = &sandbox.RequestedBy{Subject: characters(254)} }, []string{"spec.requestedBy.subject"}},
		"an agent of 254 characters":               {func(s *asked) { s.RequestedBy = &sandbox.RequestedBy{Agent: characters(254)} }, []string{"spec.requestedBy.agent"}},
		"an empty declaration: good":               {declares(), nil},
		"it declares scratch: good":                {declares(declared{Role: "scratch"}), nil},
		"it declares the session: good":            {declares(declared{Role: "session"}), nil},
		"it declares a configured role: good":      {declares(declared{Role: "project", ID: characters(253)}), nil},
		"it declares two mounts":                   {declares(declared{Role: "scratch"}, declared{Role: "scratch"}), []string{"spec.declaration.mounts"}},
		"it declares no role":                      {declares(declared{}), []string{"spec.declaration.mounts[0].role"}},
		"it declares a role that is no label":      {declares(declared{Role: "a.b", ID: "x"}), []string{"spec.declaration.mounts[0].role"}},
		"it declares a configured role without id": {declares(declared{Role: "project"}), []string{"spec.declaration.mounts[0].id"}},
		"it declares an id of 254 characters":      {declares(declared{Role: "project", ID: characters(254)}), []string{"spec.declaration.mounts[0].id"}},
		"it declares an id that climbs":            {declares(declared{Role: "project", ID: ".."}), []string{"spec.declaration.mounts[0].id"}},
		"it declares scratch with an id":           {declares(declared{Role: "scratch", ID: "x"}), []string{"spec.declaration.mounts[0].id"}},
		"it replaces another session: good":        {replacing("session-6"), nil},
		"it replaces what is no label value":       {replacing("a/b"), []string{"spec.declaration.replacesSession"}},
		"it replaces its own session":              {replacing("session-7"), []string{"spec.declaration.replacesSession"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			acquire := goodAcquire()
			tt.change(&acquire.Spec)
			requireRefused(t, ValidateSandboxAcquire(acquire), tt.want...)
		})
	}
}

func TestValidateSandboxRelease(t *testing.T) {
	type released = sandbox.SandboxReleaseSpec
	tests := map[string]struct {
		spec     released
		anyClaim bool
		want     []string
	}{
		"a session's claims: good":                {released{AgentRuntime: "a", SessionID: "s"}, true, nil},
		"a session's release is withdrawn: good":  {released{AgentRuntime: "a", SessionID: "s", Cancel: true}, true, nil},
		"neither runtime nor session":             {released{}, true, []string{"spec.agentRuntime", "spec.sessionID"}},
		"a session's claims with a uid":           {released{AgentRuntime: "a", SessionID: "s", UID: "u"}, true, []string{"spec.uid"}},
		"a runtime that is no name":               {released{AgentRuntime: "A", SessionID: "s"}, true, []string{"spec.agentRuntime"}},
		"a session that is no label value":        {released{AgentRuntime: "a", SessionID: "s/"}, true, []string{"spec.sessionID"}},
		"one claim: good":                         {released{}, false, nil},
		"one claim by its uid: good":              {released{UID: "u"}, false, nil},
		"one claim's release is withdrawn: good":  {released{Cancel: true}, false, nil},
		"one claim, with a runtime":               {released{AgentRuntime: "a"}, false, []string{"spec.agentRuntime"}},
		"one claim, with a runtime and a session": {released{AgentRuntime: "a", SessionID: "s"}, false, []string{"spec.agentRuntime", "spec.sessionID"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, ValidateSandboxRelease(&sandbox.SandboxRelease{Spec: tt.spec}, tt.anyClaim), tt.want...)
		})
	}
}

func TestActionRefusalsSayWhatToDo(t *testing.T) {
	for words, change := range map[string]func(*asked){
		"spec.handle: Required value: name the sandbox and its instance, as <sandbox>/default": func(s *asked) { s.Handle = "" },
		"0 does not wait": waiting(-1),
		"spec.declaration.mounts: Too many: 2: must have at most 1 item": declares(sandbox.DeclaredMount{}, sandbox.DeclaredMount{}),
		"name the mount's role: scratch, session or a configured one":    declares(sandbox.DeclaredMount{}),
		"must be another session than sessionID":                         replacing("session-7"),
	} {
		t.Run(words, func(t *testing.T) {
			acquire := goodAcquire()
			change(&acquire.Spec)
			requireSays(t, ValidateSandboxAcquire(acquire), words)
		})
	}
	release := &sandbox.SandboxRelease{Spec: sandbox.SandboxReleaseSpec{AgentRuntime: "a"}}
	requireSays(t, ValidateSandboxRelease(release, false), "put - in the URL in place of the claim's name")
}
