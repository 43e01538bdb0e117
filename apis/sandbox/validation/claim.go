// Package validation says what a valid object of the sandbox.omnia group is, as far as the tags of v1alpha1 do not say it:
// lengths, counts, enumerations and unique keys stand there, and the store checks them after what is checked here. It looks
// at one object (and the one that it replaces) alone: it refuses to know who asks, what else exists, or what time it is.
package validation

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// MaxClaimNameLength leaves room for "-sandbox" in a DNS-1035 label, which names the claim's Service.
const MaxClaimNameLength = 63 - len("-sandbox")

const (
	minEnrolment = time.Minute
	maxEnrolment = 20 * time.Minute
)

// ValidateClaimName says why a claim may not bear a name; empty if it may.
func ValidateClaimName(name string, prefix bool) []string {
	if prefix {
		return nil // a generated name is checked whole, once its random end is known
	}
	if len(name) > MaxClaimNameLength {
		return []string{fmt.Sprintf("must be no more than %d characters, because <name>-sandbox names a Service", MaxClaimNameLength)}
	}
	return utilvalidation.IsDNS1035Label(name)
}

// ValidateSandboxClaim checks a new claim.
func ValidateSandboxClaim(claim *sandbox.SandboxClaim) field.ErrorList {
	errs := validateMeta(&claim.ObjectMeta, true, ValidateClaimName)
	return append(errs, validateClaimSpec(&claim.Spec, field.NewPath("spec"))...)
}

// ValidateSandboxClaimUpdate checks a changed claim: its spec never changes.
func ValidateSandboxClaimUpdate(claim, old *sandbox.SandboxClaim) field.ErrorList {
	errs := validateMetaUpdate(&claim.ObjectMeta, &old.ObjectMeta)
	if !apiequality.Semantic.DeepEqual(claim.Spec, old.Spec) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "is immutable: delete the claim and create it again"))
	}
	return errs
}

// ValidateSandboxClaimStatusUpdate checks a changed status.
func ValidateSandboxClaimStatusUpdate(claim, old *sandbox.SandboxClaim) field.ErrorList {
	errs := validateMetaUpdate(&claim.ObjectMeta, &old.ObjectMeta)
	at := field.NewPath("status")
	errs = append(errs, validateStatusTimes(&claim.Status, at)...)
	if class := claim.Status.Class; class != nil && len(class.Ports) == 0 {
		errs = append(errs, field.Required(at.Child("class", "ports"), "a class has at least one port: copy the class whole"))
	}
	return append(errs, uncovered(metav1validation.ValidateConditions(claim.Status.Conditions, at.Child("conditions")))...)
}

func validateMeta(meta *metav1.ObjectMeta, namespaced bool, name apivalidation.ValidateNameFunc) field.ErrorList {
	at := field.NewPath("metadata")
	errs := uncovered(inOrder(apivalidation.ValidateObjectMeta(meta, namespaced, name, at)))
	return append(errs, validateFieldOwners(meta.ManagedFields, at.Child("managedFields"))...)
}

func validateMetaUpdate(meta, old *metav1.ObjectMeta) field.ErrorList {
	at := field.NewPath("metadata")
	errs := uncovered(inOrder(apivalidation.ValidateObjectMetaUpdate(meta, old, at)))
	return append(errs, validateFieldOwners(meta.ManagedFields, at.Child("managedFields"))...)
}

// inOrder sorts what was found by ranging over a map, so that the same object is always refused in the same words.
func inOrder(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// uncovered takes back what apimachinery says of its own errors, that tags refuse the same: validation-gen does not read
// metav1's tags outside Kubernetes' tree, and for each such error the store would log that the two differ.
func uncovered(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		err.CoveredByDeclarative = false
	}
	return errs
}

// invalid is one error for all that is wrong with a value, or none.
func invalid(at *field.Path, value any, msgs []string) field.ErrorList {
	if len(msgs) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, strings.Join(msgs, "; "))}
}

