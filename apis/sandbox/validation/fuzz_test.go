package validation

import (
	"io"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

var codecs = serializer.NewCodecFactory(scheme)

// decode gives the body as the server would have it; nil if it is no object of the kind.
func decode[T runtime.Object](body []byte, kind string) (T, bool) {
	gvk := v1alpha1.SchemeGroupVersion.WithKind(kind)
	obj, _, err := codecs.UniversalDecoder(sandbox.SchemeGroupVersion).Decode(body, &gvk, nil)
	if err != nil {
		obj = nil
	}
	typed, ok := obj.(T)
	return typed, ok
}

// requireStorable wants that what is valid can be written and read again: one object that cannot be read fails every list.
func requireStorable(t *testing.T, obj runtime.Object) {
	t.Helper()
	written, err := runtime.Encode(codecs.LegacyCodec(v1alpha1.SchemeGroupVersion), obj)
	require.NoError(t, err)
	_, err = runtime.Decode(codecs.UniversalDecoder(sandbox.SchemeGroupVersion), written)
	require.NoError(t, err, "what is valid is written and not read: %s", written)
}

// ofSpec are the errors that are not about metadata, which a stored object has and a decoded one lacks.
func ofSpec(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		if !strings.HasPrefix(err.Field, "metadata") {
			out = append(out, err.Error())
		}
	}
	return out
}

func FuzzValidateSandboxClaim(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		c, ok := decode[*sandbox.SandboxClaim](body, "SandboxClaim")
		if !ok {
			return
		}
		refused := created(c)
		require.Equal(t, refused.ToAggregate(), created(c).ToAggregate(), "the same object is refused in the same words")
		same := asStored(ValidateSandboxClaimUpdate(c, c.DeepCopy()), c, c.DeepCopy(), "")
		require.Empty(t, ofSpec(same), "an update that changes nothing is refused")
		status := asStored(ValidateSandboxClaimStatusUpdate(c, c.DeepCopy()), c, c.DeepCopy(), "status")
		fresh := asStored(ValidateSandboxClaimStatusUpdate(c, &sandbox.SandboxClaim{}), c, &sandbox.SandboxClaim{ObjectMeta: c.ObjectMeta, Spec: c.Spec}, "status")
		require.Subset(t, ofSpec(fresh), ofSpec(status), "a status that does not change is refused for more than a new one")
		if len(refused) == 0 && len(ofSpec(fresh)) == 0 {
			c.CreationTimestamp, c.DeletionTimestamp = metav1.Time{}, nil // the server sets them
			requireStorable(t, c)
		}
	})
}

func FuzzValidateSandboxClass(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		c, ok := decode[*sandbox.SandboxClass](body, "SandboxClass")
		if !ok {
			return
		}
		cluster := &sandbox.ClusterSandboxClass{ObjectMeta: c.ObjectMeta, Spec: c.Spec}
		namespaced := asStored(ValidateSandboxClass(&c.ObjectMeta, &c.Spec, true), c, nil, "")
		clusterWide := asStored(ValidateSandboxClass(&cluster.ObjectMeta, &cluster.Spec, false), cluster, nil, "")
		require.Equal(t, ofSpec(namespaced), ofSpec(clusterWide), "the two kinds are one schema")
		old := c.DeepCopy()
		same := asStored(ValidateSandboxClassUpdate(&c.ObjectMeta, &old.ObjectMeta, &c.Spec, &old.Spec), c, old, "")
		require.Empty(t, ofSpec(same), "an update that changes nothing is refused")
		if len(clusterWide) == 0 {
			cluster.CreationTimestamp, cluster.DeletionTimestamp = metav1.Time{}, nil // the server sets them
			requireStorable(t, cluster)
		}
	})
}

func FuzzValidateSandboxAcquire(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		if acquire, ok := decode[*sandbox.SandboxAcquire](body, "SandboxAcquire"); ok {
			require.Equal(t, ValidateSandboxAcquire(acquire).ToAggregate(), ValidateSandboxAcquire(acquire).ToAggregate())
		}
	})
}

func FuzzValidateSandboxRelease(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		if release, ok := decode[*sandbox.SandboxRelease](body, "SandboxRelease"); ok {
			if len(ValidateSandboxRelease(release, true)) == 0 {
				require.NotEmpty(t, ValidateSandboxRelease(release, false), "a body for a session's claims is none for one claim")
			}
		}
	})
}

// FuzzTemplateFault wants that what is good asks for no field that it is not given.
func FuzzTemplateFault(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		if templateFault(text, []string{"Connection", "StateFile"}) != "" {
			return
		}
		parsed, err := template.New("").Option("missingkey=error").Parse(text)
		require.NoError(t, err)
		// It may still fail where a function is given what it cannot take.
		if err := parsed.Execute(io.Discard, map[string]string{"Connection": "c", "StateFile": "/s"}); err != nil {
			require.NotContains(t, err.Error(), "map has no entry")
			require.NotContains(t, err.Error(), "can't evaluate field")
		}
	})
}
