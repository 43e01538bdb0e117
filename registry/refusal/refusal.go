// Package refusal makes the errors by which this server says no in the specification's own words: a metav1.Status whose
// reason is one of v1alpha1's StatusReason constants and whose message says what to do. What core Kubernetes has a word
// for (NotFound, Conflict, Forbidden, Invalid) it refuses to make: that is apimachinery's.
package refusal

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

var codes = map[metav1.StatusReason]int32{
	v1alpha1.StatusReasonSandboxesDisabled:   http.StatusForbidden,
	v1alpha1.StatusReasonMaxPerSession:       http.StatusForbidden,
	v1alpha1.StatusReasonMaxInstances:        http.StatusForbidden,
	v1alpha1.StatusReasonUnknownSandbox:      http.StatusUnprocessableEntity,
	v1alpha1.StatusReasonSandboxEnded:        http.StatusGone,
	v1alpha1.StatusReasonDeclarationMismatch: http.StatusConflict,
	v1alpha1.StatusReasonSandboxFailed:       http.StatusConflict,
	v1alpha1.StatusReasonNotYetSupported:     http.StatusUnprocessableEntity,
}

// New refuses for one of v1alpha1's reasons. claim is the claim's name, or empty.
func New(reason metav1.StatusReason, claim, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    codes[reason],
		Reason:  reason,
		Message: fmt.Sprintf(format, args...),
		Details: &metav1.StatusDetails{Group: sandbox.GroupName, Kind: "sandboxclaims", Name: claim},
	}}
}

// NotYetSupported refuses a field whose behaviour this server does not have, so that it is never accepted and ignored.
func NotYetSupported(kind, name, field, remedy string) *apierrors.StatusError {
	err := New(v1alpha1.StatusReasonNotYetSupported, name, "%s is not supported yet: %s", field, remedy)
	err.ErrStatus.Details.Kind = kind
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueNotSupported, Field: field, Message: "not supported yet"}}
	return err
}
