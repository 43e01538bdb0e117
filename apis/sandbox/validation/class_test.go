package validation

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

type class = sandbox.SandboxClassSpec

func goodClass() *class {
	return &class{
		Image: "example.test/shell:1", ImagePullPolicy: corev1.PullIfNotPresent,
		Ports: []sandbox.ClassPort{{Name: "mcp", Port: 8080}, {Name: "view", Port: 8081}},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("512Mi")}},
		Filesystem: &sandbox.Filesystem{Scratch: []sandbox.ScratchVolume{
			{Name: "cache", MountPath: "/cache", SizeLimit: resource.MustParse("1Gi"), Medium: sandbox.ScratchMediumDisk}}},
	}
}

// onClass is a change of a good class, and the fields that are refused for it.
type onClass struct {
	change func(*class)
	want   []string
}

// createdClass gives what a class of each kind is refused for; the two must agree.
func createdClass(t *testing.T, spec *class) field.ErrorList {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "shell"}
	cluster := &sandbox.ClusterSandboxClass{ObjectMeta: meta, Spec: *spec}
	errs := asStored(ValidateSandboxClass(&cluster.ObjectMeta, &cluster.Spec, false), cluster, nil, "")
	meta.Namespace = "my-agents"
	namespaced := &sandbox.SandboxClass{ObjectMeta: meta, Spec: *spec}
	same := asStored(ValidateSandboxClass(&namespaced.ObjectMeta, &namespaced.Spec, true), namespaced, nil, "")
	var fields []string
	for _, err := range errs {
		fields = append(fields, err.Field)
	}
	requireRefused(t, same, fields...)
	return errs
}

func runClass(t *testing.T, tests map[string]onClass) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := goodClass()
			tt.change(c)
			requireRefused(t, createdClass(t, c), tt.want...)
		})
	}
}

func env(vars ...sandbox.EnvVar) func(*class) { return func(c *class) { c.Env = vars } }

func variable(name string) sandbox.EnvVar { return sandbox.EnvVar{Name: name} }

func port(p sandbox.ClassPort) func(*class) { return func(c *class) { c.Ports[1] = p } }

func probe(path string) func(*class) {
	return func(c *class) { c.Readiness = &sandbox.Readiness{HTTPGet: &sandbox.HTTPGet{Path: path}} }
}

func args(n, length int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = characters(length)
	}
	return out
}

func manyEnv(n int) []sandbox.EnvVar {
	var out []sandbox.EnvVar
	for i := range n {
		out = append(out, variable(fmt.Sprintf("V%d", i)))
	}
	return out
}

func manyPorts(n int32) []sandbox.ClassPort {
	var out []sandbox.ClassPort
	for i := range n {
		out = append(out, sandbox.ClassPort{Name: fmt.Sprintf("p%d", i), Port: 8080 + i})
	}
	return out
}

