package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Registry is what is known of a ToolRegistry when its sandboxes are judged.
type Registry struct {
	// ToolRegistry is the registry.
	ToolRegistry *omniav1alpha1.ToolRegistry
	// Classes are those that its sandboxes name, of exactly the kind that they name. What is missing here does not exist.
	Classes map[v1alpha1.ClassReference]*v1alpha1.SandboxClassSpec
}

// fault is why a sandbox or a handler of a registry cannot work.
type fault struct{ reason, message string }

// SandboxesValid is the condition that tells whether a registry's sandboxes can work ("The pod shape", spec/sandboxclaim.md).
// False means that there is nothing to tell: the registry has no sandboxes, and no handler that addresses one.
func SandboxesValid(in Registry) (metav1.Condition, bool) {
	spec := &in.ToolRegistry.Spec
	addressing := func(h omniav1alpha1.RegistryHandler) bool { return h.Sandbox != nil }
	if len(spec.Sandboxes) == 0 && !slices.ContainsFunc(spec.Handlers, addressing) {
		return metav1.Condition{}, false
	}
	faults := in.faults()
	condition := metav1.Condition{
		Type: omniav1alpha1.ConditionSandboxesValid, ObservedGeneration: in.ToolRegistry.Generation,
		Status: metav1.ConditionTrue, Reason: omniav1alpha1.ReasonValid,
		Message: "the sandboxes' classes exist, and the handlers' sandboxes and ports are declared",
	}
	if len(faults) > 0 {
		var messages []string
		for _, f := range faults {
			messages = append(messages, f.message)
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, faults[0].reason
		condition.Message = clipped(strings.Join(messages, "; "))
	}
	return condition, true
}

// faults are all that is wrong: of the sandboxes, then of the handlers, each in their order.
func (in Registry) faults() []fault {
	var faults []fault
	for _, sandbox := range in.ToolRegistry.Spec.Sandboxes {
		if f, wrong := in.ofSandbox(sandbox); wrong {
			faults = append(faults, f)
		}
	}
	for _, handler := range in.ToolRegistry.Spec.Handlers {
		if handler.Sandbox == nil {
			continue
		}
		if f, wrong := in.ofHandler(handler.Name, *handler.Sandbox); wrong {
			faults = append(faults, f)
		}
	}
	return faults
}

// ofSandbox: its class must exist, and have a workspace if the sandbox uses one.
func (in Registry) ofSandbox(sandbox omniav1alpha1.RegistrySandbox) (fault, bool) {
	ref := ClassOf(sandbox)
	class := in.Classes[ref]
	if class == nil {
		return fault{omniav1alpha1.ReasonClassNotFound, fmt.Sprintf("sandbox %s: there is no %s: create it, or name another class, and its kind, in classRef",
			sandbox.Name, placed(ref, in.ToolRegistry.Namespace))}, true
	}
	var uses []string
	if sandbox.TargetPath != "" {
		uses = append(uses, "targetPath")
	}
	if sandbox.Workspace == v1alpha1.MountRoleSession {
		uses = append(uses, "workspace: "+v1alpha1.MountRoleSession)
	}
	return fault{omniav1alpha1.ReasonWorkspaceNotSupported, fmt.Sprintf("sandbox %s: %s %s has no filesystem.workspace: drop %s, or name a class that has one",
		sandbox.Name, ref.Kind, ref.Name, strings.Join(uses, " and "))}, len(uses) > 0 && !hasWorkspace(class)
}

// ofHandler: its sandbox must be declared, and its port be the class's. What is wrong with the class is the sandbox's fault alone.
func (in Registry) ofHandler(name string, to omniav1alpha1.HandlerSandbox) (fault, bool) {
	sandbox, declared := in.ToolRegistry.Sandbox(to.Name)
	if !declared {
		return fault{omniav1alpha1.ReasonUnknownSandbox, fmt.Sprintf("handler %s: spec.sandboxes declares no %s: declare it, or name a sandbox that is declared", name, to.Name)}, true
	}
	ref := ClassOf(sandbox)
	class := in.Classes[ref]
	if class == nil {
		return fault{}, false
	}
	var ports []string
	for _, port := range class.Ports {
		ports = append(ports, port.Name)
	}
	whose := fmt.Sprintf("%s %s of sandbox %s", ref.Kind, ref.Name, sandbox.Name)
	switch {
	case to.Port == "" && len(ports) > 1:
		return fault{omniav1alpha1.ReasonAmbiguousPort, fmt.Sprintf("handler %s: %s has several ports: name one of %s", name, whose, strings.Join(ports, ", "))}, true
	case to.Port != "" && !slices.Contains(ports, to.Port):
		return fault{omniav1alpha1.ReasonUnknownPort, fmt.Sprintf("handler %s: %s has no port %s: name one of %s", name, whose, to.Port, strings.Join(ports, ", "))}, true
	}
	return fault{}, false
}

// ClassOf is the class of a registry's sandbox, which may leave out its kind as a claim may.
func ClassOf(sandbox omniav1alpha1.RegistrySandbox) v1alpha1.ClassReference {
	ref := v1alpha1.ClassReference{Name: sandbox.ClassRef.Name, Kind: v1alpha1.ClassKind(sandbox.ClassRef.Kind)}
	v1alpha1.SetDefaults_ClassReference(&ref)
	return ref
}
