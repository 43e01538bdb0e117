// Package spans makes the spans of this server's own work: of what an acquire does and waits for, and of the reconciles
// that it waits for. A span is made below one that is recorded, the request's or the acquire's that created a claim, and
// below nothing else, so where nobody traces all of this costs nothing. It refuses to know where spans go and which are
// recorded: that is pkg/apiserver's.
package spans

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// scope is who makes these spans, as OpenTelemetry names it.
const scope = "github.com/altairalabs/omnia-sandboxes/pkg/spans"

// Names of the spans.
const (
	Acquire        = "acquire"          // all that an acquire does.
	FindClaim      = "find claim"       // it reads the handle's claim.
	CheckLimits    = "check limits"     // it counts what the session holds.
	CreateClaim    = "create claim"     // it creates the claim, through admission.
	WaitUntilBound = "wait until Bound" // it waits, and reads the claim again when that changes.
	Reconcile      = "reconcile claim"  // the controller brings the claim a step further.
	Gather         = "gather"           // it reads what the admission is decided on.
	Decide         = "decide"           // it decides on the admission, when its turn among the runtime's claims has come.
	Apply          = "apply"            // it has one object stand, whose kind follows in the name.
	WriteStatus    = "write status"     // it writes the claim's status.
)

// Names of the attributes. The first is OpenTelemetry's own.
const (
	attributeNamespace = attribute.Key("k8s.namespace.name")
	attributeClaim     = attribute.Key("sandbox.omnia.claim.name")
	attributeClaimUID  = attribute.Key("sandbox.omnia.claim.uid")
	attributePhase     = attribute.Key("sandbox.omnia.claim.phase")
	attributeReason    = attribute.Key("sandbox.omnia.claim.reason")
	attributeObject    = attribute.Key("sandbox.omnia.object.name")
)

// Span is one span; the zero value is none, and takes everything.
type Span struct{ span trace.Span }

// Start begins a span below the context's, if that is recorded.
func Start(ctx context.Context, name string) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name)
	return ctx, Span{span}
}

// StartApply begins the span of one object, below the context's.
func StartApply(ctx context.Context, kind, name string) (context.Context, Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, Span{}
	}
	ctx, s := Start(ctx, Apply+" "+kind)
	s.span.SetAttributes(attributeObject.String(name))
	return ctx, s
}

// Claim notes which claim the span is about.
func (s Span) Claim(namespace, name string) {
	if s.span != nil {
		s.span.SetAttributes(attributeNamespace.String(namespace), attributeClaim.String(name))
	}
}

// Stands notes how the claim stands: its UID, its phase and the reason of it.
func (s Span) Stands(uid, phase, reason string) {
	if s.span != nil {
		s.span.SetAttributes(attributeClaimUID.String(uid), attributePhase.String(phase), attributeReason.String(reason))
	}
}

// End ends the span, with the error in which its work has ended, if it has.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.span.RecordError(err)
		s.span.SetStatus(codes.Error, err.Error())
	}
	s.span.End()
}

// traceparentHeader is what W3C Trace Context calls it.
const traceparentHeader = "traceparent"

// traceparentLength is that of the only version there is. A later one may be longer, and is not ours.
const traceparentLength = 55

// Traceparent says, in W3C Trace Context's form, which span the context is in, for whoever goes on elsewhere; empty if that
// is not recorded.
func Traceparent(ctx context.Context) string {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparentHeader]
}

// IsTraceparent says whether a text has the form of Traceparent. Nothing else may be concluded of it: anybody can write one.
func IsTraceparent(text string) bool { return read(text).IsValid() }

func read(traceparent string) trace.SpanContext {
	if len(traceparent) != traceparentLength {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparentHeader: traceparent})
	return trace.SpanContextFromContext(ctx)
}

// Tracer begins spans where there is no request. The zero value begins none.
type Tracer struct{ tracer trace.Tracer }

// By gives the Tracer of a provider; nil gives the zero value.
func By(provider trace.TracerProvider) Tracer {
	if provider == nil {
		return Tracer{}
	}
	return Tracer{provider.Tracer(scope)}
}

// Join begins a span below one that was begun elsewhere, as Traceparent has told of it. What is none, or is not recorded
// there, is not joined.
func (t Tracer) Join(ctx context.Context, traceparent, name string) (context.Context, Span) {
	if t.tracer == nil || traceparent == "" {
		return ctx, Span{}
	}
	parent := read(traceparent)
	if !parent.IsSampled() {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, parent), name)
	return ctx, Span{span}
}