func TestValidateSandboxClassImage(t *testing.T) {
	runClass(t, map[string]onClass{
		"a plain class: good":                    {func(*class) {}, nil},
		"no image":                               {func(c *class) { c.Image = "" }, []string{"spec.image"}},
		"an image of white space":                {func(c *class) { c.Image = " " }, []string{"spec.image"}},
		"an image with white space about it":     {func(c *class) { c.Image = "a\n" }, []string{"spec.image"}},
		"an image of 1024 characters: good":      {func(c *class) { c.Image = characters(1024) }, nil},
		"an image of 1025 characters":            {func(c *class) { c.Image = characters(1025) }, []string{"spec.image"}},
		"it always pulls: good":                  {func(c *class) { c.ImagePullPolicy = corev1.PullAlways }, nil},
		"it never pulls: good":                   {func(c *class) { c.ImagePullPolicy = corev1.PullNever }, nil},
		"an unknown pull policy":                 {func(c *class) { c.ImagePullPolicy = "Sometimes" }, []string{"spec.imagePullPolicy"}},
		"64 args: good":                          {func(c *class) { c.Args = args(64, 4096) }, nil},
		"65 args":                                {func(c *class) { c.Args = args(65, 1) }, []string{"spec.args"}},
		"an arg of 4097 characters":              {func(c *class) { c.Args = args(1, 4097) }, []string{"spec.args[0]"}},
		"64 variables: good":                     {env(manyEnv(64)...), nil},
		"65 variables":                           {env(manyEnv(65)...), []string{"spec.env"}},
		"a variable without a name":              {env(variable("")), []string{"spec.env[0].name"}},
		"a variable's name with =":               {env(variable("A=B")), []string{"spec.env[0].name"}},
		"a variable's name of 253: good":         {env(variable(characters(253))), nil},
		"a variable's name of 254":               {env(variable(characters(254))), []string{"spec.env[0].name"}},
		"a value of 8192 characters: good":       {env(sandbox.EnvVar{Name: "A", Value: characters(8192)}), nil},
		"a value of 8193 characters":             {env(sandbox.EnvVar{Name: "A", Value: characters(8193)}), []string{"spec.env[0].value"}},
		"a variable twice":                       {env(variable("A"), variable("A")), []string{"spec.env[1]"}},
		"a variable in two cases: good":          {env(variable("A"), variable("a")), nil},
		"HTTP_PROXY":                             {env(variable("HTTP_PROXY")), []string{"spec.env[0].name"}},
		"https_proxy":                            {env(variable("https_proxy")), []string{"spec.env[0].name"}},
		"No_Proxy":                               {env(variable("No_Proxy")), []string{"spec.env[0].name"}},
		"ALL_PROXY":                              {env(variable("ALL_PROXY")), []string{"spec.env[0].name"}},
		"ftp_proxy":                              {env(variable("ftp_proxy")), []string{"spec.env[0].name"}},
		"a variable that only speaks of a proxy": {env(variable("MY_HTTP_PROXY")), nil},
	})
}

func TestValidateSandboxClassPorts(t *testing.T) {
	runClass(t, map[string]onClass{
		"no ports":                            {func(c *class) { c.Ports = nil }, []string{"spec.ports"}},
		"no ports, and a view on one of them": {func(c *class) { c.Ports, c.View = nil, &sandbox.View{Port: "mcp"} }, []string{"spec.ports"}},
		"8 ports: good":                       {func(c *class) { c.Ports = manyPorts(8) }, nil},
		"9 ports":                             {func(c *class) { c.Ports = manyPorts(9) }, []string{"spec.ports"}},
		"a port without a name":               {port(sandbox.ClassPort{Port: 1}), []string{"spec.ports[1].name"}},
		"a port's name of 15: good":           {port(sandbox.ClassPort{Name: characters(15), Port: 1}), nil},
		"a port's name of 16":                 {port(sandbox.ClassPort{Name: characters(16), Port: 1}), []string{"spec.ports[1].name"}},
		"a port's name in capitals":           {port(sandbox.ClassPort{Name: "MCP", Port: 1}), []string{"spec.ports[1].name"}},
		"a port's name without a letter":      {port(sandbox.ClassPort{Name: "80", Port: 1}), []string{"spec.ports[1].name"}},
		"a port's name twice":                 {port(sandbox.ClassPort{Name: "mcp", Port: 1}), []string{"spec.ports[1]"}},
		"a port's number twice":               {port(sandbox.ClassPort{Name: "view", Port: 8080}), []string{"spec.ports[1].port"}},
		"port 1: good":                        {port(sandbox.ClassPort{Name: "view", Port: 1}), nil},
		"port 0":                              {port(sandbox.ClassPort{Name: "view"}), []string{"spec.ports[1].port"}},
		"port 65535: good":                    {port(sandbox.ClassPort{Name: "view", Port: 65535}), nil},
		"port 65536":                          {port(sandbox.ClassPort{Name: "view", Port: 65536}), []string{"spec.ports[1].port"}},
		"readiness on a port: good":           {func(c *class) { c.Readiness = &sandbox.Readiness{Port: "view"} }, nil},
		"readiness on an unknown port":        {func(c *class) { c.Readiness = &sandbox.Readiness{Port: "web"} }, []string{"spec.readiness.port"}},
		"a probe's path: good":                {probe("/healthz?full=true"), nil},
		"a probe without a path":              {probe(""), []string{"spec.readiness.httpGet.path"}},
		"a probe's path without a slash":      {probe("healthz"), []string{"spec.readiness.httpGet.path"}},
		"a probe's path that climbs":          {probe("/../x"), []string{"spec.readiness.httpGet.path"}},
		"a probe's path of 1024: good":        {probe("/" + characters(1023)), nil},
		"a probe's path of 1025":              {probe("/" + characters(1024)), []string{"spec.readiness.httpGet.path"}},
		"a view: good":                        {func(c *class) { c.View = &sandbox.View{Port: "view"} }, nil},
		"a view on an unknown port":           {func(c *class) { c.View = &sandbox.View{Port: "web"} }, []string{"spec.view.port"}},
		"a view on no port":                   {func(c *class) { c.View = &sandbox.View{} }, []string{"spec.view.port"}},
	})
}

