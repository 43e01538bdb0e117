package validation

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

func goodClaim() *sandbox.SandboxClaim {
	return &sandbox.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "my-agent-sbx-7k2qp", Namespace: "my-agents"},
		Spec: sandbox.SandboxClaimSpec{
			AgentRuntimeRef: &sandbox.AgentRuntimeReference{Name: "my-agent"},
			ClassRef:        sandbox.ClassReference{Name: "codegen-default", Kind: sandbox.ClusterSandboxClassKind},
			SessionID:       "session-7", Handle: "codegen/default",
		},
	}
}

func TestValidateSandboxClaim(t *testing.T) {
	type claim = sandbox.SandboxClaim
	project := sandbox.SandboxMount{Role: "project", ID: "shop", Path: "arena/workspaces/shop", MustExist: true}
	tests := map[string]struct {
		change func(*claim)
		want   string // the field that is refused; empty: nothing is
	}{
		"the specification's example: good":       {func(*claim) {}, ""},
		"no handle: good":                         {func(c *claim) { c.Spec.Handle = "" }, ""},
		"a scratch mount: good":                   {func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{{Role: "scratch"}} }, ""},
		"a mount without a role: scratch, good":   {func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{{}} }, ""},
		"a session mount: good":                   {func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{{Role: "session"}} }, ""},
		"a configured mount: good":                {func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{project} }, ""},
		"the deprecated mount alone: good":        {func(c *claim) { c.Spec.Mount = &project }, ""},
		"a name of 55 characters: good":           {func(c *claim) { c.Name = strings.Repeat("a", 55) }, ""},
		"a name of 56 characters":                 {func(c *claim) { c.Name = strings.Repeat("a", 56) }, "metadata.name"},
		"a name that begins with a digit":         {func(c *claim) { c.Name = "7up" }, "metadata.name"},
		"a name with a dot":                       {func(c *claim) { c.Name = "a.b" }, "metadata.name"},
		"neither runtime nor enrolment":           {func(c *claim) { c.Spec.AgentRuntimeRef = nil }, "spec.agentRuntimeRef"},
		"a runtime without a name":                {func(c *claim) { c.Spec.AgentRuntimeRef.Name = "" }, "spec.agentRuntimeRef.name"},
		"a runtime's name that is no label value": {func(c *claim) { c.Spec.AgentRuntimeRef.Name = strings.Repeat("a", 64) }, "spec.agentRuntimeRef.name"},
		"no class":                                   {func(c *claim) { c.Spec.ClassRef.Name = "" }, "spec.classRef.name"},
		"an unknown kind of class":                   {func(c *claim) { c.Spec.ClassRef.Kind = "Class" }, "spec.classRef.kind"},
		"no session":                                 {func(c *claim) { c.Spec.SessionID = "" }, "spec.sessionID"},
		"a session of 64 characters":                 {func(c *claim) { c.Spec.SessionID = strings.Repeat("s", 64) }, "spec.sessionID"},
		"a session with a slash":                     {func(c *claim) { c.Spec.SessionID = "a/b" }, "spec.sessionID"},
		"a handle of one label":                      {func(c *claim) { c.Spec.Handle = "codegen" }, "spec.handle"},
		"a handle of three labels":                   {func(c *claim) { c.Spec.Handle = "a/b/c" }, "spec.handle"},
		"a handle in capitals":                       {func(c *claim) { c.Spec.Handle = "Codegen/default" }, "spec.handle"},
		"a targetPath of 513 characters":             {func(c *claim) { c.Spec.TargetPath = strings.Repeat("p", 513) }, "spec.targetPath"},
		"two mounts":                                 {func(c *claim) { c.Spec.Mounts = make([]sandbox.SandboxMount, 2) }, "spec.mounts"},
		"mount beside mounts":                        {func(c *claim) { c.Spec.Mounts, c.Spec.Mount = []sandbox.SandboxMount{project}, &project }, "spec.mount"},
		"a session mount with an id":                 {func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{{Role: "session", ID: "x"}} }, "spec.mounts[0].id"},
		"a scratch mount with a path":                {func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{{Role: "scratch", Path: "x"}} }, "spec.mounts[0].path"},
		"a scratch mount that must exist":            {func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{{MustExist: true}} }, "spec.mounts[0].mustExist"},
		"a configured role without an id":            {func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{{Role: "project", Path: "p"}} }, "spec.mounts[0].id"},
		"a configured role without a path":           {func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{{Role: "project", ID: "p"}} }, "spec.mounts[0].path"},
		"a role that is no label":                    {func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{{Role: "My_Role", ID: "x", Path: "p"}} }, "spec.mounts[0].role"},
		"requestedBy too long":                       {func(c *claim) { c.Spec.RequestedBy = &sandbox.RequestedBy{Subject: strings.Repeat("s", 254)} }, "spec.requestedBy.subject"},
		"declaredBy too long":                        {func(c *claim) { c.Spec.DeclaredBy = strings.Repeat("s", 257) }, "spec.declaredBy"},
		"maxInstances of 0":                          {func(c *claim) { c.Spec.MaxInstances = ptr.To[int32](0) }, "spec.maxInstances"},
		"17 connections":                             {func(c *claim) { c.Spec.Connections = bindings(17) }, "spec.connections"},
		"a role bound twice":                         {func(c *claim) { c.Spec.Connections = append(bindings(1), bindings(1)...) }, "spec.connections[1].role"},
		"a role bound to nothing":                    {func(c *claim) { c.Spec.Connections = []sandbox.ConnectionBinding{{Role: "a"}} }, "spec.connections[0].connection"},
		"runtime beside enrolment":                   {func(c *claim) { c.Spec.Enrolment = enrolmentOf("b0"); c.Spec.Connections = bindings(1) }, "spec.agentRuntimeRef"},
		"an enrolment: good":                         {enrolled(func(*claim) {}), ""},
		"an enrolment of 21 minutes":                 {enrolled(func(c *claim) { c.Spec.Enrolment.MaxDuration.Duration = 21 * time.Minute }), "spec.enrolment.maxDuration"},
		"an enrolment of 59 seconds":                 {enrolled(func(c *claim) { c.Spec.Enrolment.MaxDuration.Duration = 59 * time.Second }), "spec.enrolment.maxDuration"},
		"an enrolment that mounts":                   {enrolled(func(c *claim) { c.Spec.Mounts = []sandbox.SandboxMount{{}} }), "spec.mounts"},
		"an enrolment that binds another Connection": {enrolled(func(c *claim) { c.Spec.Connections[0].Connection = "other" }), "spec.connections"},
		"an enrolment of no Connection":              {enrolled(func(c *claim) { c.Spec.Enrolment.Connection, c.Spec.Connections[0].Connection = "", "" }), "spec.enrolment.connection"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := goodClaim()
			tt.change(c)
			requireRefusal(t, tt.want, ValidateSandboxClaim(c))
		})
	}
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

