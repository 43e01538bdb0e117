// Package metrics holds the metrics to which more than one part of the server adds. What one part counts alone stands with
// that part, and is refused here.
package metrics

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Withdrawals counts the claims that were deleted because nobody waits for them any longer, or because whoever waited was
// refused: by the acquire that waited (hung_up, session_limit, instance_limit), and by the controller once the lease of
// the last wait had run out (lease_expired).
var Withdrawals = metrics.NewCounterVec(&metrics.CounterOpts{
	Namespace: "sandbox_omnia", Name: "withdrawals_total",
	Help:           "Claims deleted before they had a sandbox because nobody waits for them or their session is full, by cause: hung_up, session_limit, instance_limit, lease_expired.",
	StabilityLevel: metrics.ALPHA,
}, []string{"cause"})

func init() {
	legacyregistry.MustRegister(Withdrawals)
	// Each series is there from the start, so that its first increase is seen as one.
	for _, cause := range []string{"hung_up", "session_limit", "instance_limit", "lease_expired"} {
		Withdrawals.WithLabelValues(cause)
	}
}
