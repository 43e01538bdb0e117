package sandboxclaim

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

var (
	acquireDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace: "sandbox_omnia", Name: "acquire_duration_seconds",
		Help: "How long one call of acquire took, its wait included, by outcome: bound, unbound (the caller is told to ask again), " +
			"hung_up, the reason of a refusal, or error.",
		Buckets:        []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 35, 60},
		StabilityLevel: metrics.ALPHA,
	}, []string{"outcome"})

	releases = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "sandbox_omnia", Name: "releases_total",
		Help:           "Claims whose conversation ended, by what was made of them: scheduled, at_once (deleted, having never had a sandbox), cancelled (used again within the grace).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"cause"})

	waitingAcquires = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "sandbox_omnia", Name: "waiting_acquires",
		Help:           "Calls of acquire that wait in this replica.",
		StabilityLevel: metrics.ALPHA,
	})
)

func init() {
	legacyregistry.MustRegister(acquireDuration, releases, waitingAcquires)
	// Each series is there from the start, so that its first increase is seen as one.
	for _, cause := range []string{causeScheduled, causeAtOnce, causeCancelled} {
		releases.WithLabelValues(cause)
	}
}

// Outcomes of an acquire beside the reasons of its refusals.
const (
	outcomeBound   = "bound"
	outcomeUnbound = "unbound"
	outcomeHungUp  = "hung_up"
	outcomeError   = "error"
)

// Causes of releases and withdrawals.
const (
	causeScheduled = "scheduled"
	causeAtOnce    = "at_once"
	causeCancelled = "cancelled"
	causeHungUp    = "hung_up"
)

// withdrawalCauses are the causes of withdrawals by a session's limits.
var withdrawalCauses = map[lifecycle.Limit]string{
	lifecycle.LimitPerSession: "session_limit",
	lifecycle.LimitInstances:  "instance_limit",
}

// refusals are the reasons that are outcomes of their own. Admission may refuse with any word at all; those are errors,
// so that nobody who writes a webhook makes series here.
var refusals = sets.New(
	v1alpha1.StatusReasonSandboxesDisabled, v1alpha1.StatusReasonMaxPerSession, v1alpha1.StatusReasonMaxInstances,
	v1alpha1.StatusReasonUnknownSandbox, v1alpha1.StatusReasonSandboxEnded, v1alpha1.StatusReasonDeclarationMismatch,
	v1alpha1.StatusReasonSandboxFailed, v1alpha1.StatusReasonNotYetSupported,
	metav1.StatusReasonForbidden, metav1.StatusReasonNotFound, metav1.StatusReasonConflict, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest,
)

// outcomeOf says in a word how an acquire ended.
func outcomeOf(ctx context.Context, answer *sandbox.SandboxAcquire, err error) string {
	switch reason := apierrors.ReasonForError(err); {
	case err == nil && answer.Status.Phase == sandbox.PhaseBound:
		return outcomeBound
	case err == nil, isStillEnding(err):
		return outcomeUnbound
	case ctx.Err() != nil:
		return outcomeHungUp
	case refusals.Has(reason):
		return string(reason)
	}
	return outcomeError
}
