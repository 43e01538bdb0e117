package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/otlp"
)

const (
	// askedFor is the span of the caller's own that a call is made in.
	askedFor = "b7ad6b7169203331"
	// handedOn is for spans to arrive: a server gathers them for five seconds.
	handedOn = time.Minute
)

// acquireIn acquires in a trace of the caller's, and gives the trace and the claim, which is Bound.
func (w *world) acquireIn(set versioned.Interface, session string) (string, *v1alpha1.SandboxClaim) {
	w.t.Helper()
	trace := strings.ReplaceAll(uuid.NewString(), "-", "")
	body, err := json.Marshal(framework.MakeAcquire(runtimeName, session, handle))
	require.NoError(w.t, err)
	answer := &v1alpha1.SandboxAcquire{}
	require.NoError(w.t, set.SandboxV1alpha1().RESTClient().Post().Namespace(w.namespace).Resource("sandboxclaims").Name(v1alpha1.AnyClaim).SubResource("acquire").
		SetHeader("Traceparent", fmt.Sprintf("00-%s-%s-01", trace, askedFor)).SetHeader("Content-Type", "application/json").Body(body).Do(w.t.Context()).Into(answer))
	return trace, w.Claim(w.t, w.namespace, answer.Status.ClaimName, framework.Bound)
}

// spanOf finds the span of a name, the last one where there are several.
func spanOf(trace []otlp.Span, name string) (otlp.Span, bool) {
	for _, span := range slices.Backward(trace) {
		if span.Name == name {
			return span, true
		}
	}
	return otlp.Span{}, false
}

func TestTraces_OfAnAcquireThatAnAdministratorHasTraced_ReachFromTheRequestUntilBound(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	foreign, untraced := w.acquireIn(w.agent, "an-agent")
	id, claim := w.acquireIn(w.Sandbox, "an-administrator")

	trace := framework.Eventually(t, handedOn, "the collector has the trace", func(context.Context) ([]otlp.Span, error) {
		return shared.traces.Trace(id), nil
	}, func(trace []otlp.Span) bool {
		_, acquired := spanOf(trace, spans.Acquire)
		bound := slices.ContainsFunc(trace, func(s otlp.Span) bool {
			return s.Name == spans.Reconcile && s.Attributes["sandbox.omnia.claim.phase"] == "Bound"
		})
		return acquired && bound && slices.ContainsFunc(trace, func(s otlp.Span) bool { return s.Parent == askedFor })
	})
	byID := map[string]otlp.Span{}
	for _, span := range trace {
		byID[span.ID] = span
		assert.Equal(t, "sandbox-apiserver", span.Service)
	}
	acquire, _ := spanOf(trace, spans.Acquire)
	assert.Equal(t, claim.Name, acquire.Attributes["sandbox.omnia.claim.name"])
	request := acquire
	for byID[request.Parent].ID != "" {
		request = byID[request.Parent]
	}
	assert.Equal(t, "POST /apis/sandbox.omnia/v1alpha1/namespaces/{:namespace}/sandboxclaims/{:name}/acquire", request.Name)
	assert.Equal(t, askedFor, request.Parent, "the caller's own span")
	for _, step := range []string{spans.CreateClaim, spans.WaitUntilBound, spans.Reconcile} {
		span, there := spanOf(trace, step)
		require.True(t, there, step)
		assert.Equal(t, acquire.ID, span.Parent, step)
	}
	for step, above := range map[string]string{
		spans.Apply + " Deployment": spans.Reconcile, spans.Decide: spans.Reconcile, spans.WriteStatus: spans.Reconcile,
		"HTTP POST": spans.Apply + " Deployment", // to the host's API
	} {
		assert.True(t, slices.ContainsFunc(trace, func(s otlp.Span) bool { return s.Name == step && byID[s.Parent].Name == above }), "%s, below %s", step, above)
	}

	told, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Get(t.Context(), claim.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("00-%s-%s-01", id, acquire.ID), told.Annotations[v1alpha1.AnnotationTraceparent])
	assert.True(t, slices.ContainsFunc(told.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == "sandbox-apiserver" && strings.Contains(f.FieldsV1.GetRawString(), v1alpha1.AnnotationTraceparent)
	}), "the server owns what it wrote")

	assert.Empty(t, untraced.Annotations, "an agent has nothing traced by asking for it")
	assert.Empty(t, shared.traces.Trace(foreign))
}