func enrolled(change func(*sandbox.SandboxClaim)) func(*sandbox.SandboxClaim) {
	return func(c *sandbox.SandboxClaim) {
		c.Spec.AgentRuntimeRef = nil
		c.Spec.Handle = ""
		c.Spec.Enrolment, c.Spec.Connections = enrolmentOf("b0"), bindings(1)
		change(c)
	}
}

func TestValidateSandboxClaimUpdate(t *testing.T) {
	old := goodClaim()
	old.ResourceVersion = "1"
	changed := old.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	require.Empty(t, ValidateSandboxClaimUpdate(changed, old), "labels stay editable")
	for name, change := range map[string]func(*sandbox.SandboxClaim){
		"handle":       func(c *sandbox.SandboxClaim) { c.Spec.Handle = "codegen/other" },
		"requestedBy":  func(c *sandbox.SandboxClaim) { c.Spec.RequestedBy = &sandbox.RequestedBy{Agent: "a"} },
		"maxInstances": func(c *sandbox.SandboxClaim) { c.Spec.MaxInstances = ptr.To[int32](1) },
		"classRef":     func(c *sandbox.SandboxClaim) { c.Spec.ClassRef.Name = "other" },
	} {
		t.Run(name+": immutable", func(t *testing.T) {
			c := old.DeepCopy()
			change(c)
			requireRefusal(t, "spec", ValidateSandboxClaimUpdate(c, old))
		})
	}
}

