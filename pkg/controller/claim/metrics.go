package claim

import (
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

const (
	metricsNamespace = "sandbox_omnia"
	// leaseExpired is this package's cause of a withdrawal.
	leaseExpired = "lease_expired"
)

// latencyBuckets are those of a latency that is a few milliseconds at best and minutes at worst.
var latencyBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600}

var (
	timeToBound = metrics.NewHistogram(&metrics.HistogramOpts{
		Namespace: metricsNamespace, Name: "claim_time_to_bound_seconds",
		Help:           "How long a claim took from its creation until it was first Bound, its time in the queue included. Observed once per claim.",
		Buckets:        latencyBuckets,
		StabilityLevel: metrics.ALPHA,
	})
	ended = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: metricsNamespace, Name: "claims_ended_total",
		Help: "Claims whose time had come, by cause: Released and Idle are deleted, and so is FailedExpired, a Failed claim; " +
			"SandboxNeverReady and QueueWaitExceeded are marked Failed.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"cause"})
	reconciles = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace: metricsNamespace, Name: "reconcile_duration_seconds",
		Help:           "How long one reconcile of a claim took, by result: success or error.",
		Buckets:        latencyBuckets,
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})
)

func init() {
	legacyregistry.MustRegister(timeToBound, ended, reconciles)
	// Each series is there from the start, so that its first increase is seen as one.
	for _, cause := range []lifecycle.EndCause{lifecycle.EndReleased, lifecycle.EndIdle, lifecycle.EndNeverReady, lifecycle.EndQueueWait, lifecycle.EndFailed} {
		ended.WithLabelValues(string(cause))
	}
}

func observeReconcile(took time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	reconciles.WithLabelValues(result).Observe(took.Seconds())
}

// observeStep counts what a status that was just written says for the first time.
func observeStep(before, after *v1alpha1.SandboxClaimStatus, end lifecycle.End) {
	if before.BoundAt == nil && after.BoundAt != nil && after.QueuedAt != nil {
		// Two replicas' clocks may have been asked.
		timeToBound.Observe(max(after.BoundAt.Sub(after.QueuedAt.Time), 0).Seconds())
	}
	if end.Failed != nil && before.Phase != v1alpha1.PhaseFailed && after.Phase == v1alpha1.PhaseFailed &&
		v1alpha1.ReadyCondition(after.Conditions).Reason == string(end.Cause) {
		ended.WithLabelValues(string(end.Cause)).Inc()
	}
}
