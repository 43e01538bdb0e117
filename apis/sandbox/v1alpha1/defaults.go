package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// DefaultEnrolmentDuration is spec.enrolment.maxDuration when it is unset.
const DefaultEnrolmentDuration = 15 * time.Minute

// SetDefaults_ClassReference makes an unset kind the namespaced one, so that a claim cannot pick up a platform class that it never named.
func SetDefaults_ClassReference(ref *ClassReference) {
	if ref.Kind == "" {
		ref.Kind = SandboxClassKind
	}
}

// SetDefaults_Enrolment gives an enrolment its default length.
func SetDefaults_Enrolment(e *Enrolment) {
	if e.MaxDuration == nil {
		e.MaxDuration = &metav1.Duration{Duration: DefaultEnrolmentDuration}
	}
}

// SetDefaults_SandboxClassSpec sets the class's pull policy.
func SetDefaults_SandboxClassSpec(spec *SandboxClassSpec) {
	if spec.ImagePullPolicy == "" {
		spec.ImagePullPolicy = corev1.PullIfNotPresent
	}
}

// SetDefaults_ScratchVolume puts a scratch volume on the node's disk.
func SetDefaults_ScratchVolume(v *ScratchVolume) {
	if v.Medium == "" {
		v.Medium = ScratchMediumDisk
	}
}

// SetDefaults_ClassMount makes an offered mount writable.
func SetDefaults_ClassMount(m *ClassMount) {
	if m.Access == "" {
		m.Access = MountReadWrite
	}
}