func allowing(s sandbox.AllowedService) func(*class) {
	return func(c *class) { c.Egress = &sandbox.Egress{AllowedServices: []sandbox.AllowedService{s}} }
}

func TestValidateSandboxClassEgress(t *testing.T) {
	type service = sandbox.AllowedService
	const at = "spec.egress.allowedServices[0]"
	runClass(t, map[string]onClass{
		"dns alone: good":                      {func(c *class) { c.Egress = &sandbox.Egress{DNS: true} }, nil},
		"a Service of the claim's: good":       {allowing(service{Name: "mirror"}), nil},
		"a Service of another namespace: good": {allowing(service{Name: characters(63), Namespace: characters(63), Ports: []int32{1, 65535}}), nil},
		"a Service without a name":             {allowing(service{}), []string{at + ".name"}},
		"a Service's name of 64":               {allowing(service{Name: characters(64)}), []string{at + ".name"}},
		"a namespace that is no label":         {allowing(service{Name: "a", Namespace: "a.b"}), []string{at + ".namespace"}},
		"a Service's port 0":                   {allowing(service{Name: "a", Ports: []int32{443, 0}}), []string{at + ".ports[1]"}},
		"a Service's port 65536":               {allowing(service{Name: "a", Ports: []int32{65536}}), []string{at + ".ports[0]"}},
		"64 ports of a Service: good":          {allowing(service{Name: "a", Ports: portNumbers(64)}), nil},
		"65 ports of a Service":                {allowing(service{Name: "a", Ports: portNumbers(65)}), []string{at + ".ports"}},
		"65 Services":                          {func(c *class) { c.Egress = &sandbox.Egress{AllowedServices: make([]service, 65)} }, []string{"spec.egress.allowedServices"}},
	})
}

func portNumbers(n int32) []int32 {
	var out []int32
	for i := range n {
		out = append(out, i+1)
	}
	return out
}

func TestValidateSandboxClassName(t *testing.T) {
	name := func(meta metav1.ObjectMeta, namespaced bool) field.ErrorList {
		return ValidateSandboxClass(&meta, goodClass(), namespaced)
	}
	requireRefused(t, name(metav1.ObjectMeta{Name: "a.b-1"}, false))
	requireRefused(t, name(metav1.ObjectMeta{Name: "A"}, false), "metadata.name")
	requireSays(t, name(metav1.ObjectMeta{Name: "a"}, true), "metadata.namespace: Required value")
	requireRefused(t, name(metav1.ObjectMeta{Name: "a", Namespace: "b"}, false), "metadata.namespace")
}

