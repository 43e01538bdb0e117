package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// ClaimFieldLabels are the field selectors that a list or watch of SandboxClaims accepts.
var ClaimFieldLabels = []string{
	"metadata.name", "metadata.namespace",
	"spec.agentRuntimeRef.name", "spec.sessionID", "spec.handle", "status.phase",
}

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("SandboxClaim"),
		func(label, value string) (string, string, error) {
			if !slices.Contains(ClaimFieldLabels, label) {
				return "", "", fmt.Errorf("field selector %q is not supported for SandboxClaim: use one of %s", label, strings.Join(ClaimFieldLabels, ", "))
			}
			return label, value, nil
		})
}
