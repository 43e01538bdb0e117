package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// proxyVariables belong to the claim's egress proxy; a class may not set them, in any case of letters.
var proxyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "FTP_PROXY"}

// ValidateSandboxClass checks a new class of either kind.
func ValidateSandboxClass(meta *metav1.ObjectMeta, spec *sandbox.SandboxClassSpec, namespaced bool) field.ErrorList {
	errs := validateMeta(meta, namespaced, apivalidation.NameIsDNSSubdomain)
	return append(errs, validateClassSpec(spec, field.NewPath("spec"))...)
}

// ValidateSandboxClassUpdate checks a changed class: its ports and whether it has a workspace never change, since live claims
// depend on both. What the stored class would be refused for as well is let be: it was valid when it was written, and must stay
// changeable, down to the finalizer that keeps it from going.
func ValidateSandboxClassUpdate(meta, oldMeta *metav1.ObjectMeta, spec, old *sandbox.SandboxClassSpec) field.ErrorList {
	errs := validateMetaUpdate(meta, oldMeta)
	at := field.NewPath("spec")
	errs = append(errs, beyond(validateClassSpec(old, at), validateClassSpec(spec, at))...)
	if !slices.Equal(spec.Ports, old.Ports) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "ports"), "are immutable, because live claims depend on them: create a new class"))
	}
	if hasWorkspace(spec) != hasWorkspace(old) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "filesystem", "workspace"), "may not be added or removed, because live claims depend on it: create a new class"))
	}
	return errs
}

// beyond gives the errors that are not among the stored object's.
func beyond(stored, errs field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return slices.ContainsFunc(stored, func(s *field.Error) bool { return s.Error() == err.Error() })
	})
}

func hasWorkspace(spec *sandbox.SandboxClassSpec) bool {
	return spec.Filesystem != nil && spec.Filesystem.Workspace != nil
}

func validateClassSpec(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	errs := validateImage(spec, at)
	errs = append(errs, validateEnv(spec.Env, at.Child("env"))...)
	errs = append(errs, validatePorts(spec.Ports, at.Child("ports"))...)
	errs = append(errs, validateReadiness(spec, at.Child("readiness"))...)
	errs = append(errs, validateFilesystem(spec.Filesystem, at.Child("filesystem"))...)
	errs = append(errs, validateResources(spec, at.Child("resources"))...)
	errs = append(errs, validatePlacement(spec, at)...)
	errs = append(errs, validateClassMounts(spec, at.Child("mounts"))...)
	errs = append(errs, validateClassConnections(spec, at.Child("connections"))...)
	if spec.View != nil {
		errs = append(errs, namesPort(spec, spec.View.Port, at.Child("view", "port"))...)
	}
	if spec.Enrolment != nil {
		errs = append(errs, validateClassEnrolment(spec, at)...)
	}
	return errs
}

func validateImage(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch image := strings.TrimSpace(spec.Image); {
	case image == "":
		errs = append(errs, field.Required(at.Child("image"), "name the container image"))
	case image != spec.Image:
		errs = append(errs, field.Invalid(at.Child("image"), spec.Image, "may not begin or end with white space: drop it"))
	}
	policies := []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	if !slices.Contains(policies, spec.ImagePullPolicy) {
		errs = append(errs, field.NotSupported(at.Child("imagePullPolicy"), spec.ImagePullPolicy, policies))
	}
	return errs
}

func validateEnv(env []sandbox.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, e := range env {
		name := at.Index(i).Child("name")
		switch {
		case e.Name == "":
			errs = append(errs, field.Required(name, "name the variable"))
		case slices.Contains(proxyVariables, strings.ToUpper(e.Name)):
			errs = append(errs, field.Forbidden(name, e.Name+" belongs to the sandbox's egress proxy: drop it, and bind a Connection"))
		default:
			errs = append(errs, invalid(name, e.Name, utilvalidation.IsEnvVarName(e.Name))...)
		}
	}
	return errs
}

func validatePorts(ports []sandbox.ClassPort, at *field.Path) field.ErrorList {
	if len(ports) == 0 {
		return field.ErrorList{field.Required(at, "name at least one port that the sandbox serves")}
	}
	var errs field.ErrorList
	seen := map[int32]bool{}
	for i, p := range ports {
		if p.Name == "" {
			errs = append(errs, field.Required(at.Index(i).Child("name"), "name the port: its name is what an address is found by"))
		} else {
			errs = append(errs, invalid(at.Index(i).Child("name"), p.Name, utilvalidation.IsValidPortName(p.Name))...)
		}
		if seen[p.Port] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("port"), p.Port))
		}
		seen[p.Port] = true
	}
	return errs
}

func validateReadiness(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	r := spec.Readiness
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if r.Port != "" {
		errs = append(errs, namesPort(spec, r.Port, at.Child("port"))...)
	}
	if r.HTTPGet != nil && (!strings.HasPrefix(r.HTTPGet.Path, "/") || climbs(r.HTTPGet.Path)) {
		errs = append(errs, field.Invalid(at.Child("httpGet", "path"), r.HTTPGet.Path, "must begin with /, for example /healthz, without .. or control characters"))
	}
	return errs
}

func validateClassMounts(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	beyondScratch := func(m sandbox.ClassMount) bool { return m.Role != sandbox.MountRoleScratch }
	if !hasWorkspace(spec) && slices.ContainsFunc(spec.Mounts, beyondScratch) {
		return field.ErrorList{field.Forbidden(at, "a class without filesystem.workspace has nowhere to mount: add the workspace or drop mounts")}
	}
	var errs field.ErrorList
	for i, m := range spec.Mounts {
		if m.Role == sandbox.MountRoleSession {
			errs = append(errs, field.Invalid(at.Index(i).Child("role"), m.Role, "needs no entry: a session workspace is mounted where a scratch mount is"))
		}
	}
	return errs
}

func validateClassConnections(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range spec.Connections {
		if c.Role == "" {
			errs = append(errs, field.Required(at.Index(i).Child("role"), "name the role that the class offers"))
		}
		if c.Session != nil {
			session := at.Index(i).Child("session")
			errs = append(errs, validateStateFile(spec.Filesystem, c.Session.StateFile, session.Child("stateFile"))...)
			errs = append(errs, validateTemplates(c.Session.Args, sessionFields, session.Child("args"))...)
		}
	}
	return errs
}

// validateClassEnrolment wants what an enrolment cannot run without, so that no claim of the class fails for it.
func validateClassEnrolment(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.View == nil {
		errs = append(errs, field.Required(at.Child("view"), "an enrolment is done in the sandbox's view: name the port that serves it, or drop enrolment"))
	}
	if !slices.ContainsFunc(spec.Connections, func(c sandbox.ClassConnection) bool { return c.Session != nil }) {
		errs = append(errs, field.Required(at.Child("connections"), "an enrolment binds a role with a session (session: {} will do): add one, or drop enrolment"))
	}
	if hasWorkspace(spec) {
		errs = append(errs, field.Forbidden(at.Child("filesystem", "workspace"), "an enrolment has no workspace: give enrolments a class of their own"))
	}
	return append(errs, validateTemplates(spec.Enrolment.Args, enrolmentFields, at.Child("enrolment", "args"))...)
}

// namesPort wants one of the class's ports. A class without any is refused for that alone.
func namesPort(spec *sandbox.SandboxClassSpec, name string, at *field.Path) field.ErrorList {
	var names []string
	for _, p := range spec.Ports {
		names = append(names, p.Name)
	}
	if len(names) == 0 || slices.Contains(names, name) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, name, names)}
}
