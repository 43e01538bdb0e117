package validation

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What the templates of a class's arguments may say.
var (
	sessionFields   = []string{"Connection", "SignedOutPrefixes", "StateFile"}
	enrolmentFields = []string{"Connection", "StartURL", "StateDomains", "MaxDuration", "StateEndpoint", "TokenFile"}
)

// longestTemplate is what the tags allow an argument, in bytes. A longer one is theirs to refuse, and is not parsed.
const longestTemplate = 4096 * utf8.UTFMax

func validateTemplates(args, fields []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, arg := range args {
		if len(arg) > longestTemplate {
			continue
		}
		if fault := templateFault(arg, fields); fault != "" {
			// A fault quotes the template, whose lines are not to break the message's.
			errs = append(errs, field.Invalid(at.Index(i), arg, strings.Join(strings.Fields(fault), " ")))
		}
	}
	return errs
}

// templateFault says why an argument cannot be rendered over the fields; empty if it can. It reads the template and
// never executes it: a tenant writes it, and it could be made to run for ever.
func templateFault(text string, fields []string) string {
	t, err := template.New("argument").Parse(text)
	if err != nil {
		return "must be a Go text/template: " + err.Error()
	}
	if len(t.Templates()) > 1 {
		return "may not define templates: write the argument out"
	}
	if t.Tree == nil {
		return ""
	}
	return reader{fields}.read(t.Root, false)
}

// reader looks for what does not render where every field is a string.
type reader struct{ fields []string }

// read gives the first fault of a node. rebound says that a with has made the dot another value than the fields.
func (r reader) read(node parse.Node, rebound bool) string {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return "" // there is no else
		}
		return r.first(rebound, n.Nodes...)
	case *parse.ActionNode:
		return r.read(n.Pipe, rebound)
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			if fault := r.first(rebound, command.Args...); fault != "" {
				return fault
			}
		}
	case *parse.IfNode:
		return r.first(rebound, n.Pipe, n.List, n.ElseList)
	case *parse.WithNode:
		if fault := r.first(rebound, n.Pipe, n.ElseList); fault != "" {
			return fault
		}
		return r.read(n.List, true)
	case *parse.RangeNode:
		return "may not range: every field is a string"
	case *parse.TemplateNode:
		return "may not call templates: write the argument out"
	case *parse.FieldNode:
		if rebound {
			return fmt.Sprintf("%s is not what the surrounding with has chosen: write $%s", n, n)
		}
		return r.known(n.Ident)
	case *parse.VariableNode:
		if len(n.Ident) > 1 && n.Ident[0] == "$" {
			return r.known(n.Ident[1:])
		}
		if len(n.Ident) > 1 {
			return fmt.Sprintf("%s: a string has no fields", n)
		}
	case *parse.ChainNode:
		return fmt.Sprintf("%s: a string has no fields", n)
	}
	return ""
}

func (r reader) first(rebound bool, nodes ...parse.Node) string {
	for _, node := range nodes {
		if fault := r.read(node, rebound); fault != "" {
			return fault
		}
	}
	return ""
}

func (r reader) known(name []string) string {
	if len(name) == 1 && slices.Contains(r.fields, name[0]) {
		return ""
	}
	return fmt.Sprintf("does not know .%s: the fields are .%s", strings.Join(name, "."), strings.Join(r.fields, ", ."))
}
