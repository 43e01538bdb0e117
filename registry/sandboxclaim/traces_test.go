package sandboxclaim

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
)

// traced has the agent's call be in a request's span, which this sampler may have recorded.
func (w *world) traced(sampler sdktrace.Sampler) (context.Context, trace.Span, *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithSampler(sampler))
	ctx, request := provider.Tracer("request").Start(w.agent(), "request")
	return ctx, request, exporter
}

// named gives the spans of a name.
func named(ended tracetest.SpanStubs, name string) tracetest.SpanStubs {
	return slices.DeleteFunc(slices.Clone(ended), func(s tracetest.SpanStub) bool { return s.Name != name })
}

func TestAcquire_OfANewClaimInATrace_HasASpanOfEachStepUntilBound(t *testing.T) {
	w := newWorld(t, 10)
	ctx, request, exporter := w.traced(sdktrace.AlwaysSample())
	name := ClaimName("my-agent", "session", "shell/a")
	out := w.waiting(ctx, acquireOf("session", "shell/a", 25))
	told := w.get(name).Annotations[v1alpha1.AnnotationTraceparent]
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	_, err := w.result(out)
	require.NoError(t, err)
	request.End()

	ended := exporter.GetSpans()
	acquire := named(ended, spans.Acquire)
	require.Len(t, acquire, 1)
	assert.Equal(t, request.SpanContext().SpanID(), acquire[0].Parent.SpanID())
	for _, step := range []string{spans.CheckLimits, spans.CreateClaim, spans.WaitUntilBound} {
		spans := named(ended, step)
		require.Len(t, spans, 1, step)
		assert.Equal(t, acquire[0].SpanContext.SpanID(), spans[0].Parent.SpanID(), step)
	}
	wait, found := named(ended, spans.WaitUntilBound)[0], named(ended, spans.FindClaim)
	assert.Equal(t, acquire[0].SpanContext.SpanID(), found[0].Parent.SpanID(), "first it looks whether there is one")
	assert.Equal(t, wait.SpanContext.SpanID(), found[len(found)-1].Parent.SpanID(), "and again when it is woken")
	for _, span := range ended {
		assert.Equal(t, request.SpanContext().TraceID(), span.SpanContext.TraceID(), span.Name)
	}

	assert.True(t, spans.IsTraceparent(told), told)
	assert.Contains(t, told, acquire[0].SpanContext.TraceID().String()+"-"+acquire[0].SpanContext.SpanID().String(), "whoever reconciles the claim joins the acquire's span")
}

func TestAcquire_ThatIsNotTraced_TellsTheClaimOfNoTrace(t *testing.T) {
	w := newWorld(t, 10)
	ctx, request, exporter := w.traced(sdktrace.NeverSample())
	for session, ctx := range map[string]context.Context{"off": w.agent(), "unsampled": ctx} {
		_, err := w.acquire(ctx, v1alpha1.AnyClaim, acquireOf(session, "shell/a", 0))
		require.NoError(t, err)
		assert.Empty(t, w.get(ClaimName("my-agent", session, "shell/a")).Annotations)
	}
	request.End()
	assert.Empty(t, exporter.GetSpans())
}

func TestAcquire_OfAClaimThatIsThere_LeavesItToTheTraceThatCreatedIt(t *testing.T) {
	w := newWorld(t, 10)
	first, firstRequest, _ := w.traced(sdktrace.AlwaysSample())
	_, err := w.acquire(first, v1alpha1.AnyClaim, acquireOf("session", "shell/a", 0))
	require.NoError(t, err)
	firstRequest.End()
	name := ClaimName("my-agent", "session", "shell/a")
	told := w.get(name).Annotations
	require.NotEmpty(t, told)

	second, secondRequest, exporter := w.traced(sdktrace.AlwaysSample())
	_, err = w.acquire(second, v1alpha1.AnyClaim, acquireOf("session", "shell/a", 0))
	require.NoError(t, err)
	secondRequest.End()
	assert.Equal(t, told, w.get(name).Annotations)
	assert.Len(t, named(exporter.GetSpans(), spans.Acquire), 1)
	assert.Empty(t, named(exporter.GetSpans(), spans.CreateClaim))
}

func TestAcquire_ThatIsRefused_SaysSoInItsSpan(t *testing.T) {
	w := newWorld(t, 10)
	ctx, request, exporter := w.traced(sdktrace.AlwaysSample())
	_, err := w.acquire(ctx, v1alpha1.AnyClaim, acquireOf("session", "unknown/a", 0))
	require.True(t, v1alpha1.IsUnknownSandbox(err))
	request.End()
	acquire := named(exporter.GetSpans(), spans.Acquire)
	require.Len(t, acquire, 1)
	assert.Equal(t, err.Error(), acquire[0].Status.Description)
}