func validateClassName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "name the class that says what to build")}
	}
	return invalid(at, name, apivalidation.NameIsDNSSubdomain(name, false))
}

func validateClaimSpec(spec *sandbox.SandboxClaimSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case spec.AgentRuntimeRef == nil && spec.Enrolment == nil:
		errs = append(errs, field.Required(at.Child("agentRuntimeRef"), "name the AgentRuntime that the sandbox belongs to"))
	case spec.AgentRuntimeRef != nil && spec.Enrolment != nil:
		errs = append(errs, field.Forbidden(at.Child("agentRuntimeRef"), "may not be set together with enrolment: drop one of the two"))
	case spec.AgentRuntimeRef != nil:
		errs = append(errs, validateRuntimeName(spec.AgentRuntimeRef.Name, at.Child("agentRuntimeRef", "name"))...)
	}
	errs = append(errs, validateClassName(spec.ClassRef.Name, at.Child("classRef", "name"))...)
	errs = append(errs, validateSessionID(spec.SessionID, at.Child("sessionID"))...)
	if spec.Handle != "" {
		errs = append(errs, validateHandle(spec.Handle, at.Child("handle"))...)
	}
	if spec.TargetPath != "" {
		errs = append(errs, validateContentPath(spec.TargetPath, at.Child("targetPath"))...)
	}
	errs = append(errs, validateMounts(spec, at)...)
	if by := spec.RequestedBy; by != nil {
		errs = append(errs, validateRequestedBy(by, at.Child("requestedBy"))...)
	}
	for i, b := range spec.Connections {
		binding := at.Child("connections").Index(i)
		if b.Role == "" {
			errs = append(errs, field.Required(binding.Child("role"), "name the class's role"))
		}
		if b.Connection == "" {
			errs = append(errs, field.Required(binding.Child("connection"), "name the Connection"))
		}
	}
	if spec.Enrolment != nil {
		errs = append(errs, validateEnrolment(spec, at)...)
	}
	return errs
}

func validateRuntimeName(name string, at *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, "name the AgentRuntime that the sandbox belongs to")}
	case len(name) > utilvalidation.LabelValueMaxLength:
		return field.ErrorList{field.TooLong(at, name, utilvalidation.LabelValueMaxLength)} // it becomes a label
	}
	return invalid(at, name, apivalidation.NameIsDNSSubdomain(name, false))
}

func validateSessionID(id string, at *field.Path) field.ErrorList {
	if id == "" {
		return field.ErrorList{field.Required(at, "name the session that the sandbox is for")}
	}
	return becomesLabel(id, at)
}

func becomesLabel(value string, at *field.Path) field.ErrorList {
	if msgs := utilvalidation.IsValidLabelValue(value); len(msgs) > 0 {
		return field.ErrorList{field.Invalid(at, value, "becomes a pod's label: "+strings.Join(msgs, "; "))}
	}
	return nil
}

// validateHandle bounds the whole too: two labels of at most 63 characters and a slash are at most 127.
func validateHandle(handle string, at *field.Path) field.ErrorList {
	name, instance, found := strings.Cut(handle, "/")
	if !found {
		return field.ErrorList{field.Invalid(at, handle, "must be <sandbox>/<instance>, two DNS labels, for example shell/default")}
	}
	for _, label := range []string{name, instance} {
		if msgs := utilvalidation.IsDNS1123Label(label); len(msgs) > 0 {
			return field.ErrorList{field.Invalid(at, handle,
				fmt.Sprintf("must be <sandbox>/<instance>, two DNS labels: %q: %s", label, strings.Join(msgs, "; ")))}
		}
	}
	return nil
}

// validateContentPath holds a path to what lies below the workspace's content.
func validateContentPath(p string, at *field.Path) field.ErrorList {
	if path.IsAbs(p) || path.Clean(p) == "." || climbs(p) {
		return field.ErrorList{field.Invalid(at, p, "must lie below the workspace's content, for example projects/checkout-service: no leading /, no .., no control characters")}
	}
	return nil
}

