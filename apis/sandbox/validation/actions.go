package validation

import (
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// What an action asks for is stored in no object of its own, so the store does not check it by the tags of v1alpha1.
const (
	maxReferenceLength = 253
	maxDeclared        = 1
)

// ValidateSandboxAcquire checks the body of an acquire.
func ValidateSandboxAcquire(acquire *sandbox.SandboxAcquire) field.ErrorList {
	spec, at := &acquire.Spec, field.NewPath("spec")
	errs := validateRuntimeName(spec.AgentRuntime, at.Child("agentRuntime"))
	errs = append(errs, validateSessionID(spec.SessionID, at.Child("sessionID"))...)
	if spec.Handle == "" {
		errs = append(errs, field.Required(at.Child("handle"), "name the sandbox and its instance, as <sandbox>/default"))
	} else {
		errs = append(errs, validateHandle(spec.Handle, at.Child("handle"))...)
	}
	if spec.Declaration != nil {
		errs = append(errs, validateDeclaration(spec, at.Child("declaration"))...)
	}
	if by := spec.RequestedBy; by != nil {
		errs = append(errs, validateRequestedBy(by, at.Child("requestedBy"))...)
	}
	if spec.WaitSeconds != nil && *spec.WaitSeconds < 0 {
		errs = append(errs, field.Invalid(at.Child("waitSeconds"), *spec.WaitSeconds, "must not be negative: 0 does not wait, absent waits as long as one call may"))
	}
	return errs
}

func validateDeclaration(spec *sandbox.SandboxAcquireSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	mounts := spec.Declaration.Mounts
	if len(mounts) > maxDeclared {
		return append(errs, field.TooMany(at.Child("mounts"), len(mounts), maxDeclared))
	}
	for i, m := range mounts {
		mount := at.Child("mounts").Index(i)
		if m.Role == "" {
			errs = append(errs, field.Required(mount.Child("role"), "name the mount's role: scratch, session or a configured one"))
		}
		errs = append(errs, validateRoleAndID(m.Role, m.ID, mount)...)
		errs = append(errs, atMost(m.ID, maxReferenceLength, mount.Child("id"))...)
	}
	if replaced := spec.Declaration.ReplacesSession; replaced != "" {
		errs = append(errs, becomesLabel(replaced, at.Child("replacesSession"))...)
		if replaced == spec.SessionID {
			errs = append(errs, field.Invalid(at.Child("replacesSession"), replaced, "must be another session than sessionID, whose claim this acquire answers with: drop it"))
		}
	}
	return errs
}

// ValidateSandboxRelease checks the body of a release; anyClaim says that the URL names no claim.
func ValidateSandboxRelease(release *sandbox.SandboxRelease, anyClaim bool) field.ErrorList {
	spec, at := &release.Spec, field.NewPath("spec")
	if anyClaim {
		errs := validateRuntimeName(spec.AgentRuntime, at.Child("agentRuntime"))
		errs = append(errs, validateSessionID(spec.SessionID, at.Child("sessionID"))...)
		if spec.UID != "" {
			errs = append(errs, field.Forbidden(at.Child("uid"), "means one claim: put that claim's name in the URL in place of -"))
		}
		return errs
	}
	var errs field.ErrorList
	const session = "means a session's claims: put - in the URL in place of the claim's name"
	if spec.AgentRuntime != "" {
		errs = append(errs, field.Forbidden(at.Child("agentRuntime"), session))
	}
	if spec.SessionID != "" {
		errs = append(errs, field.Forbidden(at.Child("sessionID"), session))
	}
	return errs
}

// validateRequestedBy bounds what an acquire copies into its claim.
func validateRequestedBy(by *sandbox.RequestedBy, at *field.Path) field.ErrorList {
	errs := atMost(by.Subject, maxReferenceLength, at.Child("subject"))
	return append(errs, atMost(by.Agent, maxReferenceLength, at.Child("agent"))...)
}

func atMost(value string, limit int, at *field.Path) field.ErrorList {
	if utf8.RuneCountInString(value) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLongCharacters(at, value, limit)}
}

// ValidateDeclaredClass checks the class of a ToolRegistry's sandbox, before a claim is made of it: nobody who acquires wrote
// that claim, nor can mend it.
func ValidateDeclaredClass(ref sandbox.ClassReference) field.ErrorList {
	errs := validateClassName(ref.Name, field.NewPath("classRef", "name"))
	kinds := []sandbox.ClassKind{sandbox.SandboxClassKind, sandbox.ClusterSandboxClassKind}
	if !slices.Contains(kinds, ref.Kind) {
		errs = append(errs, field.NotSupported(field.NewPath("classRef", "kind"), ref.Kind, kinds))
	}
	return errs
}
