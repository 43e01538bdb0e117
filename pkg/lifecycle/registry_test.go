package lifecycle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// judged is a ToolRegistry whose sandbox shell is of a SandboxClass with one port, and browser of a ClusterSandboxClass with
// two ports and a workspace.
func judged() Registry {
	return Registry{
		ToolRegistry: &omniav1alpha1.ToolRegistry{
			ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "tools", Generation: 7},
			Spec: omniav1alpha1.ToolRegistrySpec{Sandboxes: []omniav1alpha1.RegistrySandbox{
				{Name: "shell", ClassRef: omniav1alpha1.ClassReference{Name: "small"}},
				{Name: "browser", ClassRef: omniav1alpha1.ClassReference{Name: "large", Kind: "ClusterSandboxClass"}},
			}},
		},
		Classes: map[v1alpha1.ClassReference]*v1alpha1.SandboxClassSpec{
			{Name: "small", Kind: v1alpha1.SandboxClassKind}: {Ports: []v1alpha1.ClassPort{{Name: "mcp", Port: 8080}}},
			{Name: "large", Kind: v1alpha1.ClusterSandboxClassKind}: {
				Ports:      []v1alpha1.ClassPort{{Name: "mcp", Port: 8080}, {Name: "view", Port: 8081}},
				Filesystem: &v1alpha1.Filesystem{Workspace: &v1alpha1.WorkspaceMount{MountPath: "/workspace"}},
			},
		},
	}
}

// handle adds a handler that addresses a sandbox's port.
func (in *Registry) handle(name, sandbox, port string) {
	spec := &in.ToolRegistry.Spec
	spec.Handlers = append(spec.Handlers, omniav1alpha1.RegistryHandler{Name: name, Sandbox: &omniav1alpha1.HandlerSandbox{Name: sandbox, Port: port}})
}

func TestSandboxesValid(t *testing.T) {
	shell := func(change func(*omniav1alpha1.RegistrySandbox)) func(*Registry) {
		return func(in *Registry) { change(&in.ToolRegistry.Spec.Sandboxes[0]) }
	}
	handled := func(sandbox, port string) func(*Registry) {
		return func(in *Registry) { in.handle("run", sandbox, port) }
	}
	tests := map[string]struct {
		change func(*Registry)
		reason string   // Valid: true; empty: no condition
		says   []string // what the message must tell
	}{
		"classes that exist: valid":                  {func(*Registry) {}, omniav1alpha1.ReasonValid, nil},
		"no sandboxes and no handlers: no condition": {func(in *Registry) { in.ToolRegistry.Spec.Sandboxes = nil }, "", nil},
		"a port of the class: valid":                 {handled("browser", "view"), omniav1alpha1.ReasonValid, nil},
		"no port, and the class has one: valid":      {handled("shell", ""), omniav1alpha1.ReasonValid, nil},
		"two sandboxes of a class: valid": {shell(func(s *omniav1alpha1.RegistrySandbox) {
			s.ClassRef = omniav1alpha1.ClassReference{Name: "large", Kind: "ClusterSandboxClass"}
		}), omniav1alpha1.ReasonValid, nil},
		"the kind written out: valid":                    {shell(func(s *omniav1alpha1.RegistrySandbox) { s.ClassRef.Kind = "SandboxClass" }), omniav1alpha1.ReasonValid, nil},
		"a workspace that is scratch: valid":             {shell(func(s *omniav1alpha1.RegistrySandbox) { s.Workspace = "scratch" }), omniav1alpha1.ReasonValid, nil},
		"a targetPath, and a class with one: valid":      {func(in *Registry) { in.ToolRegistry.Spec.Sandboxes[1].TargetPath = "projects/shop" }, omniav1alpha1.ReasonValid, nil},
		"the session's workspace, and a class so: valid": {func(in *Registry) { in.ToolRegistry.Spec.Sandboxes[1].Workspace = "session" }, omniav1alpha1.ReasonValid, nil},

		"no such class": {shell(func(s *omniav1alpha1.RegistrySandbox) { s.ClassRef.Name = "tiny" }), omniav1alpha1.ReasonClassNotFound,
			[]string{"sandbox shell: there is no SandboxClass tiny in namespace agents: create it"}},
		"a class of that name of the other kind: there is no fallback": {shell(func(s *omniav1alpha1.RegistrySandbox) { s.ClassRef.Kind = "ClusterSandboxClass" }), omniav1alpha1.ReasonClassNotFound,
			[]string{"sandbox shell: there is no ClusterSandboxClass small in the cluster"}},
		"a cluster's class without its kind: there is no fallback": {func(in *Registry) { in.ToolRegistry.Spec.Sandboxes[1].ClassRef.Kind = "" }, omniav1alpha1.ReasonClassNotFound,
			[]string{"sandbox browser: there is no SandboxClass large in namespace agents"}},
		"a kind of class that there is none of": {shell(func(s *omniav1alpha1.RegistrySandbox) { s.ClassRef.Kind = "Pod" }), omniav1alpha1.ReasonClassNotFound, []string{"there is no Pod small"}},
		"a targetPath without a workspace": {shell(func(s *omniav1alpha1.RegistrySandbox) { s.TargetPath = "projects/shop" }), omniav1alpha1.ReasonWorkspaceNotSupported,
			[]string{"sandbox shell: SandboxClass small has no filesystem.workspace: drop targetPath, or name"}},
		"the session's workspace without one": {shell(func(s *omniav1alpha1.RegistrySandbox) { s.Workspace = "session" }), omniav1alpha1.ReasonWorkspaceNotSupported,
			[]string{"drop workspace: session, or name"}},
		"both without a workspace": {shell(func(s *omniav1alpha1.RegistrySandbox) { s.TargetPath, s.Workspace = "p", "session" }), omniav1alpha1.ReasonWorkspaceNotSupported,
			[]string{"drop targetPath and workspace: session, or name"}},
		"a sandbox that is not declared": {handled("shel", "mcp"), omniav1alpha1.ReasonUnknownSandbox, []string{"handler run: spec.sandboxes declares no shel: declare it"}},
		"a sandbox, and none is declared": {func(in *Registry) { in.ToolRegistry.Spec.Sandboxes = nil; in.handle("run", "shell", "") }, omniav1alpha1.ReasonUnknownSandbox,
			[]string{"handler run: spec.sandboxes declares no shell"}},
		"a port that the class does not declare": {handled("browser", "mpc"), omniav1alpha1.ReasonUnknownPort,
			[]string{"handler run: ClusterSandboxClass large of sandbox browser has no port mpc: name one of mcp, view"}},
		"a port by its number": {handled("shell", "8080"), omniav1alpha1.ReasonUnknownPort, []string{"has no port 8080: name one of mcp"}},
		"no port, and the class has two": {handled("browser", ""), omniav1alpha1.ReasonAmbiguousPort,
			[]string{"handler run: ClusterSandboxClass large of sandbox browser has several ports: name one of mcp, view"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := judged()
			in.ToolRegistry.Spec.Handlers = []omniav1alpha1.RegistryHandler{{Name: "elsewhere"}} // which no sandbox serves
			tt.change(&in)
			got, told := SandboxesValid(in)
			require.Equal(t, tt.reason != "", told)
			if !told {
				return
			}
			want := metav1.Condition{Type: "SandboxesValid", Status: metav1.ConditionFalse, ObservedGeneration: 7, Reason: tt.reason, Message: got.Message}
			if tt.reason == omniav1alpha1.ReasonValid {
				want.Status = metav1.ConditionTrue
			}
			assert.Equal(t, want, got)
			assert.NotEmpty(t, got.Message)
			for _, words := range tt.says {
				assert.Contains(t, got.Message, words)
			}
		})
	}
}

