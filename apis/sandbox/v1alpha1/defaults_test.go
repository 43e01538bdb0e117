package v1alpha1

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestDefaults_UnsetFields(t *testing.T) {
	scheme := runtime.NewScheme()
	assert.NoError(t, AddToScheme(scheme))

	claim := &SandboxClaim{Spec: SandboxClaimSpec{Enrolment: &Enrolment{}}}
	scheme.Default(claim)
	assert.Equal(t, SandboxClassKind, claim.Spec.ClassRef.Kind, "a claim cannot pick up a platform class that it never named")
	assert.Equal(t, 15*time.Minute, claim.Spec.Enrolment.MaxDuration.Duration)
	assert.Nil(t, claim.Spec.MaxInstances, "a claim by hand is held to no instance limit")

	spec := SandboxClassSpec{Filesystem: &Filesystem{Scratch: []ScratchVolume{{}}}, Mounts: []ClassMount{{}}}
	for _, class := range []*SandboxClassSpec{&defaulted(scheme, &SandboxClass{Spec: *spec.DeepCopy()}).Spec, &defaulted(scheme, &ClusterSandboxClass{Spec: spec}).Spec} {
		assert.Equal(t, corev1.PullIfNotPresent, class.ImagePullPolicy)
		assert.Equal(t, ScratchMediumDisk, class.Filesystem.Scratch[0].Medium)
		assert.Equal(t, MountReadWrite, class.Mounts[0].Access)
		assert.False(t, class.Filesystem.ReadOnlyRoot)
		assert.False(t, class.Trusted)
	}
}

func TestDefaults_SetFieldsStay(t *testing.T) {
	scheme := runtime.NewScheme()
	assert.NoError(t, AddToScheme(scheme))
	claim := defaulted(scheme, &SandboxClaim{Spec: SandboxClaimSpec{
		ClassRef: ClassReference{Kind: ClusterSandboxClassKind}, Enrolment: &Enrolment{MaxDuration: &metav1.Duration{Duration: time.Minute}},
	}})
	assert.Equal(t, ClusterSandboxClassKind, claim.Spec.ClassRef.Kind)
	assert.Equal(t, time.Minute, claim.Spec.Enrolment.MaxDuration.Duration)
	class := defaulted(scheme, &SandboxClass{Spec: SandboxClassSpec{
		ImagePullPolicy: corev1.PullNever, Filesystem: &Filesystem{Scratch: []ScratchVolume{{Medium: ScratchMediumMemory}}}, Mounts: []ClassMount{{Access: MountReadOnly}},
	}}).Spec
	assert.Equal(t, corev1.PullNever, class.ImagePullPolicy)
	assert.Equal(t, ScratchMediumMemory, class.Filesystem.Scratch[0].Medium)
	assert.Equal(t, MountReadOnly, class.Mounts[0].Access)
}

func defaulted[T runtime.Object](scheme *runtime.Scheme, object T) T {
	scheme.Default(object)
	return object
}