func climbs(p string) bool {
	return slices.Contains(strings.Split(p, "/"), "..") || strings.ContainsFunc(p, unicode.IsControl)
}

func validateMounts(spec *sandbox.SandboxClaimSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Mount != nil && len(spec.Mounts) > 0 {
		return append(errs, field.Forbidden(at.Child("mount"), "may not be set together with mounts, its newer form: drop mount"))
	}
	if spec.Mount != nil {
		errs = append(errs, validateMount(spec.Mount, at.Child("mount"))...)
	}
	for i := range spec.Mounts {
		errs = append(errs, validateMount(&spec.Mounts[i], at.Child("mounts").Index(i))...)
	}
	return errs
}

func validateMount(m *sandbox.SandboxMount, at *field.Path) field.ErrorList {
	errs := validateRoleAndID(m.Role, m.ID, at)
	switch {
	case isConfigured(m.Role) && m.Path == "":
		errs = append(errs, field.Required(at.Child("path"), "a configured role needs the directory that it resolved to"))
	case isConfigured(m.Role):
		errs = append(errs, validateContentPath(m.Path, at.Child("path"))...)
	default:
		if m.Path != "" {
			errs = append(errs, onlyConfigured(at.Child("path")))
		}
		if m.MustExist {
			errs = append(errs, onlyConfigured(at.Child("mustExist")))
		}
	}
	return errs
}

// validateRoleAndID checks what a claim's mount and a declared one have in common.
func validateRoleAndID(role, id string, at *field.Path) field.ErrorList {
	if !isConfigured(role) {
		if id != "" {
			return field.ErrorList{onlyConfigured(at.Child("id"))}
		}
		return nil
	}
	errs := invalid(at.Child("role"), role, utilvalidation.IsDNS1123Label(role))
	switch {
	case id == "":
		errs = append(errs, field.Required(at.Child("id"), "a configured role needs the id of what it mounts"))
	case id == ".", strings.Contains(id, "/"), climbs(id):
		errs = append(errs, field.Invalid(at.Child("id"), id, "becomes one segment of a path: it may not be . or .. nor hold a / or a control character"))
	}
	return errs
}

// isConfigured says whether a mount role is neither of the two that are built in; an unset one is scratch.
func isConfigured(role string) bool {
	return role != "" && role != sandbox.MountRoleScratch && role != sandbox.MountRoleSession
}

func onlyConfigured(at *field.Path) *field.Error {
	return field.Forbidden(at, "may be set with a configured role only, not with scratch or session: drop it")
}

func validateEnrolment(spec *sandbox.SandboxClaimSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	e := spec.Enrolment
	if e.MaxDuration != nil && (e.MaxDuration.Duration < minEnrolment || e.MaxDuration.Duration > maxEnrolment) {
		errs = append(errs, field.Invalid(at.Child("enrolment", "maxDuration"), e.MaxDuration.Duration.String(), "must lie between 1m and 20m"))
	}
	for _, workspace := range []struct {
		name string
		set  bool
	}{{"mounts", len(spec.Mounts) > 0}, {"mount", spec.Mount != nil}, {"targetPath", spec.TargetPath != ""}} {
		if workspace.set {
			errs = append(errs, field.Forbidden(at.Child(workspace.name), "an enrolment has no workspace: drop it"))
		}
	}
	if e.Connection == "" {
		return append(errs, field.Required(at.Child("enrolment", "connection"), "name the Connection"))
	}
	if n := len(spec.Connections); n != 1 {
		errs = append(errs, field.Invalid(at.Child("connections"), n, "an enrolment binds exactly the one Connection that enrolment.connection names"))
	} else if bound := spec.Connections[0].Connection; bound != "" && bound != e.Connection {
		errs = append(errs, field.Invalid(at.Child("connections").Index(0).Child("connection"), bound, "must be the Connection that enrolment.connection names"))
	}
	return errs
}