func TestSandboxesValid_SeveralFaults_TheFirstIsTheReason_AllAreTold(t *testing.T) {
	in := judged()
	in.ToolRegistry.Spec.Sandboxes[0].TargetPath = "p"
	in.ToolRegistry.Spec.Sandboxes[1].ClassRef.Name = "huge"
	in.handle("first", "shell", "none")
	in.handle("second", "nowhere", "")
	in.handle("of a class that is missing", "browser", "none")
	got, _ := SandboxesValid(in)
	assert.Equal(t, omniav1alpha1.ReasonWorkspaceNotSupported, got.Reason)
	told := strings.Split(got.Message, "; ")
	require.Len(t, told, 4, "a missing class is told once, of its sandbox: %q", told)
	for i, begins := range []string{"sandbox shell: ", "sandbox browser: ", "handler first: ", "handler second: "} {
		assert.True(t, strings.HasPrefix(told[i], begins), "%q", told[i])
	}
}

func TestSandboxesValid_ManyFaults_TheMessageIsClipped(t *testing.T) {
	in := judged()
	for i := range 100 {
		in.handle(fmt.Sprintf("handler-%03d", i), "nowhere", "")
	}
	got, _ := SandboxesValid(in)
	assert.LessOrEqual(t, len(got.Message), longestMessage)
	assert.Contains(t, got.Message, "handler-000")
	assert.True(t, strings.HasSuffix(got.Message, "…"), "%q", got.Message)
}

func TestClip(t *testing.T) {
	tests := map[string]struct {
		text string
		want string
	}{
		"what fits: as it is":                            {"12345678", "12345678"},
		"one too many: cut, and so told":                 {"123456789", "12345…"},
		"a letter of two bytes across the cut: left out": {"1234éabcd", "1234…"},
		"a letter of two bytes before the cut: kept":     {"123éabcdef", "123é…"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Clip(tt.text, 8)
			assert.Equal(t, tt.want, got)
			assert.LessOrEqual(t, len(got), 8)
		})
	}
}
