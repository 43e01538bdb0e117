package claim

import (
	"context"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
)

// join begins the span of a reconcile that an acquire waits for: below the acquire's that created the claim, until the claim has
// been Bound or has ended. Later reconciles have none, so that a claim that stands costs nothing.
func (r *Reconciler) join(ctx context.Context, claim *v1alpha1.SandboxClaim) (context.Context, spans.Span) {
	ctx, span := r.Spans.Join(ctx, traceparent(claim), spans.Reconcile)
	span.Claim(claim.Namespace, claim.Name)
	return ctx, span
}

// traceparent is what a claim says of its acquire's span; empty if that has nothing to wait for, or if no acquire wrote the claim.
func traceparent(claim *v1alpha1.SandboxClaim) string {
	if claim.Status.BoundAt != nil || lifecycle.Terminal(claim.Status.Phase) || !v1alpha1.WrittenByAcquire(claim.Status.Conditions) {
		return ""
	}
	return claim.Annotations[v1alpha1.AnnotationTraceparent]
}

// endSpan ends the span of a reconcile with what it has made of the claim.
func endSpan(span spans.Span, claim *v1alpha1.SandboxClaim, err error) {
	span.Stands(string(claim.UID), string(claim.Status.Phase), v1alpha1.ReadyCondition(claim.Status.Conditions).Reason)
	span.End(err)
}
