package validation

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// scratch changes the good class's one volume.
func scratch(change func(*sandbox.ScratchVolume)) func(*class) {
	return func(c *class) { change(&c.Filesystem.Scratch[0]) }
}

func volumeNamed(name string) func(*class) {
	return scratch(func(v *sandbox.ScratchVolume) { v.Name = name })
}

func volumeAt(path string) func(*class) {
	return scratch(func(v *sandbox.ScratchVolume) { v.MountPath = path })
}

func volumeOf(size string) func(*class) {
	return scratch(func(v *sandbox.ScratchVolume) { v.SizeLimit = resource.MustParse(size) })
}

func manyVolumes(n int) func(*class) {
	return func(c *class) {
		c.Filesystem.Scratch = nil
		for i := range n {
			c.Filesystem.Scratch = append(c.Filesystem.Scratch, sandbox.ScratchVolume{Name: fmt.Sprintf("v%d", i), MountPath: fmt.Sprintf("/v%d", i),
				SizeLimit: resource.MustParse("1"), Medium: sandbox.ScratchMediumMemory})
		}
	}
}

func secondVolume(name, path string) func(*class) {
	return func(c *class) {
		manyVolumes(2)(c)
		c.Filesystem.Scratch[1].Name, c.Filesystem.Scratch[1].MountPath = name, path
	}
}

func workspaceAt(path string) func(*class) {
	return func(c *class) { c.Filesystem.Workspace = &sandbox.WorkspaceMount{MountPath: path} }
}

func TestValidateSandboxClassFilesystem(t *testing.T) {
	const volume, workspace = "spec.filesystem.scratch[0]", "spec.filesystem.workspace.mountPath"
	runClass(t, map[string]onClass{
		"no filesystem: good":                 {func(c *class) { c.Filesystem = nil }, nil},
		"8 volumes: good":                     {manyVolumes(8), nil},
		"9 volumes":                           {manyVolumes(9), []string{"spec.filesystem.scratch"}},
		"a name of 63: good":                  {volumeNamed(characters(63)), nil},
		"a name of 64":                        {volumeNamed(characters(64)), []string{volume + ".name"}},
		"no name":                             {volumeNamed(""), []string{volume + ".name"}},
		"the sandbox's own volume":            {volumeNamed("sandbox-tmp"), []string{volume + ".name"}},
		"/tmp in its place: good":             {volumeAt("/tmp"), nil},
		"a name twice":                        {secondVolume("v0", "/b"), []string{"spec.filesystem.scratch[1]"}},
		"a path twice":                        {secondVolume("b", "/v0"), []string{"spec.filesystem.scratch[1].mountPath"}},
		"a path twice, in other words":        {secondVolume("b", "//v0/./"), []string{"spec.filesystem.scratch[1].mountPath"}},
		"a volume in a volume: good":          {secondVolume("b", "/v0/b"), nil},
		"no path":                             {volumeAt(""), []string{volume + ".mountPath"}},
		"a relative path":                     {volumeAt("cache"), []string{volume + ".mountPath"}},
		"a path that climbs":                  {volumeAt("/a/../b"), []string{volume + ".mountPath"}},
		"the root":                            {volumeAt("//"), []string{volume + ".mountPath"}},
		"a path with a colon":                 {volumeAt("/a:b"), []string{volume + ".mountPath"}},
		"a path of 1024: good":                {volumeAt("/" + characters(1023)), nil},
		"a path of 1025":                      {volumeAt("/" + characters(1024)), []string{volume + ".mountPath"}},
		"a size of 1 byte: good":              {volumeOf("1"), nil},
		"a size of 0":                         {volumeOf("0"), []string{volume + ".sizeLimit"}},
		"a size of -1":                        {volumeOf("-1"), []string{volume + ".sizeLimit"}},
		"in memory: good":                     {scratch(func(v *sandbox.ScratchVolume) { v.Medium = sandbox.ScratchMediumMemory }), nil},
		"an unknown medium":                   {scratch(func(v *sandbox.ScratchVolume) { v.Medium = "Tape" }), []string{volume + ".medium"}},
		"a workspace: good":                   {workspaceAt("/workspace"), nil},
		"a workspace of a like name: good":    {workspaceAt("/cache2"), nil},
		"a workspace nowhere":                 {workspaceAt(""), []string{workspace}},
		"a relative workspace":                {workspaceAt("w"), []string{workspace}},
		"a workspace at a volume":             {workspaceAt("/cache"), []string{volume + ".mountPath"}},
		"a workspace in a volume":             {workspaceAt("/cache/w/"), []string{volume + ".mountPath"}},
		"a volume in the workspace: good":     {func(c *class) { workspaceAt("/w")(c); volumeAt("/w/cache")(c) }, nil},
		"a workspace of 1025 characters":      {workspaceAt("/" + characters(1024)), []string{workspace}},
		"a workspace of 1024 letters: good":   {workspaceAt("/" + characters(1023)), nil},
		"a workspace with a control sequence": {workspaceAt("/w\x1b"), []string{workspace}},
	})
}

func limits(name corev1.ResourceName, quantity string) func(*class) {
	return func(c *class) { c.Resources.Limits[name] = resource.MustParse(quantity) }
}

func requests(name corev1.ResourceName, quantity string) func(*class) {
	return func(c *class) {
		c.Resources.Requests = corev1.ResourceList{name: resource.MustParse(quantity)}
	}
}

func trusted(change func(*class)) func(*class) {
	return func(c *class) {
		c.Trusted = true
		change(c)
	}
}

