package controller

import (
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// writes counts what the controllers ask an API to change. Divided by the claims that were made, it is what a claim costs.
var writes = metrics.NewCounterVec(&metrics.CounterOpts{
	Namespace: "sandbox_omnia", Name: "controller_writes_total",
	Help: "Requests of the controllers that write, by cluster (host, or own: this server's own group), verb, and resource with its subresource. " +
		"What acquire, touch and release write by themselves is counted by etcd_request_duration_seconds alone.",
	StabilityLevel: metrics.ALPHA,
}, []string{"cluster", "verb", "resource"})

func init() { legacyregistry.MustRegister(writes) }

// readingVerbs change nothing.
var readingVerbs = sets.New("get", "list", "watch")

// countWrites has a client's writes counted.
func countWrites(config *rest.Config, cluster string) *rest.Config {
	config = rest.CopyConfig(config)
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if info, err := resolver.NewRequestInfo(r); err == nil && info.IsResourceRequest && !readingVerbs.Has(info.Verb) {
				resource := info.Resource
				if info.Subresource != "" {
					resource += "/" + info.Subresource
				}
				writes.WithLabelValues(cluster, info.Verb, resource).Inc()
			}
			return next.RoundTrip(r)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
