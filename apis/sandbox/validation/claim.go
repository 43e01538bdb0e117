// Package validation says what a valid object of the sandbox.omnia group is. It looks at one object (and the one that it
// replaces) alone: it refuses to know who asks, what else exists, or what time it is.
package validation

import (
	"fmt"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// MaxClaimNameLength leaves room for "-sandbox" in a DNS-1035 label, which names the claim's Service.
const MaxClaimNameLength = 63 - len("-sandbox")

const (
	maxHandleLength     = 127
	maxTargetPathLength = 512
	maxReferenceLength  = 253
	maxSubjectLength    = 256
	maxPathLength       = 1024
	maxBindings         = 16
	minEnrolment        = time.Minute
	maxEnrolment        = 20 * time.Minute
)

// ValidateClaimName says why a claim may not bear a name; empty if it may.
func ValidateClaimName(name string, prefix bool) []string {
	if prefix {
		return nil // a generated name is checked whole, once its random end is known
	}
	msgs := utilvalidation.IsDNS1035Label(name)
	if len(name) > MaxClaimNameLength {
		msgs = append(msgs, fmt.Sprintf("must be no more than %d characters, because <name>-sandbox names a Service", MaxClaimNameLength))
	}
	return msgs
}

// ValidateSandboxClaim checks a new claim.
func ValidateSandboxClaim(claim *sandbox.SandboxClaim) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&claim.ObjectMeta, true, ValidateClaimName, field.NewPath("metadata"))
	return append(errs, validateClaimSpec(&claim.Spec, field.NewPath("spec"))...)
}

// ValidateSandboxClaimUpdate checks a changed claim: its spec never changes.
func ValidateSandboxClaimUpdate(claim, old *sandbox.SandboxClaim) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&claim.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if !apiequality.Semantic.DeepEqual(claim.Spec, old.Spec) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "is immutable: delete the claim and create it again"))
	}
	return errs
}

// ValidateSandboxClaimStatusUpdate checks a changed status.
func ValidateSandboxClaimStatusUpdate(claim, old *sandbox.SandboxClaim) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&claim.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("status")
	switch claim.Status.Phase {
	case "", sandbox.PhaseQueued, sandbox.PhasePending, sandbox.PhaseBound, sandbox.PhaseCompleted, sandbox.PhaseFailed:
	default:
		errs = append(errs, field.NotSupported(path.Child("phase"), claim.Status.Phase, []sandbox.Phase{
			sandbox.PhaseQueued, sandbox.PhasePending, sandbox.PhaseBound, sandbox.PhaseCompleted, sandbox.PhaseFailed}))
	}
	if wait := claim.Status.Wait; wait != nil && wait.DurationSeconds < 0 {
		errs = append(errs, field.Invalid(path.Child("wait", "durationSeconds"), wait.DurationSeconds, "must not be negative"))
	}
	return append(errs, metav1validation.ValidateConditions(claim.Status.Conditions, path.Child("conditions"))...)
}

func validateClaimSpec(spec *sandbox.SandboxClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case spec.AgentRuntimeRef == nil && spec.Enrolment == nil:
		errs = append(errs, field.Required(path.Child("agentRuntimeRef"), "name the AgentRuntime that the sandbox belongs to"))
	case spec.AgentRuntimeRef != nil && spec.Enrolment != nil:
		errs = append(errs, field.Forbidden(path.Child("agentRuntimeRef"), "may not be set together with enrolment: drop one of the two"))
	case spec.AgentRuntimeRef != nil:
		errs = append(errs, validateRuntimeName(spec.AgentRuntimeRef.Name, path.Child("agentRuntimeRef", "name"))...)
	}
	errs = append(errs, validateClassReference(spec.ClassRef, path.Child("classRef"))...)
	errs = append(errs, validateSessionID(spec.SessionID, path.Child("sessionID"))...)
	if spec.Handle != "" {
		errs = append(errs, validateHandle(spec.Handle, path.Child("handle"))...)
	}
	errs = append(errs, atMost(spec.TargetPath, maxTargetPathLength, path.Child("targetPath"))...)
	errs = append(errs, validateMounts(spec, path)...)
	if by := spec.RequestedBy; by != nil {
		errs = append(errs, validateRequestedBy(by, path.Child("requestedBy"))...)
	}
	errs = append(errs, atMost(spec.DeclaredBy, maxSubjectLength, path.Child("declaredBy"))...)
	if spec.MaxInstances != nil && *spec.MaxInstances < 1 {
		errs = append(errs, field.Invalid(path.Child("maxInstances"), *spec.MaxInstances, "must be at least 1"))
	}
	errs = append(errs, validateBindings(spec.Connections, path.Child("connections"))...)
	if spec.Enrolment != nil {
		errs = append(errs, validateEnrolment(spec, path)...)
	}
	return errs
}

func validateRuntimeName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "name the AgentRuntime that the sandbox belongs to")}
	}
	var errs field.ErrorList
	if len(name) > utilvalidation.LabelValueMaxLength {
		errs = append(errs, field.TooLong(path, name, utilvalidation.LabelValueMaxLength))
	}
	for _, msg := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}

