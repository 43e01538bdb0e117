package validation

import (
	"fmt"
	"testing"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

func offering(m ...sandbox.ClassMount) func(*class) {
	return func(c *class) {
		workspaceAt("/workspace")(c)
		c.Mounts = m
	}
}

func manyMounts(n int) []sandbox.ClassMount {
	var out []sandbox.ClassMount
	for i := range n {
		out = append(out, sandbox.ClassMount{Role: fmt.Sprintf("r%d", i), Access: sandbox.MountReadOnly})
	}
	return out
}

func TestValidateSandboxClassMounts(t *testing.T) {
	writable := func(role string) sandbox.ClassMount {
		return sandbox.ClassMount{Role: role, Access: sandbox.MountReadWrite}
	}
	runClass(t, map[string]onClass{
		"scratch and a configured role: good": {offering(writable("scratch"), writable(characters(63))), nil},
		"a role of 64":                        {offering(writable(characters(64))), []string{"spec.mounts[0].role"}},
		"no role":                             {offering(writable("")), []string{"spec.mounts[0].role"}},
		"the session":                         {offering(writable("session")), []string{"spec.mounts[0].role"}},
		"a role twice":                        {offering(writable("a"), writable("a")), []string{"spec.mounts[1]"}},
		"an unknown access":                   {offering(sandbox.ClassMount{Role: "a", Access: "WriteOnly"}), []string{"spec.mounts[0].access"}},
		"no access, which decoding defaults":  {offering(sandbox.ClassMount{Role: "a"}), []string{"spec.mounts[0].access"}},
		"64 roles: good":                      {offering(manyMounts(64)...), nil},
		"65 roles":                            {offering(manyMounts(65)...), []string{"spec.mounts"}},
		"mounts without a workspace":          {func(c *class) { c.Mounts = manyMounts(1) }, []string{"spec.mounts"}},
		"a scratch mount, the default: good": {func(c *class) {
			c.Mounts = []sandbox.ClassMount{{Role: sandbox.MountRoleScratch, Access: sandbox.MountReadWrite}}
		}, nil},
	})
}

func connecting(connections ...sandbox.ClassConnection) func(*class) {
	return func(c *class) { c.Connections = connections }
}

func manyConnections(n int) []sandbox.ClassConnection {
	var out []sandbox.ClassConnection
	for i := range n {
		out = append(out, sandbox.ClassConnection{Role: fmt.Sprintf("r%d", i)})
	}
	return out
}

func withSession(stateFile string, args ...string) func(*class) {
	return connecting(sandbox.ClassConnection{Role: "site", Session: &sandbox.ConnectionSession{StateFile: stateFile, Args: args}})
}

func TestValidateSandboxClassConnections(t *testing.T) {
	const session = "spec.connections[0].session"
	runClass(t, map[string]onClass{
		"16 roles: good":                     {connecting(manyConnections(16)...), nil},
		"17 roles":                           {connecting(manyConnections(17)...), []string{"spec.connections"}},
		"no role":                            {connecting(sandbox.ClassConnection{}), []string{"spec.connections[0].role"}},
		"an opaque role of 253: good":        {connecting(sandbox.ClassConnection{Role: "A b/" + characters(249)}), nil},
		"a role of 254":                      {connecting(sandbox.ClassConnection{Role: characters(254)}), []string{"spec.connections[0].role"}},
		"a role twice":                       {connecting(append(manyConnections(1), manyConnections(1)...)...), []string{"spec.connections[1]"}},
		"a session that fetches none: good":  {withSession(""), nil},
		"a state file: good":                 {withSession("/cache/state.json"), nil},
		"a state file elsewhere":             {withSession("/etc/state.json"), []string{session + ".stateFile"}},
		"a state file beside the volume":     {withSession("/cache2/state.json"), []string{session + ".stateFile"}},
		"a state file that is the volume":    {withSession("/cache"), []string{session + ".stateFile"}},
		"a state file that is a folder":      {withSession("/cache/state/"), []string{session + ".stateFile"}},
		"a relative state file":              {withSession("cache/state.json"), []string{session + ".stateFile"}},
		"a state file that climbs":           {withSession("/cache/../cache/state.json"), []string{session + ".stateFile"}},
		"a state file and no volume":         {func(c *class) { withSession("/cache/s")(c); c.Filesystem = nil }, []string{session + ".stateFile"}},
		"a state file of 1024: good":         {withSession("/cache/" + characters(1017)), nil},
		"a state file of 1025":               {withSession("/cache/" + characters(1018)), []string{session + ".stateFile"}},
		"every field of a session: good":     {withSession("", "{{.Connection}}{{.SignedOutPrefixes}}{{.StateFile}}"), nil},
		"a field of an enrolment's":          {withSession("", "", "{{.StartURL}}"), []string{session + ".args[1]"}},
		"32 args: good":                      {withSession("", args(32, 4096)...), nil},
		"33 args":                            {withSession("", args(33, 1)...), []string{session + ".args"}},
		"an arg of 4097 characters":          {withSession("", characters(4097)), []string{session + ".args[0]"}},
		"an arg that is too long to be read": {withSession("", "{{"+characters(longestTemplate)), []string{session + ".args[0]"}},
	})
}

// enrolling makes the class one for enrolments, then changes that.
func enrolling(change func(*class), args ...string) func(*class) {
	return func(c *class) {
		c.View = &sandbox.View{Port: "view"}
		withSession("")(c)
		c.Enrolment = &sandbox.ClassEnrolment{Args: args}
		change(c)
	}
}

func TestValidateSandboxClassEnrolment(t *testing.T) {
	asItIs := func(*class) {}
	runClass(t, map[string]onClass{
		"every field of an enrolment: good": {enrolling(asItIs, "-interactive", "{{.Connection}}", "{{.StartURL}}", "{{.StateDomains}}", "{{.MaxDuration}}",
			"{{.StateEndpoint}}", "{{.TokenFile}}"), nil},
		"32 args: good":             {enrolling(asItIs, args(32, 4096)...), nil},
		"no args":                   {enrolling(asItIs), []string{"spec.enrolment.args"}},
		"33 args":                   {enrolling(asItIs, args(33, 1)...), []string{"spec.enrolment.args"}},
		"an arg of 4097 characters": {enrolling(asItIs, characters(4097)), []string{"spec.enrolment.args[0]"}},
		"a field of a session's":    {enrolling(asItIs, "{{.SignedOutPrefixes}}"), []string{"spec.enrolment.args[0]"}},
		"no view":                   {enrolling(func(c *class) { c.View = nil }, "a"), []string{"spec.view"}},
		"no role":                   {enrolling(connecting(), "a"), []string{"spec.connections"}},
		"no role with a session":    {enrolling(connecting(manyConnections(2)...), "a"), []string{"spec.connections"}},
		"a workspace":               {enrolling(workspaceAt("/workspace"), "a"), []string{"spec.filesystem.workspace"}},
	})
}
