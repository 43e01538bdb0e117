package sandboxclaim

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/registry/printing"
)

// tableConvertor prints claims.
type tableConvertor struct{}

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	{Name: "Runtime", Type: "string", Description: "The AgentRuntime that the sandbox belongs to."},
	{Name: "Session", Type: "string", Description: "The session that it is for."},
	{Name: "Handle", Type: "string", Description: "Its identity within runtime and session."},
	{Name: "Phase", Type: "string", Description: "Queued, Pending, Bound, Completed or Failed."},
	{Name: "Reason", Type: "string", Description: "The Ready condition's reason: what is waited for, or why it failed."},
	{Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
	{Name: "Class", Type: "string", Priority: 1, Description: "The class that says what is built."},
	{Name: "Addresses", Type: "string", Priority: 1, Description: "Where the sandbox answers, as port=host:port, while it is Bound."},
	{Name: "Idle", Type: "string", Priority: 1, Description: "How long ago it was last used."},
	{Name: "Release", Type: "string", Priority: 1, Description: "When it is deleted because its conversation has ended."},
}

// ConvertToTable prints one claim or a list of them.
func (tableConvertor) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return printing.Table(obj, options, columns, func(item runtime.Object) []any {
		claim := item.(*sandbox.SandboxClaim)
		reason := v1alpha1.ReadyCondition(claim.Status.Conditions).Reason
		phase := string(claim.Status.Phase)
		if claim.DeletionTimestamp != nil {
			phase = "Terminating"
		}
		return []any{
			claim.Name, runtimeOf(claim), claim.Spec.SessionID, claim.Spec.Handle, phase, reason, printing.Age(claim.CreationTimestamp.Time),
			className(claim.Spec.ClassRef), addresses(claim), idle(claim), release(claim),
		}
	})
}

func className(ref sandbox.ClassReference) string {
	if ref.Kind == sandbox.ClusterSandboxClassKind {
		return "csbc/" + ref.Name
	}
	return "sbc/" + ref.Name
}

func addresses(claim *sandbox.SandboxClaim) string {
	var out []string
	for port, address := range claim.Status.Addresses {
		out = append(out, port+"="+address)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func idle(claim *sandbox.SandboxClaim) string {
	if claim.Status.LastUsedAt == nil {
		return "<unknown>"
	}
	return printing.Age(claim.Status.LastUsedAt.Time)
}

func release(claim *sandbox.SandboxClaim) string {
	at := claim.Status.ReleaseAt
	if at == nil {
		return ""
	}
	if left := time.Until(at.Time); left > 0 {
		return "in " + duration.HumanDuration(left)
	}
	return "due"
}
