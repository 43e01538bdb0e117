package servingcert

import (
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// expiration says when the served certificate ends, for an alert long before it does. It is a vector without labels, which
// shows nothing until it is set: a server that keeps no certificate would else show one that ended long ago.
var expiration = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Namespace: "sandbox_omnia", Subsystem: "serving_certificate", Name: "expiration_timestamp_seconds",
	Help:           "When the serving certificate that this replica keeps ends, in seconds since the epoch.",
	StabilityLevel: metrics.ALPHA,
}, nil)

func init() { legacyregistry.MustRegister(expiration) }

func observe(served pair) {
	if chain, err := cert.ParseCertsPEM(served.cert); err == nil {
		expiration.WithLabelValues().Set(float64(chain[0].NotAfter.Unix()))
	}
}