func goodClass() *sandbox.SandboxClassSpec {
	return &sandbox.SandboxClassSpec{
		Image: "example.test/shell:1", ImagePullPolicy: corev1.PullIfNotPresent,
		Ports: []sandbox.ClassPort{{Name: "mcp", Port: 8080}, {Name: "view", Port: 8081}},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("512Mi")}},
		Filesystem: &sandbox.Filesystem{Scratch: []sandbox.ScratchVolume{
			{Name: "cache", MountPath: "/cache", SizeLimit: resource.MustParse("1Gi"), Medium: sandbox.ScratchMediumDisk}}},
	}
}

func TestValidateSandboxClass(t *testing.T) {
	type class = sandbox.SandboxClassSpec
	tests := map[string]struct {
		change func(*class)
		want   string
	}{
		"a plain class: good":          {func(*class) {}, ""},
		"trusted without limits: good": {func(c *class) { c.Trusted, c.Resources.Limits = true, nil }, ""},
		"a view: good":                 {func(c *class) { c.View = &sandbox.View{Port: "view"} }, ""},
		"a workspace with mounts: good": {func(c *class) {
			withWorkspace(c)
			c.Mounts = []sandbox.ClassMount{{Role: "scratch", Access: sandbox.MountReadWrite}}
		}, ""},
		"no image":                       {func(c *class) { c.Image = " " }, "spec.image"},
		"an unknown pull policy":         {func(c *class) { c.ImagePullPolicy = "Sometimes" }, "spec.imagePullPolicy"},
		"65 args":                        {func(c *class) { c.Args = make([]string, 65) }, "spec.args"},
		"65 variables":                   {func(c *class) { c.Env = manyEnv(65) }, "spec.env"},
		"a proxy variable":               {func(c *class) { c.Env = []sandbox.EnvVar{{Name: "https_proxy"}} }, "spec.env[0].name"},
		"a variable twice":               {func(c *class) { c.Env = []sandbox.EnvVar{{Name: "A"}, {Name: "A"}} }, "spec.env[1].name"},
		"no ports":                       {func(c *class) { c.Ports = nil }, "spec.ports"},
		"9 ports":                        {func(c *class) { c.Ports = make([]sandbox.ClassPort, 9) }, "spec.ports"},
		"a port's name twice":            {func(c *class) { c.Ports[1].Name = "mcp" }, "spec.ports[1].name"},
		"a port twice":                   {func(c *class) { c.Ports[1].Port = 8080 }, "spec.ports[1].port"},
		"port 0":                         {func(c *class) { c.Ports[0].Port = 0 }, "spec.ports[0].port"},
		"readiness on an unknown port":   {func(c *class) { c.Readiness = &sandbox.Readiness{Port: "web"} }, "spec.readiness.port"},
		"a probe's path without a slash": {func(c *class) { c.Readiness = &sandbox.Readiness{HTTPGet: &sandbox.HTTPGet{Path: "x"}} }, "spec.readiness.httpGet.path"},
		"no memory limit":                {func(c *class) { delete(c.Resources.Limits, corev1.ResourceMemory) }, "spec.resources.limits[memory]"},
		"no cpu limit":                   {func(c *class) { delete(c.Resources.Limits, corev1.ResourceCPU) }, "spec.resources.limits[cpu]"},
		"a request above its limit": {func(c *class) {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}, "spec.resources.requests[cpu]"},
		"a scratch volume of no size": {func(c *class) { c.Filesystem.Scratch[0].SizeLimit = resource.Quantity{} }, "spec.filesystem.scratch[0].sizeLimit"},
		"the sandbox's own volume":    {func(c *class) { c.Filesystem.Scratch[0].Name = "sandbox-tmp" }, "spec.filesystem.scratch[0].name"},
		"an unknown medium":           {func(c *class) { c.Filesystem.Scratch[0].Medium = "Tape" }, "spec.filesystem.scratch[0].medium"},
		"a relative mount path":       {func(c *class) { c.Filesystem.Scratch[0].MountPath = "cache" }, "spec.filesystem.scratch[0].mountPath"},
		"a mount path that climbs":    {func(c *class) { c.Filesystem.Scratch[0].MountPath = "/a/../b" }, "spec.filesystem.scratch[0].mountPath"},
		"9 scratch volumes":           {func(c *class) { c.Filesystem.Scratch = make([]sandbox.ScratchVolume, 9) }, "spec.filesystem.scratch"},
		"mounts without a workspace":  {func(c *class) { c.Mounts = []sandbox.ClassMount{{Role: "scratch", Access: sandbox.MountReadWrite}} }, "spec.mounts"},
		"a session mount": {func(c *class) {
			withWorkspace(c)
			c.Mounts = []sandbox.ClassMount{{Role: "session", Access: sandbox.MountReadWrite}}
		}, "spec.mounts[0].role"},
		"a view on an unknown port": {func(c *class) { c.View = &sandbox.View{Port: "web"} }, "spec.view.port"},
		"a toleration of nothing":   {func(c *class) { c.Tolerations = []corev1.Toleration{{}} }, "spec.tolerations[0].operator"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := goodClass()
			tt.change(c)
			requireRefusal(t, tt.want, ValidateSandboxClass(&metav1.ObjectMeta{Name: "shell"}, c, false))
		})
	}
}

