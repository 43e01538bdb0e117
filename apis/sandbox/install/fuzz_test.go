package install

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func FuzzSandboxClaim(f *testing.F)            { fuzzKind(f, "SandboxClaim") }
func FuzzSandboxClaimList(f *testing.F)        { fuzzKind(f, "SandboxClaimList") }
func FuzzSandboxClass(f *testing.F)            { fuzzKind(f, "SandboxClass") }
func FuzzSandboxClassList(f *testing.F)        { fuzzKind(f, "SandboxClassList") }
func FuzzClusterSandboxClass(f *testing.F)     { fuzzKind(f, "ClusterSandboxClass") }
func FuzzClusterSandboxClassList(f *testing.F) { fuzzKind(f, "ClusterSandboxClassList") }
func FuzzSandboxAcquire(f *testing.F)          { fuzzKind(f, "SandboxAcquire") }
func FuzzSandboxTouch(f *testing.F)            { fuzzKind(f, "SandboxTouch") }
func FuzzSandboxRelease(f *testing.F)          { fuzzKind(f, "SandboxRelease") }

// fuzzKind decodes arbitrary JSON or YAML as the server does, and holds whatever decodes to losing nothing on its way
// between hub, version and wire.
func fuzzKind(f *testing.F, kind string) {
	w := newWire(kind)
	f.Fuzz(func(t *testing.T, body []byte) {
		strict, strictErr := w.decode(w.strict, body)
		lenient, err := w.decode(w.lenient, body)
		if err != nil {
			require.Error(t, strictErr, "what is not decoded leniently is not decoded strictly")
			return
		}
		if strictErr == nil {
			require.True(t, apiequality.Semantic.DeepEqual(strict, lenient), "strictness changes what is decoded")
		}
		if !w.holds(lenient) {
			return // the body named another kind
		}
		w.requireDefaulted(t, lenient)
		w.requireUnlosing(t, lenient)
	})
}

// wire decodes one kind, with and without a mind for unknown fields.
type wire struct {
	scheme          *runtime.Scheme
	kind            string
	strict, lenient serializer.CodecFactory
}

func newWire(kind string) wire {
	scheme := runtime.NewScheme()
	Install(scheme)
	return wire{scheme: scheme, kind: kind, strict: serializer.NewCodecFactory(scheme, serializer.EnableStrict), lenient: serializer.NewCodecFactory(scheme)}
}

func (w wire) decode(codecs serializer.CodecFactory, body []byte) (runtime.Object, error) {
	gvk := v1alpha1.SchemeGroupVersion.WithKind(w.kind)
	obj, _, err := codecs.UniversalDecoder(sandbox.SchemeGroupVersion).Decode(body, &gvk, nil)
	return obj, err
}

// holds says whether the object is of the wire's kind.
func (w wire) holds(obj runtime.Object) bool {
	kinds, _, err := w.scheme.ObjectKinds(obj)
	return err == nil && kinds[0].Kind == w.kind
}

// requireDefaulted wants that what is decoded has its defaults: to default it again changes nothing.
func (w wire) requireDefaulted(t *testing.T, hub runtime.Object) {
	t.Helper()
	versioned, err := w.scheme.ConvertToVersion(hub, v1alpha1.SchemeGroupVersion)
	require.NoError(t, err)
	again := versioned.DeepCopyObject()
	w.scheme.Default(again)
	require.True(t, apiequality.Semantic.DeepEqual(versioned, again), "defaulting twice differs from defaulting once")
	back, err := w.scheme.ConvertToVersion(versioned, sandbox.SchemeGroupVersion)
	require.NoError(t, err)
	back.GetObjectKind().SetGroupVersionKind(hub.GetObjectKind().GroupVersionKind())
	require.True(t, apiequality.Semantic.DeepEqual(hub, back), "the conversion to the version and back loses something")
}

// requireUnlosing wants that what is written is read as it was, by the strict decoder, and is written the same again.
func (w wire) requireUnlosing(t *testing.T, hub runtime.Object) {
	t.Helper()
	codec := w.strict.LegacyCodec(v1alpha1.SchemeGroupVersion)
	written, err := runtime.Encode(codec, hub)
	require.NoError(t, err)
	if unreadableTime.Match(written) {
		return // validation refuses it
	}
	read, err := w.decode(w.strict, written)
	require.NoError(t, err, "what is written is not read: %s", written)
	require.True(t, onTheWire.DeepEqual(hub, read), "writing and reading loses something: %s", written)
	rewritten, err := runtime.Encode(codec, read)
	require.NoError(t, err)
	require.Equal(t, string(written), string(rewritten))
}

// unreadableTime is one whose year in UTC has not four digits: apimachinery writes it and does not read it.
var unreadableTime = regexp.MustCompile(`"(-\d+|\d{5,})-\d\d-\d\dT`)

// onTheWire is equality but for what JSON does not carry: a time's finer digits, and the white space of managed fields.
var onTheWire = func() interface{ DeepEqual(a, b any) bool } {
	equal := apiequality.Semantic.Copy()
	if err := equal.AddFuncs(
		func(a, b metav1.Time) bool { return a.Truncate(time.Second).Equal(b.Time) },
		func(a, b metav1.FieldsV1) bool { return compact(a) == compact(b) },
	); err != nil {
		panic(err)
	}
	return equal
}()

func compact(fields metav1.FieldsV1) string {
	var out bytes.Buffer
	if err := json.Compact(&out, fields.GetRawBytes()); err != nil {
		return err.Error()
	}
	return out.String()
}
