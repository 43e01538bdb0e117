package controller

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/testutil"
)

func TestCountWrites(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client, err := rest.HTTPClientFor(countWrites(&rest.Config{Host: server.URL}, "own"))
	require.NoError(t, err)
	counted := map[float64][]string{
		2: {"own", "patch", "sandboxclaims/status"}, 1: {"own", "delete", "sandboxclaims"}, 0: {"own", "get", "sandboxclaims"},
	}
	before := map[float64]float64{}
	for want, labels := range counted {
		before[want], err = testutil.GetCounterMetricValue(writes.WithLabelValues(labels...))
		require.NoError(t, err)
	}
	const claims = "/apis/sandbox.omnia/v1alpha1/namespaces/agents/sandboxclaims"
	for _, call := range []struct{ method, path string }{
		{http.MethodGet, claims + "/a"}, {http.MethodGet, claims + "?watch=true"}, {http.MethodGet, "/version"},
		{http.MethodPatch, claims + "/a/status"}, {http.MethodPatch, claims + "/b/status"}, {http.MethodDelete, claims + "/a"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), call.method, server.URL+call.path, http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	for want, labels := range counted {
		got, err := testutil.GetCounterMetricValue(writes.WithLabelValues(labels...))
		require.NoError(t, err)
		assert.InDelta(t, want, got-before[want], 0, "%v", labels)
	}
}
