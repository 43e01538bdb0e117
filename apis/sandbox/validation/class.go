package validation

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

const (
	maxArgs    = 64
	maxEnv     = 64
	maxPorts   = 8
	maxScratch = 8
)

// proxyVariables belong to the claim's egress proxy; a class may not set them, in any case of letters.
var proxyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "FTP_PROXY"}

// ValidateSandboxClass checks a new class of either kind.
func ValidateSandboxClass(meta *metav1.ObjectMeta, spec *sandbox.SandboxClassSpec, namespaced bool) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(meta, namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateClassSpec(spec, field.NewPath("spec"))...)
}

// ValidateSandboxClassUpdate checks a changed class: its ports and whether it has a workspace never change, since live claims depend on both.
func ValidateSandboxClassUpdate(meta, oldMeta *metav1.ObjectMeta, spec, old *sandbox.SandboxClassSpec) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(meta, oldMeta, field.NewPath("metadata"))
	errs = append(errs, validateClassSpec(spec, field.NewPath("spec"))...)
	if !slices.Equal(spec.Ports, old.Ports) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "ports"), "are immutable, because live claims depend on them: create a new class"))
	}
	if hasWorkspace(spec) != hasWorkspace(old) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "filesystem", "workspace"), "may not be added or removed, because live claims depend on it: create a new class"))
	}
	return errs
}

func hasWorkspace(spec *sandbox.SandboxClassSpec) bool {
	return spec.Filesystem != nil && spec.Filesystem.Workspace != nil
}

func validateClassSpec(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(spec.Image) == "" {
		errs = append(errs, field.Required(at.Child("image"), "name the container image"))
	}
	policies := []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	if !slices.Contains(policies, spec.ImagePullPolicy) {
		errs = append(errs, field.NotSupported(at.Child("imagePullPolicy"), spec.ImagePullPolicy, policies))
	}
	if len(spec.Args) > maxArgs {
		errs = append(errs, field.TooMany(at.Child("args"), len(spec.Args), maxArgs))
	}
	errs = append(errs, validateEnv(spec.Env, at.Child("env"))...)
	errs = append(errs, validatePorts(spec.Ports, at.Child("ports"))...)
	errs = append(errs, validateReadiness(spec, at.Child("readiness"))...)
	errs = append(errs, validateFilesystem(spec.Filesystem, at.Child("filesystem"))...)
	errs = append(errs, validateResources(spec, at.Child("resources"))...)
	errs = append(errs, validatePlacement(spec, at)...)
	errs = append(errs, validateClassMounts(spec, at.Child("mounts"))...)
	if spec.View != nil && !hasPort(spec, spec.View.Port) {
		errs = append(errs, unknownPort(spec, spec.View.Port, at.Child("view", "port")))
	}
	return errs
}

func validateEnv(env []sandbox.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(env) > maxEnv {
		errs = append(errs, field.TooMany(at, len(env), maxEnv))
	}
	seen := map[string]bool{}
	for i, e := range env {
		name := at.Index(i).Child("name")
		for _, msg := range utilvalidation.IsEnvVarName(e.Name) {
			errs = append(errs, field.Invalid(name, e.Name, msg))
		}
		if slices.Contains(proxyVariables, strings.ToUpper(e.Name)) {
			errs = append(errs, field.Forbidden(name, fmt.Sprintf("%s belongs to the sandbox's egress proxy: bind a Connection instead", e.Name)))
		}
		if seen[e.Name] {
			errs = append(errs, field.Duplicate(name, e.Name))
		}
		seen[e.Name] = true
	}
	return errs
}

func validatePorts(ports []sandbox.ClassPort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case len(ports) == 0:
		errs = append(errs, field.Required(at, "name at least one port that the sandbox serves"))
	case len(ports) > maxPorts:
		errs = append(errs, field.TooMany(at, len(ports), maxPorts))
	}
	names, numbers := map[string]bool{}, map[int32]bool{}
	for i, p := range ports {
		for _, msg := range utilvalidation.IsValidPortName(p.Name) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), p.Name, msg))
		}
		for _, msg := range utilvalidation.IsValidPortNum(int(p.Port)) {
			errs = append(errs, field.Invalid(at.Index(i).Child("port"), p.Port, msg))
		}
		if names[p.Name] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), p.Name))
		}
		if numbers[p.Port] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("port"), p.Port))
		}
		names[p.Name], numbers[p.Port] = true, true
	}
	return errs
}

func validateReadiness(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	r := spec.Readiness
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if r.Port != "" && !hasPort(spec, r.Port) {
		errs = append(errs, unknownPort(spec, r.Port, at.Child("port")))
	}
	if r.HTTPGet != nil && !strings.HasPrefix(r.HTTPGet.Path, "/") {
		errs = append(errs, field.Invalid(at.Child("httpGet", "path"), r.HTTPGet.Path, "must begin with /"))
	}
	return errs
}