func TestValidateSandboxClassResources(t *testing.T) {
	const limit, request = "spec.resources.limits", "spec.resources.requests"
	without := func(names ...corev1.ResourceName) func(*class) {
		return func(c *class) {
			for _, name := range names {
				delete(c.Resources.Limits, name)
			}
		}
	}
	runClass(t, map[string]onClass{
		"no memory limit":                      {without("memory"), []string{limit + "[memory]"}},
		"no cpu limit":                         {without("cpu"), []string{limit + "[cpu]"}},
		"no limits":                            {without("cpu", "memory"), []string{limit + "[cpu]", limit + "[memory]"}},
		"trusted without limits: good":         {trusted(without("cpu", "memory")), nil},
		"a limit of 0, which is none":          {limits("cpu", "0"), []string{limit + "[cpu]"}},
		"trusted with a limit of 0: good":      {trusted(limits("cpu", "0")), nil},
		"a negative limit":                     {limits("cpu", "-1"), []string{limit + "[cpu]"}},
		"trusted with a negative limit":        {trusted(limits("memory", "-1")), []string{limit + "[memory]"}},
		"ephemeral storage: good":              {limits("ephemeral-storage", "1Gi"), nil},
		"huge pages: good":                     {limits("hugepages-2Mi", "2Mi"), nil},
		"an extended resource: good":           {limits("example.com/gpu", "1"), nil},
		"a resource that a container has not":  {limits("pods", "1"), []string{limit + "[pods]"}},
		"an extended resource that is no name": {limits("example.com/", "1"), []string{limit + "[example.com/]"}},
		"a request at its limit: good":         {requests("cpu", "1000m"), nil},
		"a request above its limit":            {requests("cpu", "1001m"), []string{request + "[cpu]"}},
		"a request without a limit: good":      {requests("ephemeral-storage", "1Ti"), nil},
		"a negative request":                   {requests("memory", "-1"), []string{request + "[memory]"}},
		"a request of an unknown resource":     {requests("disk", "1"), []string{request + "[disk]"}},
		"a resource claim":                     {func(c *class) { c.Resources.Claims = []corev1.ResourceClaim{{Name: "a"}} }, []string{"spec.resources.claims"}},
	})
}

func tolerating(t corev1.Toleration) func(*class) {
	return func(c *class) { c.Tolerations = []corev1.Toleration{t} }
}

func selecting(key, value string) func(*class) {
	return func(c *class) { c.NodeSelector = map[string]string{key: value} }
}

func TestValidateSandboxClassPlacement(t *testing.T) {
	const at = "spec.tolerations[0]"
	exists, equal := corev1.TolerationOpExists, corev1.TolerationOpEqual
	runClass(t, map[string]onClass{
		"a runtime class: good":             {func(c *class) { c.RuntimeClassName = ptr.To(characters(253)) }, nil},
		"a runtime class of 254":            {func(c *class) { c.RuntimeClassName = ptr.To(characters(254)) }, []string{"spec.runtimeClassName"}},
		"an empty runtime class":            {func(c *class) { c.RuntimeClassName = ptr.To("") }, []string{"spec.runtimeClassName"}},
		"a node's label: good":              {selecting("example.com/pool", "a"), nil},
		"a node's label that is no key":     {selecting("-", "a"), []string{"spec.nodeSelector"}},
		"a node's label that is no value":   {selecting("a", "b/c"), []string{"spec.nodeSelector"}},
		"64 labels: good":                   {func(c *class) { c.NodeSelector = manyLabels(64) }, nil},
		"65 labels":                         {func(c *class) { c.NodeSelector = manyLabels(65) }, []string{"spec.nodeSelector"}},
		"64 tolerations: good":              {func(c *class) { c.Tolerations = manyTolerations(64) }, nil},
		"65 tolerations":                    {func(c *class) { c.Tolerations = manyTolerations(65) }, []string{"spec.tolerations"}},
		"every taint: good":                 {tolerating(corev1.Toleration{Operator: exists}), nil},
		"a toleration of nothing":           {tolerating(corev1.Toleration{}), []string{at + ".operator"}},
		"a key and a value: good":           {tolerating(corev1.Toleration{Key: "a.b/c", Operator: equal, Value: "d", Effect: corev1.TaintEffectNoSchedule}), nil},
		"a key that is no label's":          {tolerating(corev1.Toleration{Key: "a b"}), []string{at + ".key"}},
		"a value that is no label's":        {tolerating(corev1.Toleration{Key: "a", Value: "b c"}), []string{at + ".value"}},
		"a value where existence is enough": {tolerating(corev1.Toleration{Key: "a", Operator: exists, Value: "b"}), []string{at + ".value"}},
		"an unknown operator":               {tolerating(corev1.Toleration{Key: "a", Operator: "In"}), []string{at + ".operator"}},
		"an unknown effect":                 {tolerating(corev1.Toleration{Key: "a", Effect: "Never"}), []string{at + ".effect"}},
		"seconds before eviction: good":     {tolerating(corev1.Toleration{Key: "a", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](1)}), nil},
		"seconds without eviction":          {tolerating(corev1.Toleration{Key: "a", TolerationSeconds: ptr.To[int64](1)}), []string{at + ".effect"}},
	})
}

func manyLabels(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("l%d", i)] = ""
	}
	return out
}

func manyTolerations(n int) []corev1.Toleration {
	out := make([]corev1.Toleration, n)
	for i := range out {
		out[i].Operator = corev1.TolerationOpExists
	}
	return out
}
