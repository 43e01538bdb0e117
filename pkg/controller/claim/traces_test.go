package claim

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
)

const (
	acquireTrace = "0af7651916cd43dd8448eb211c80319c"
	acquireSpan  = "b7ad6b7169203331"
)

// tracedClaim is a new claim, as an acquire in a trace creates it.
func tracedClaim() *v1alpha1.SandboxClaim {
	claim := newClaim()
	claim.Annotations = map[string]string{v1alpha1.AnnotationTraceparent: "00-" + acquireTrace + "-" + acquireSpan + "-01"}
	claim.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProvenanceVerified, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWrittenByOperator}}
	return claim
}

// traced has the world's reconciles make spans, and begin traces if they would.
func (w *world) traced() *tracetest.InMemoryExporter {
	exporter := tracetest.NewInMemoryExporter()
	w.r.Spans = spans.By(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	return exporter
}

// below gives the names of the spans below one, in order.
func below(ended tracetest.SpanStubs, above tracetest.SpanStub) []string {
	var out []string
	for _, span := range ended {
		if span.Parent.SpanID() == above.SpanContext.SpanID() {
			out = append(out, span.Name)
		}
	}
	slices.Sort(out)
	return out
}

func TestReconcilesOfAnAcquiredClaim_UntilItIsBound_AreInTheAcquiresTrace(t *testing.T) {
	w := newWorld(t, tracedClaim())
	exporter := w.traced()

	_, _, err := w.reconcile()
	require.NoError(t, err)
	admission := exporter.GetSpans()
	exporter.Reset()
	first := admission[len(admission)-1]
	assert.Equal(t, spans.Reconcile, first.Name)
	assert.Equal(t, acquireTrace, first.SpanContext.TraceID().String())
	assert.Equal(t, acquireSpan, first.Parent.SpanID().String())
	assert.Equal(t, []string{"apply Deployment", "apply NetworkPolicy", "apply NetworkPolicy", "apply Service", spans.Decide, spans.Gather, spans.WriteStatus},
		below(admission, first), "the sandbox's policy, the namespace's floor, and the rest")

	w.serve()
	_, _, err = w.reconcile()
	require.NoError(t, err)
	require.Equal(t, v1alpha1.PhaseBound, w.claim().Status.Phase)
	binding := exporter.GetSpans()
	exporter.Reset()
	last := binding[len(binding)-1]
	assert.Equal(t, spans.Reconcile, last.Name)
	assert.Equal(t, acquireSpan, last.Parent.SpanID().String())
	assert.Contains(t, below(binding, last), spans.WriteStatus)
	told := map[string]string{}
	for _, attribute := range last.Attributes {
		told[string(attribute.Key)] = attribute.Value.AsString()
	}
	assert.Equal(t, map[string]string{
		"k8s.namespace.name": namespace, "sandbox.omnia.claim.name": claimName, "sandbox.omnia.claim.uid": "uid-1",
		"sandbox.omnia.claim.phase": "Bound", "sandbox.omnia.claim.reason": v1alpha1.ReasonSandboxReady,
	}, told)

	_, _, err = w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, exporter.GetSpans(), "a claim that stands is in no trace")
}

func TestReconcileOfAClaim_ThatNoTracedAcquireWrote_IsInNoTrace(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.SandboxClaim){
		"without a traceparent":   func(c *v1alpha1.SandboxClaim) { c.Annotations = nil },
		"with another form of it": func(c *v1alpha1.SandboxClaim) { c.Annotations[v1alpha1.AnnotationTraceparent] = "by hand" },
		"not sampled": func(c *v1alpha1.SandboxClaim) {
			c.Annotations[v1alpha1.AnnotationTraceparent] = "00-" + acquireTrace + "-" + acquireSpan + "-00"
		},
		"written by hand":  func(c *v1alpha1.SandboxClaim) { c.Status.Conditions = nil },
		"which has failed": func(c *v1alpha1.SandboxClaim) { c.Status.Phase = v1alpha1.PhaseFailed },
		"which was Bound":  func(c *v1alpha1.SandboxClaim) { c.Status.BoundAt = &metav1.MicroTime{Time: began} },
	} {
		t.Run(name, func(t *testing.T) {
			claim := tracedClaim()
			change(claim)
			w := newWorld(t, claim)
			exporter := w.traced()
			_, _, err := w.reconcile()
			require.NoError(t, err)
			assert.Empty(t, exporter.GetSpans())
		})
	}
}

func TestReconcileThatFails_SaysSoInItsSpan(t *testing.T) {
	w := newWorld(t, tracedClaim())
	exporter := w.traced()
	w.refuse["create Deployment"] = assert.AnError
	_, _, err := w.reconcile()
	require.ErrorIs(t, err, assert.AnError)
	ended := exporter.GetSpans()
	assert.Equal(t, err.Error(), ended[len(ended)-1].Status.Description)
}
