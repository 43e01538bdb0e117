package spans

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	sampled = "00-" + traceID + "-" + spanID + "-01"
)

// recording gives a provider that records what is sampled above it, and all that nothing is above.
func recording() (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	return sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)), exporter
}

func TestStart_BelowARecordedSpan_IsItsChild(t *testing.T) {
	provider, exporter := recording()
	ctx, request := provider.Tracer("test").Start(t.Context(), "request")
	ctx, acquire := Start(ctx, Acquire)
	acquire.Claim("agents", "claim")
	_, create := Start(ctx, CreateClaim)
	create.End(errors.New("refused"))
	acquire.Stands("uid", "Pending", "Creating")
	acquire.End(nil)
	request.End()

	ended := exporter.GetSpans()
	require.Len(t, ended, 3)
	assert.Equal(t, []string{CreateClaim, Acquire, "request"}, []string{ended[0].Name, ended[1].Name, ended[2].Name})
	assert.Equal(t, ended[1].SpanContext, ended[0].Parent)
	assert.Equal(t, ended[2].SpanContext, ended[1].Parent)
	assert.Equal(t, sdktrace.Status{Code: codes.Error, Description: "refused"}, ended[0].Status)
	assert.Equal(t, codes.Unset, ended[1].Status.Code)
	assert.ElementsMatch(t, []attribute.KeyValue{
		attribute.String("k8s.namespace.name", "agents"), attribute.String("sandbox.omnia.claim.name", "claim"), attribute.String("sandbox.omnia.claim.uid", "uid"),
		attribute.String("sandbox.omnia.claim.phase", "Pending"), attribute.String("sandbox.omnia.claim.reason", "Creating"),
	}, ended[1].Attributes)
}

func TestStartApply_NamesTheKind(t *testing.T) {
	provider, exporter := recording()
	ctx, above := provider.Tracer("test").Start(t.Context(), "reconcile")
	_, span := StartApply(ctx, "Deployment", "agents/claim-sandbox")
	span.End(nil)
	above.End()
	assert.Equal(t, "apply Deployment", exporter.GetSpans()[0].Name)
	assert.Equal(t, []attribute.KeyValue{attribute.String("sandbox.omnia.object.name", "agents/claim-sandbox")}, exporter.GetSpans()[0].Attributes)
}

// work is what an acquire and a reconcile do with spans.
func work(ctx context.Context, tracer Tracer, traceparent string) string {
	ctx, acquire := Start(ctx, Acquire)
	acquire.Claim("agents", "claim")
	found := Traceparent(ctx)
	ctx, reconcile := tracer.Join(ctx, traceparent, Reconcile)
	_, apply := StartApply(ctx, "Deployment", "claim-sandbox")
	apply.End(nil)
	reconcile.Stands("uid", "Bound", "SandboxReady")
	reconcile.End(nil)
	acquire.End(nil)
	return found
}

func TestNothingIsMade_WhereNothingIsRecorded(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	never := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithSampler(sdktrace.NeverSample()))
	unsampled, request := never.Tracer("test").Start(t.Context(), "request")
	defer request.End()
	for name, ctx := range map[string]context.Context{"off": t.Context(), "unsampled": unsampled} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, work(ctx, Tracer{}, ""))
			assert.Empty(t, work(ctx, Tracer{}, sampled), "without a provider nothing is joined")
			assert.Empty(t, work(ctx, By(never), ""), "without a traceparent neither")
			assert.Zero(t, testing.AllocsPerRun(100, func() { work(ctx, By(nil), "") }))
		})
	}
	assert.Empty(t, exporter.GetSpans())
}

func TestTraceparent_IsJoinedElsewhere(t *testing.T) {
	here, hereSpans := recording()
	ctx, acquire := here.Tracer("test").Start(t.Context(), Acquire)
	told := Traceparent(ctx)
	acquire.End()
	require.True(t, IsTraceparent(told), told)

	there, thereSpans := recording()
	_, span := By(there).Join(t.Context(), told, Reconcile)
	span.End(nil)
	joined := thereSpans.GetSpans()
	require.Len(t, joined, 1)
	assert.Equal(t, hereSpans.GetSpans()[0].SpanContext.TraceID(), joined[0].SpanContext.TraceID())
	assert.Equal(t, hereSpans.GetSpans()[0].SpanContext.SpanID(), joined[0].Parent.SpanID())
	assert.True(t, joined[0].Parent.IsRemote())
}

func TestJoin_WhatIsNoTraceparent_IsNotJoined(t *testing.T) {
	for name, text := range map[string]string{
		"words":                   "trace me",
		"no trace":                "00-" + strings.Repeat("0", 32) + "-" + spanID + "-01",
		"no span":                 "00-" + traceID + "-" + strings.Repeat("0", 16) + "-01",
		"capitals":                "00-" + strings.ToUpper(traceID) + "-" + spanID + "-01",
		"no digits":               "00-" + strings.Repeat("x", 32) + "-" + spanID + "-01",
		"another version":         "ff-" + traceID + "-" + spanID + "-01",
		"more than a traceparent": sampled + "-more",
		"less than one":           sampled[:54],
		"a long text":             sampled + strings.Repeat("0", 1<<10),
	} {
		t.Run(name, func(t *testing.T) {
			provider, exporter := recording()
			assert.False(t, IsTraceparent(text))
			ctx, span := By(provider).Join(t.Context(), text, Reconcile)
			span.End(nil)
			assert.Equal(t, t.Context(), ctx)
			assert.Empty(t, exporter.GetSpans())
		})
	}
}

func TestJoin_WhatIsNotRecordedThere_IsNotJoined(t *testing.T) {
	provider, exporter := recording()
	unsampled := strings.TrimSuffix(sampled, "1") + "0"
	require.True(t, IsTraceparent(unsampled))
	_, span := By(provider).Join(t.Context(), unsampled, Reconcile)
	span.End(nil)
	assert.Empty(t, exporter.GetSpans())
}
