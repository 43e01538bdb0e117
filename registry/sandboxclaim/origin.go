package sandboxclaim

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// origin marks a create that acquire makes. It travels as a context value of an unexported type, so that nothing outside
// this package can claim it: a user name could be impersonated, an annotation written by anyone.
type origin struct {
	wait     *sandbox.WaitLease
	replaces types.UID
}

type originKey struct{}

func withOrigin(ctx context.Context, o origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

func originOf(ctx context.Context) (origin, bool) {
	o, ok := ctx.Value(originKey{}).(origin)
	return o, ok
}

// provenance is the condition that says that acquire wrote a claim. It is written with the object and never afterwards.
func provenance(generation int64, now metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionProvenanceVerified, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		LastTransitionTime: now, Reason: v1alpha1.ReasonWrittenByOperator, Message: "acquire wrote this claim",
	}
}

// writtenByAcquire says whether acquire wrote the claim.
func writtenByAcquire(claim *sandbox.SandboxClaim) bool {
	return v1alpha1.WrittenByAcquire(claim.Status.Conditions)
}

// acquireOnly names the first field of spec that only acquire may write; empty if there is none.
func acquireOnly(spec *sandbox.SandboxClaimSpec) string {
	switch {
	case slices.ContainsFunc(spec.Mounts, beyondScratch):
		return "spec.mounts"
	case spec.Mount != nil && beyondScratch(*spec.Mount):
		return "spec.mount"
	case spec.TargetPath != "":
		return "spec.targetPath"
	case len(spec.Connections) > 0:
		return "spec.connections"
	case spec.DeclaredBy != "":
		return "spec.declaredBy"
	case spec.MaxInstances != nil:
		return "spec.maxInstances"
	case spec.Enrolment != nil:
		return "spec.enrolment"
	}
	return ""
}

// beyondScratch says whether a mount is of anything but the claim's own directory.
func beyondScratch(m sandbox.SandboxMount) bool {
	return m.Role != "" && m.Role != sandbox.MountRoleScratch
}
