package apiserver

import (
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// controllerMetricsPath is beside /metrics and not in it: both registries hold families of the same names (workqueue_*),
// with other labels.
const controllerMetricsPath = "/metrics/controllers"

// serveControllerMetrics shows what the controllers count, which they keep in a registry of their own.
func (s *Server) serveControllerMetrics() {
	s.Generic.Handler.NonGoRestfulMux.Handle(controllerMetricsPath, promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
}