func validateClassReference(ref sandbox.ClassReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "name the class that says what to build"))
	} else {
		for _, msg := range apivalidation.NameIsDNSSubdomain(ref.Name, false) {
			errs = append(errs, field.Invalid(path.Child("name"), ref.Name, msg))
		}
	}
	if ref.Kind != sandbox.SandboxClassKind && ref.Kind != sandbox.ClusterSandboxClassKind {
		errs = append(errs, field.NotSupported(path.Child("kind"), ref.Kind,
			[]sandbox.ClassKind{sandbox.SandboxClassKind, sandbox.ClusterSandboxClassKind}))
	}
	return errs
}

func validateSessionID(id string, path *field.Path) field.ErrorList {
	if id == "" {
		return field.ErrorList{field.Required(path, "name the session that the sandbox is for")}
	}
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsValidLabelValue(id) {
		errs = append(errs, field.Invalid(path, id, "becomes a pod's label: "+msg))
	}
	return errs
}

func validateHandle(handle string, path *field.Path) field.ErrorList {
	errs := atMost(handle, maxHandleLength, path)
	name, instance, found := strings.Cut(handle, "/")
	if !found {
		return append(errs, field.Invalid(path, handle, "must be <sandbox>/<instance>, for example "+handle+"/default"))
	}
	for _, label := range []string{name, instance} {
		for _, msg := range utilvalidation.IsDNS1123Label(label) {
			errs = append(errs, field.Invalid(path, handle, fmt.Sprintf("must be <sandbox>/<instance>, two DNS labels: %q: %s", label, msg)))
		}
	}
	return errs
}

func validateMounts(spec *sandbox.SandboxClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Mounts) > 1 {
		errs = append(errs, field.TooMany(path.Child("mounts"), len(spec.Mounts), 1))
	}
	if spec.Mount != nil {
		if len(spec.Mounts) > 0 {
			errs = append(errs, field.Forbidden(path.Child("mount"), "may not be set together with mounts, its newer form: drop mount"))
		}
		errs = append(errs, validateMount(spec.Mount, path.Child("mount"))...)
	}
	for i := range spec.Mounts {
		errs = append(errs, validateMount(&spec.Mounts[i], path.Child("mounts").Index(i))...)
	}
	return errs
}

func validateMount(m *sandbox.SandboxMount, path *field.Path) field.ErrorList {
	errs := atMost(m.ID, maxReferenceLength, path.Child("id"))
	errs = append(errs, atMost(m.Path, maxPathLength, path.Child("path"))...)
	switch m.Role {
	case "", sandbox.MountRoleScratch, sandbox.MountRoleSession:
		for name, set := range map[string]bool{"id": m.ID != "", "path": m.Path != "", "mustExist": m.MustExist} {
			if set {
				errs = append(errs, field.Forbidden(path.Child(name), "may be set with a configured role only, not with scratch or session"))
			}
		}
	default:
		for _, msg := range utilvalidation.IsDNS1123Label(m.Role) {
			errs = append(errs, field.Invalid(path.Child("role"), m.Role, msg))
		}
		if m.ID == "" {
			errs = append(errs, field.Required(path.Child("id"), "a configured role needs the id of what it mounts"))
		}
		if m.Path == "" {
			errs = append(errs, field.Required(path.Child("path"), "a configured role needs the directory that it resolved to"))
		}
	}
	return errs
}

func validateRequestedBy(by *sandbox.RequestedBy, path *field.Path) field.ErrorList {
	errs := atMost(by.Subject, maxReferenceLength, path.Child("subject"))
	return append(errs, atMost(by.Agent, maxReferenceLength, path.Child("agent"))...)
}

func validateBindings(bindings []sandbox.ConnectionBinding, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(bindings) > maxBindings {
		errs = append(errs, field.TooMany(path, len(bindings), maxBindings))
	}
	seen := map[string]bool{}
	for i, b := range bindings {
		at := path.Index(i)
		if b.Role == "" {
			errs = append(errs, field.Required(at.Child("role"), "name the class's role"))
		} else if seen[b.Role] {
			errs = append(errs, field.Duplicate(at.Child("role"), b.Role))
		}
		seen[b.Role] = true
		errs = append(errs, validateConnectionName(b.Connection, at.Child("connection"))...)
	}
	return errs
}

func validateConnectionName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "name the Connection")}
	}
	return atMost(name, maxReferenceLength, path)
}

func validateEnrolment(spec *sandbox.SandboxClaimSpec, path *field.Path) field.ErrorList {
	e, at := spec.Enrolment, path.Child("enrolment")
	errs := validateConnectionName(e.Connection, at.Child("connection"))
	errs = append(errs, atMost(e.Subject, maxSubjectLength, at.Child("subject"))...)
	if e.MaxDuration != nil && (e.MaxDuration.Duration < minEnrolment || e.MaxDuration.Duration > maxEnrolment) {
		errs = append(errs, field.Invalid(at.Child("maxDuration"), e.MaxDuration.Duration.String(), "must lie between 1m and 20m"))
	}
	for name, set := range map[string]bool{"mounts": len(spec.Mounts) > 0, "mount": spec.Mount != nil, "targetPath": spec.TargetPath != ""} {
		if set {
			errs = append(errs, field.Forbidden(path.Child(name), "an enrolment has no workspace: drop it"))
		}
	}
	if len(spec.Connections) != 1 || spec.Connections[0].Connection != e.Connection {
		errs = append(errs, field.Invalid(path.Child("connections"), len(spec.Connections), "an enrolment binds exactly the one Connection that enrolment.connection names"))
	}
	return errs
}

func atMost(value string, limit int, path *field.Path) field.ErrorList {
	if len(value) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLong(path, value, limit)}
}