func manyEnv(n int) []sandbox.EnvVar {
	var out []sandbox.EnvVar
	for i := range n {
		out = append(out, sandbox.EnvVar{Name: "V" + strings.Repeat("x", i)})
	}
	return out
}

func withWorkspace(c *sandbox.SandboxClassSpec) {
	c.Filesystem.Workspace = &sandbox.WorkspaceMount{MountPath: "/workspace"}
}

func TestValidateSandboxClassUpdate(t *testing.T) {
	meta := &metav1.ObjectMeta{Name: "shell", ResourceVersion: "1"}
	update := func(change func(*sandbox.SandboxClassSpec)) field.ErrorList {
		c := goodClass()
		change(c)
		return ValidateSandboxClassUpdate(meta, meta, c, goodClass())
	}
	requireRefusal(t, "", update(func(c *sandbox.SandboxClassSpec) { c.Image = "example.test/shell:2" }))
	requireRefusal(t, "spec.ports", update(func(c *sandbox.SandboxClassSpec) { c.Ports = c.Ports[:1] }))
	requireRefusal(t, "spec.filesystem.workspace", update(withWorkspace))
}

func TestValidateActions(t *testing.T) {
	acquire := sandbox.SandboxAcquire{Spec: sandbox.SandboxAcquireSpec{AgentRuntime: "a", SessionID: "s", Handle: "shell/default"}}
	requireRefusal(t, "", ValidateSandboxAcquire(&acquire))
	without := acquire
	without.Spec.Handle = ""
	requireRefusal(t, "spec.handle", ValidateSandboxAcquire(&without))
	negative := acquire
	negative.Spec.WaitSeconds = ptr.To[int32](-1)
	requireRefusal(t, "spec.waitSeconds", ValidateSandboxAcquire(&negative))

	session := sandbox.SandboxRelease{Spec: sandbox.SandboxReleaseSpec{AgentRuntime: "a", SessionID: "s"}}
	requireRefusal(t, "", ValidateSandboxRelease(&session, true))
	requireRefusal(t, "spec.agentRuntime", ValidateSandboxRelease(&sandbox.SandboxRelease{Spec: sandbox.SandboxReleaseSpec{AgentRuntime: "a"}}, false))
	requireRefusal(t, "", ValidateSandboxRelease(&sandbox.SandboxRelease{Spec: sandbox.SandboxReleaseSpec{UID: "u"}}, false))
	session.Spec.UID = "u"
	requireRefusal(t, "spec.uid", ValidateSandboxRelease(&session, true))
}

// requireRefusal wants some error on the field, each with a remedy, or none at all.
func requireRefusal(t *testing.T, want string, errs field.ErrorList) {
	t.Helper()
	if want == "" {
		require.Empty(t, errs)
		return
	}
	var fields []string
	for _, err := range errs {
		fields = append(fields, err.Field)
		assert.NotEmpty(t, err.Error())
	}
	require.Contains(t, fields, want, "%v", errs)
}
