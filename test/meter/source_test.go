package meter

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	endpointmetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	etcdmetrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
)

// serve answers every request, and gives the server's URL.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// clientOf is a Kubernetes client of a server.
func clientOf(t *testing.T, server string) rest.Interface {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server})
	require.NoError(t, err)
	return client.RESTClient()
}

// sourcesOf are the ways to read a server's metrics.
func sourcesOf(t *testing.T, server string) map[string]Source {
	t.Helper()
	return map[string]Source{
		"by a Kubernetes client": FromREST("tested", clientOf(t, server)),
		"by a URL":               FromURL("tested", server+metricsPath, http.DefaultClient),
	}
}

func TestSources(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || r.Header.Get("Accept") != "text/plain;version=0.0.4" {
			http.Error(w, r.URL.Path+" as "+r.Header.Get("Accept"), http.StatusNotAcceptable)
			return
		}
		_, err := io.WriteString(w, processOf(1764512345, 12.5))
		assert.NoError(t, err)
	})
	for way, source := range sourcesOf(t, server) {
		t.Run(way, func(t *testing.T) {
			r, err := Read(t.Context(), source)
			require.NoError(t, err)
			assert.InDelta(t, 12.5, r.Value("process_cpu_seconds_total", nil), 0)
			assert.WithinRange(t, r.At(), time.Now().Add(-time.Minute), time.Now())
		})
	}
}

func TestSourcesThatRefuse(t *testing.T) {
	for code, remedy := range map[int]string{
		http.StatusUnauthorized:        "credentials",
		http.StatusForbidden:           "the verb get on nonResourceURLs /metrics",
		http.StatusNotFound:            "does not serve /metrics",
		http.StatusInternalServerError: "it went wrong",
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "it went wrong", code) })
		for way, source := range sourcesOf(t, server) {
			t.Run(http.StatusText(code)+" "+way, func(t *testing.T) {
				_, err := Read(t.Context(), source)
				require.ErrorContains(t, err, "reading the metrics of tested")
				require.ErrorContains(t, err, remedy)
			})
		}
	}
}

func TestSourcesThatAreGone(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	for way, source := range sourcesOf(t, server.URL) {
		t.Run(way, func(t *testing.T) {
			_, err := Read(t.Context(), source)
			var unreachable *url.Error
			require.ErrorAs(t, err, &unreachable)
		})
	}
	_, err := Read(t.Context(), FromURL("tested", "://", http.DefaultClient))
	require.ErrorContains(t, err, "reading the metrics of tested")
}

func TestSourcesOfACallerThatHungUp(t *testing.T) {
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	for way, source := range sourcesOf(t, serve(t, func(http.ResponseWriter, *http.Request) {})) {
		t.Run(way, func(t *testing.T) {
			_, err := Read(ctx, source)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

// TestAgainstKubernetes reads what the API machinery itself counts, so that a release which names things otherwise is noticed.
func TestAgainstKubernetes(t *testing.T) {
	endpointmetrics.Register()
	etcdmetrics.Register()
	source := FromREST("tested", clientOf(t, serve(t, legacyregistry.Handler().ServeHTTP)))
	// Counted before and after, and a series that is new: only what is between the readings may be told.
	asked(t, http.MethodPatch, "/apis/apps/v1/namespaces/ns/deployments/d", http.StatusOK)
	etcdmetrics.RecordEtcdRequest("update", schema.GroupResource{Group: "apps", Resource: "deployments"}, nil, time.Now())
	before, err := Read(t.Context(), source)
	require.NoError(t, err)
	asked(t, http.MethodPatch, "/apis/apps/v1/namespaces/ns/deployments/d", http.StatusOK)
	asked(t, http.MethodDelete, "/api/v1/namespaces/ns/pods", http.StatusOK)
	asked(t, http.MethodDelete, "/api/v1/namespaces/ns/pods/p", http.StatusConflict)
	asked(t, http.MethodPost, "/api/v1/namespaces/ns/pods?dryRun=All", http.StatusCreated)
	asked(t, http.MethodGet, "/api/v1/namespaces/ns/pods/p", http.StatusOK)
	etcdmetrics.RecordEtcdRequest("update", schema.GroupResource{Group: "apps", Resource: "deployments"}, nil, time.Now())
	after, err := Read(t.Context(), source)
	require.NoError(t, err)
	c, err := Between(before, after)
	require.NoError(t, err)
	assert.Equal(t, []Write{
		{Resource: "pods", Verb: "DELETECOLLECTION", Count: 1},
		{Group: "apps", Resource: "deployments", Verb: "PATCH", Count: 1},
		{Resource: "pods", Verb: "DELETE", Conflicts: 1},
	}, c.HostWrites())
	assert.Equal(t, []Write{{Group: "apps", Resource: "deployments", Verb: "update", Count: 1}}, c.EtcdWrites())
	assert.Equal(t, 4, c.IdleWrites())
	mean, count := c.Mean("apiserver_request_duration_seconds", Labels{"resource": "deployments"})
	assert.Equal(t, 250*time.Millisecond, mean)
	assert.Equal(t, 1, count)
	resident, heap := after.Memory()
	assert.Greater(t, resident, heap)
	assert.Positive(t, heap)
	assert.Positive(t, after.Goroutines())
}

// asked has a request counted as an API server does.
func asked(t *testing.T, method, path string, code int) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(r)
	require.NoError(t, err)
	r = r.WithContext(request.WithRequestInfo(r.Context(), info))
	endpointmetrics.MonitorRequest(r, info.Verb, info.APIGroup, info.APIVersion, info.Resource, info.Subresource, endpointmetrics.CleanScope(info),
		endpointmetrics.APIServerComponent, false, "", code, 0, 250*time.Millisecond)
}
