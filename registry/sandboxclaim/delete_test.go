package sandboxclaim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestDeletion_ThatSaysWhatBecomesOfTheSandbox_HoldsTheClaimForTheController(t *testing.T) {
	foreground, orphan, background := metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground
	tests := map[string]struct {
		options metav1.DeleteOptions
		want    []string
	}{
		"nothing said":     {metav1.DeleteOptions{}, nil},
		"Background":       {metav1.DeleteOptions{PropagationPolicy: &background}, nil},
		"Foreground":       {metav1.DeleteOptions{PropagationPolicy: &foreground}, []string{v1alpha1.FinalizerForeground}},
		"Orphan":           {metav1.DeleteOptions{PropagationPolicy: &orphan}, []string{v1alpha1.FinalizerOrphan}},
		"orphanDependents": {metav1.DeleteOptions{OrphanDependents: ptr.To(true)}, []string{v1alpha1.FinalizerOrphan}}, //nolint:staticcheck // callers may still give it
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			claim := &sandbox.SandboxClaim{Status: sandbox.SandboxClaimStatus{SandboxName: "a-sandbox"}}
			claim.Finalizers = []string{"example.test/theirs"}
			for range 2 { // it is asked before the deletion, and in it
				assert.False(t, strategy{}.CheckGracefulDelete(t.Context(), claim, &tt.options), "no deletion has a grace period")
			}
			assert.Equal(t, append([]string{"example.test/theirs"}, tt.want...), claim.Finalizers)

			waits := &sandbox.SandboxClaim{}
			assert.False(t, strategy{}.CheckGracefulDelete(t.Context(), waits, &tt.options))
			assert.Empty(t, waits.Finalizers, "it has no sandbox")
		})
	}
}