func TestClassRefusalsSayWhatToDo(t *testing.T) {
	for words, change := range map[string]func(*class){
		"spec.image: Required value: name the container image":                             func(c *class) { c.Image = "" },
		"supported values: \"Always\", \"IfNotPresent\", \"Never\"":                        func(c *class) { c.ImagePullPolicy = "" },
		"spec.env: Too many: 65: must have at most 64 items":                               env(manyEnv(65)...),
		"drop it, and bind a Connection":                                                   env(variable("http_proxy")),
		"spec.ports: Required value: name at least one port":                               func(c *class) { c.Ports = nil },
		"spec.ports[1].port: Invalid value: 65536: must be less than or equal to 65535":    port(sandbox.ClassPort{Name: "view", Port: 65536}),
		"spec.view.port: Unsupported value: \"web\": supported values: \"mcp\", \"view\"":  func(c *class) { c.View = &sandbox.View{Port: "web"} },
		"limit both cpu and memory, or set trusted":                                        func(c *class) { delete(c.Resources.Limits, corev1.ResourceCPU) },
		"must be positive, for example 1Gi":                                                func(c *class) { c.Filesystem.Scratch[0].SizeLimit = resource.Quantity{} },
		"would hide the workspace at /cache: choose a path beside or below it":             func(c *class) { c.Filesystem.Workspace = &sandbox.WorkspaceMount{MountPath: "/cache"} },
		"spec.runtimeClassName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must": func(c *class) { c.RuntimeClassName = ptr.To("A") },
	} {
		t.Run(words, func(t *testing.T) {
			c := goodClass()
			change(c)
			requireSays(t, createdClass(t, c), words)
		})
	}
}

func TestValidateSandboxClassUpdate(t *testing.T) {
	workspace := func(c *class) { c.Filesystem.Workspace = &sandbox.WorkspaceMount{MountPath: "/workspace"} }
	without := func(*class) {}
	tests := map[string]struct {
		before, after func(*class)
		want          []string
	}{
		"another image: good":            {without, func(c *class) { c.Image = "example.test/shell:2" }, nil},
		"another mount path: good":       {workspace, func(c *class) { c.Filesystem.Workspace = &sandbox.WorkspaceMount{MountPath: "/w"} }, nil},
		"no filesystem any more: good":   {without, func(c *class) { c.Filesystem = nil }, nil},
		"a bad image":                    {without, func(c *class) { c.Image = "" }, []string{"spec.image"}},
		"a port fewer":                   {without, func(c *class) { c.Ports = c.Ports[:1] }, []string{"spec.ports"}},
		"a port more":                    {without, func(c *class) { c.Ports = append(c.Ports, sandbox.ClassPort{Name: "x", Port: 1}) }, []string{"spec.ports"}},
		"another number":                 {without, port(sandbox.ClassPort{Name: "view", Port: 9}), []string{"spec.ports"}},
		"another name":                   {without, port(sandbox.ClassPort{Name: "x", Port: 8081}), []string{"spec.ports"}},
		"another order, another default": {without, func(c *class) { c.Ports[0], c.Ports[1] = c.Ports[1], c.Ports[0] }, []string{"spec.ports"}},
		"a workspace added":              {without, workspace, []string{"spec.filesystem.workspace"}},
		"a workspace removed":            {workspace, without, []string{"spec.filesystem.workspace"}},
		"a filesystem removed":           {workspace, func(c *class) { c.Filesystem = nil }, []string{"spec.filesystem.workspace"}},
		"a bad image that stands: good":  {func(c *class) { c.Image = "" }, func(c *class) { c.Image = ""; c.Trusted = true }, nil},
		"a bad image that stands, and a bad variable": {func(c *class) { c.Image = "" }, func(c *class) {
			c.Image, c.Env = "", []sandbox.EnvVar{{Name: "HTTP_PROXY", Value: "x"}}
		}, []string{"spec.env[0].name"}},
		"an arg too many": {without, func(c *class) { c.Args = args(65, 1) }, []string{"spec.args"}},
	}
	meta := metav1.ObjectMeta{Name: "shell", ResourceVersion: "1"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			old, changed := goodClass(), goodClass()
			tt.before(old)
			tt.after(changed)
			var before, after runtime.Object = &sandbox.ClusterSandboxClass{ObjectMeta: meta, Spec: *old}, &sandbox.ClusterSandboxClass{ObjectMeta: meta, Spec: *changed}
			requireRefused(t, asStored(ValidateSandboxClassUpdate(&meta, &meta, changed, old), after, before, ""), tt.want...)
		})
	}
}
