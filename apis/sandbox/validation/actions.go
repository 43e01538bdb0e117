package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// ValidateSandboxAcquire checks the body of an acquire.
func ValidateSandboxAcquire(acquire *sandbox.SandboxAcquire) field.ErrorList {
	spec, path := &acquire.Spec, field.NewPath("spec")
	errs := validateRuntimeName(spec.AgentRuntime, path.Child("agentRuntime"))
	errs = append(errs, validateSessionID(spec.SessionID, path.Child("sessionID"))...)
	if spec.Handle == "" {
		errs = append(errs, field.Required(path.Child("handle"), "name the sandbox and its instance, as <sandbox>/default"))
	} else {
		errs = append(errs, validateHandle(spec.Handle, path.Child("handle"))...)
	}
	if by := spec.RequestedBy; by != nil {
		errs = append(errs, validateRequestedBy(by, path.Child("requestedBy"))...)
	}
	if spec.WaitSeconds != nil && *spec.WaitSeconds < 0 {
		errs = append(errs, field.Invalid(path.Child("waitSeconds"), *spec.WaitSeconds, "must not be negative: 0 does not wait, absent waits as long as one call may"))
	}
	return errs
}

// ValidateSandboxRelease checks the body of a release; anyClaim says that the URL names no claim.
func ValidateSandboxRelease(release *sandbox.SandboxRelease, anyClaim bool) field.ErrorList {
	spec, path := &release.Spec, field.NewPath("spec")
	if anyClaim {
		errs := validateRuntimeName(spec.AgentRuntime, path.Child("agentRuntime"))
		errs = append(errs, validateSessionID(spec.SessionID, path.Child("sessionID"))...)
		if spec.UID != "" {
			errs = append(errs, field.Forbidden(path.Child("uid"), "means one claim: put that claim's name in the URL in place of -"))
		}
		return errs
	}
	var errs field.ErrorList
	for name, value := range map[string]string{"agentRuntime": spec.AgentRuntime, "sessionID": spec.SessionID} {
		if value != "" {
			errs = append(errs, field.Forbidden(path.Child(name), "means a session's claims: put - in the URL in place of the claim's name"))
		}
	}
	return errs
}