func validateFilesystem(fs *sandbox.Filesystem, at *field.Path) field.ErrorList {
	if fs == nil {
		return nil
	}
	var errs field.ErrorList
	mounted := map[string]bool{}
	mount := func(p string, at *field.Path) {
		errs = append(errs, validateMountPath(p, at)...)
		if mounted[path.Clean(p)] {
			errs = append(errs, field.Duplicate(at, p))
		}
		mounted[path.Clean(p)] = true
	}
	if fs.Workspace != nil {
		mount(fs.Workspace.MountPath, at.Child("workspace", "mountPath"))
	}
	if len(fs.Scratch) > maxScratch {
		errs = append(errs, field.TooMany(at.Child("scratch"), len(fs.Scratch), maxScratch))
	}
	names := map[string]bool{}
	for i, v := range fs.Scratch {
		at := at.Child("scratch").Index(i)
		for _, msg := range utilvalidation.IsDNS1123Label(v.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, msg))
		}
		if v.Name == v1alpha1.ReservedScratchName {
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, "is the sandbox's own /tmp: choose another name"))
		}
		if names[v.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), v.Name))
		}
		names[v.Name] = true
		mount(v.MountPath, at.Child("mountPath"))
		if v.SizeLimit.Sign() <= 0 {
			errs = append(errs, field.Invalid(at.Child("sizeLimit"), v.SizeLimit.String(), "is required and must be positive, for example 1Gi"))
		}
		if v.Medium != sandbox.ScratchMediumDisk && v.Medium != sandbox.ScratchMediumMemory {
			errs = append(errs, field.NotSupported(at.Child("medium"), v.Medium, []sandbox.ScratchMedium{sandbox.ScratchMediumDisk, sandbox.ScratchMediumMemory}))
		}
	}
	return errs
}

func validateMountPath(p string, at *field.Path) field.ErrorList {
	switch {
	case p == "":
		return field.ErrorList{field.Required(at, "say where in the container it appears")}
	case !path.IsAbs(p), path.Clean(p) == "/", strings.Contains(p, ":"), slices.Contains(strings.Split(p, "/"), ".."):
		return field.ErrorList{field.Invalid(at, p, "must be an absolute path below /, without .. or :")}
	}
	return nil
}

func validateResources(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !spec.Trusted {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if _, set := spec.Resources.Limits[name]; !set {
				errs = append(errs, field.Required(at.Child("limits").Key(string(name)),
					"the pod runs agent-directed code: limit both cpu and memory, or set trusted for first-party code under a LimitRange"))
			}
		}
	}
	if len(spec.Resources.Claims) > 0 {
		errs = append(errs, field.Forbidden(at.Child("claims"), "a sandbox has no resource claims: drop it"))
	}
	for name, q := range spec.Resources.Limits {
		errs = append(errs, validateQuantity(name, q, at.Child("limits"))...)
	}
	for name, q := range spec.Resources.Requests {
		errs = append(errs, validateQuantity(name, q, at.Child("requests"))...)
		if limit, set := spec.Resources.Limits[name]; set && q.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(at.Child("requests").Key(string(name)), q.String(), "must not be above the limit "+limit.String()))
		}
	}
	return errs
}

func validateQuantity(name corev1.ResourceName, q resource.Quantity, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsQualifiedName(string(name)) {
		errs = append(errs, field.Invalid(at, name, msg))
	}
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Key(string(name)), q.String(), "must not be negative"))
	}
	return errs
}

func validatePlacement(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name := spec.RuntimeClassName; name != nil {
		for _, msg := range apivalidation.NameIsDNSSubdomain(*name, false) {
			errs = append(errs, field.Invalid(at.Child("runtimeClassName"), *name, msg))
		}
	}
	errs = append(errs, metav1validation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector"))...)
	for i, t := range spec.Tolerations {
		at := at.Child("tolerations").Index(i)
		if t.Key != "" {
			errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual, corev1.TolerationOpExists:
		default:
			errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
		if t.Key == "" && t.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "must be Exists when key is empty, which tolerates every taint"))
		}
	}
	return errs
}

func validateClassMounts(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Mounts) > 0 && !hasWorkspace(spec) {
		errs = append(errs, field.Forbidden(at, "a class without filesystem.workspace has nowhere to mount: add the workspace or drop mounts"))
	}
	seen := map[string]bool{}
	for i, m := range spec.Mounts {
		role := at.Index(i).Child("role")
		for _, msg := range utilvalidation.IsDNS1123Label(m.Role) {
			errs = append(errs, field.Invalid(role, m.Role, msg))
		}
		if m.Role == sandbox.MountRoleSession {
			errs = append(errs, field.Invalid(role, m.Role, "needs no entry: a session workspace is mounted where a scratch mount is"))
		}
		if seen[m.Role] {
			errs = append(errs, field.Duplicate(role, m.Role))
		}
		seen[m.Role] = true
		if m.Access != sandbox.MountReadWrite && m.Access != sandbox.MountReadOnly {
			errs = append(errs, field.NotSupported(at.Index(i).Child("access"), m.Access, []sandbox.MountAccess{sandbox.MountReadWrite, sandbox.MountReadOnly}))
		}
	}
	return errs
}

func hasPort(spec *sandbox.SandboxClassSpec, name string) bool {
	return slices.ContainsFunc(spec.Ports, func(p sandbox.ClassPort) bool { return p.Name == name })
}

func unknownPort(spec *sandbox.SandboxClassSpec, name string, at *field.Path) *field.Error {
	var names []string
	for _, p := range spec.Ports {
		names = append(names, p.Name)
	}
	return field.NotSupported(at, name, names)
}
