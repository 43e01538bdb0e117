package install

import (
	"math/rand"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// roundTripSeed is fixed, so that a failure is found again.
const roundTripSeed = 1

// defaulted fills what decoding would default: a hub object without it is none that the server ever holds.
func defaulted(serializer.CodecFactory) []any {
	return []any{
		func(ref *sandbox.ClassReference, c randfill.Continue) {
			c.FillNoCustom(ref)
			ref.Kind = []sandbox.ClassKind{sandbox.SandboxClassKind, sandbox.ClusterSandboxClassKind}[c.Intn(2)]
		},
		func(e *sandbox.Enrolment, c randfill.Continue) {
			c.FillNoCustom(e)
			if e.MaxDuration == nil {
				e.MaxDuration = &metav1.Duration{Duration: v1alpha1.DefaultEnrolmentDuration}
			}
		},
		func(spec *sandbox.SandboxClassSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.ImagePullPolicy = []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}[c.Intn(3)]
		},
		func(v *sandbox.ScratchVolume, c randfill.Continue) {
			c.FillNoCustom(v)
			v.Medium = []sandbox.ScratchMedium{sandbox.ScratchMediumDisk, sandbox.ScratchMediumMemory}[c.Intn(2)]
		},
		func(m *sandbox.ClassMount, c randfill.Continue) {
			c.FillNoCustom(m)
			m.Access = []sandbox.MountAccess{sandbox.MountReadWrite, sandbox.MountReadOnly}[c.Intn(2)]
		},
	}
}

func TestEveryKindRoundTripsBetweenHubAndVersion(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, defaulted), rand.NewSource(roundTripSeed), codecs)
	// No kind is left out; the group has no protobuf.
	roundtrip.RoundTripTypesWithoutProtobuf(t, scheme, codecs, filler, nil)
}
