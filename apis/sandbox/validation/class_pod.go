package validation

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// This file holds what a class says of its pod's volumes, resources and node.

func validateFilesystem(fs *sandbox.Filesystem, at *field.Path) field.ErrorList {
	if fs == nil {
		return nil
	}
	var errs field.ErrorList
	workspace := ""
	if fs.Workspace != nil {
		errs = append(errs, validateMountPath(fs.Workspace.MountPath, at.Child("workspace", "mountPath"))...)
		workspace = path.Clean(fs.Workspace.MountPath)
	}
	mounted := map[string]bool{}
	for i, v := range fs.Scratch {
		volume := at.Child("scratch").Index(i)
		if v.Name == v1alpha1.ReservedScratchName {
			errs = append(errs, field.Invalid(volume.Child("name"), v.Name, "is the sandbox's own volume at /tmp: choose another name"))
		}
		if bad := validateMountPath(v.MountPath, volume.Child("mountPath")); len(bad) > 0 {
			errs = append(errs, bad...)
		} else if p := path.Clean(v.MountPath); mounted[p] {
			errs = append(errs, field.Duplicate(volume.Child("mountPath"), v.MountPath))
		} else if mounted[p] = true; workspace != "" && within(workspace, p) {
			errs = append(errs, field.Invalid(volume.Child("mountPath"), v.MountPath, "would hide the workspace at "+workspace+": choose a path beside or below it"))
		}
		if v.SizeLimit.Sign() <= 0 {
			errs = append(errs, field.Invalid(volume.Child("sizeLimit"), v.SizeLimit.String(), "is required and must be positive, for example 1Gi"))
		}
	}
	return errs
}

// within says whether a clean path is a folder or lies in it.
func within(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }

func validateMountPath(p string, at *field.Path) field.ErrorList {
	switch {
	case p == "":
		return field.ErrorList{field.Required(at, "say where in the container it appears, for example /workspace")}
	case !path.IsAbs(p), path.Clean(p) == "/", strings.Contains(p, ":"), climbs(p):
		return field.ErrorList{field.Invalid(at, p, "must be an absolute path below /, without .., : or control characters")}
	}
	return nil
}

func validateStateFile(fs *sandbox.Filesystem, p string, at *field.Path) field.ErrorList {
	if p == "" {
		return nil // nothing is fetched
	}
	isUnder := func(v sandbox.ScratchVolume) bool {
		file, folder := path.Clean(p), path.Clean(v.MountPath)
		return file != folder && within(file, folder)
	}
	if !path.IsAbs(p) || climbs(p) || strings.HasSuffix(p, "/") || fs == nil || !slices.ContainsFunc(fs.Scratch, isUnder) {
		return field.ErrorList{field.Invalid(at, p, "must be the absolute path of a file under one of filesystem.scratch's mount paths, without ..")}
	}
	return nil
}

func validateResources(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	limits, requests := spec.Resources.Limits, spec.Resources.Requests
	errs := validateQuantities(limits, at.Child("limits"))
	if !spec.Trusted {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if limit := limits[name]; limit.IsZero() { // a limit of 0 is none to Kubernetes
				errs = append(errs, field.Required(at.Child("limits").Key(string(name)),
					"the pod runs agent-directed code: limit both cpu and memory, or set trusted for first-party code under a LimitRange"))
			}
		}
	}
	errs = append(errs, validateQuantities(requests, at.Child("requests"))...)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		request := requests[name]
		if limit, set := limits[name]; set && request.Cmp(limit) > 0 && limit.Sign() >= 0 {
			errs = append(errs, field.Invalid(at.Child("requests").Key(string(name)), request.String(), "must not be above the limit "+limit.String()))
		}
	}
	if len(spec.Resources.Claims) > 0 {
		errs = append(errs, field.Forbidden(at.Child("claims"), "a sandbox has no resource claims: drop it"))
	}
	return errs
}

func validateQuantities(list corev1.ResourceList, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		if isContainerResource(name) {
			errs = append(errs, notNegative(q, at.Key(string(name)))...)
			continue
		}
		errs = append(errs, field.Invalid(at.Key(string(name)), string(name), "must be cpu, memory, ephemeral-storage, hugepages-<size>, or an extended resource, for example example.com/gpu"))
	}
	return errs
}

// isContainerResource says whether a container can ask for it: a name of Kubernetes' own, or one with a domain.
func isContainerResource(name corev1.ResourceName) bool {
	if slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}, name) {
		return true
	}
	if !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) && !strings.Contains(string(name), "/") {
		return false
	}
	return len(utilvalidation.IsQualifiedName(string(name))) == 0
}

func notNegative(q resource.Quantity, at *field.Path) field.ErrorList {
	if q.Sign() >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, q.String(), "must not be negative")}
}

func validatePlacement(spec *sandbox.SandboxClassSpec, at *field.Path) field.ErrorList {
	errs := inOrder(metav1validation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector")))
	for i, t := range spec.Tolerations {
		errs = append(errs, validateToleration(t, at.Child("tolerations").Index(i))...)
	}
	return errs
}

func validateToleration(t corev1.Toleration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		if t.Key == "" {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "must be Exists when key is empty, which tolerates every taint"))
		}
		errs = append(errs, invalid(at.Child("value"), t.Value, utilvalidation.IsValidLabelValue(t.Value))...)
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(at.Child("value"), t.Value, "must be empty when operator is Exists: drop it"))
		}
	default:
		errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	if t.Key != "" {
		errs = append(errs, invalid(at.Child("key"), t.Key, utilvalidation.IsQualifiedName(t.Key))...)
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if t.Effect != "" && !slices.Contains(effects, t.Effect) {
		errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect, effects))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "must be NoExecute when tolerationSeconds is set"))
	}
	return errs
}
