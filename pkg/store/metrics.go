package store

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	// confirmed says when the store was last known to be the right one, for an alert where that is long ago.
	confirmed = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "sandbox_omnia", Subsystem: "store", Name: "confirmed_timestamp_seconds",
		Help:           "When this replica last found that etcd and the host's ConfigMap agree on which store this is, in seconds since the epoch.",
		StabilityLevel: metrics.ALPHA,
	})
	failures = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "sandbox_omnia", Subsystem: "store", Name: "failures_total",
		Help:           "Requests for the store's mark that failed, by whom they were sent to: etcd, host.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"party"})
)

func init() {
	legacyregistry.MustRegister(confirmed, failures)
	// Each series is there from the start, so that its first increase is seen as one.
	for _, party := range []string{"etcd", "host"} {
		failures.WithLabelValues(party)
	}
}

func failed(party string) { failures.WithLabelValues(party).Inc() }
