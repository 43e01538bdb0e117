package play

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/altairalabs/omnia-sandboxes/test/meter"
	"github.com/altairalabs/omnia-sandboxes/test/soak/flat"
)

const apiMetrics = `# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1.048576e+08
# TYPE go_memstats_heap_alloc_bytes gauge
go_memstats_heap_alloc_bytes 2.097152e+07
# TYPE go_goroutines gauge
go_goroutines 546
# TYPE process_open_fds gauge
process_open_fds 23
# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{resource="sandboxclaims",verb="WATCH"} 3
apiserver_longrunning_requests{resource="sandboxclasses",verb="WATCH"} 2
apiserver_longrunning_requests{resource="pods",verb="CONNECT"} 7
`

const leaderMetrics = `# TYPE leader_election_master_status gauge
leader_election_master_status{name="sandbox-apiserver"} 1
# TYPE workqueue_depth gauge
workqueue_depth{controller="claim",name="claim"} 4
workqueue_depth{controller="toolregistry",name="toolregistry"} 1
`

// serving is a source of a server that tells this, and counts how often it was asked to collect its garbage.
func serving(t *testing.T, controllers string) (source, *atomic.Int64) {
	t.Helper()
	collected := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/metrics":
			_, _ = w.Write([]byte(apiMetrics))
		case r.URL.Path == controllerMetricsPath && controllers != "":
			_, _ = w.Write([]byte(controllers))
		case strings.HasPrefix(r.URL.Path, "/debug/pprof/heap"):
			collected.Add(1)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	set, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	client := set.RESTClient()
	return source{client, meter.FromREST("server 0", client), meter.FromPath("server 0's controllers", controllerMetricsPath, client)}, collected
}

func TestRead(t *testing.T) {
	source, collected := serving(t, leaderMetrics)
	values, leads, err := source.read(t.Context(), false)
	require.NoError(t, err)
	assert.True(t, leads)
	assert.Equal(t, map[string]float64{flat.Resident: 100, flat.Goroutines: 546, flat.Watches: 5, flat.Descriptors: 23, flat.Queue: 5}, values,
		"a heap with garbage in it is not told")
	assert.Zero(t, collected.Load())

	values, _, err = source.read(t.Context(), true)
	require.NoError(t, err)
	assert.InDelta(t, 20, values[flat.Heap], 0)
	assert.Positive(t, collected.Load())
}

func TestRead_AFollower(t *testing.T) {
	source, _ := serving(t, strings.ReplaceAll(leaderMetrics, `"} 1`, `"} 0`))
	_, leads, err := source.read(t.Context(), false)
	require.NoError(t, err)
	assert.False(t, leads)
}

func TestRead_WhatIsNotServed_IsAnError(t *testing.T) {
	source, _ := serving(t, "")
	_, _, err := source.read(t.Context(), false)
	require.ErrorContains(t, err, "server 0's controllers")
	require.ErrorContains(t, err, controllerMetricsPath)
}

func TestQuantitiesOfServersAreRead(t *testing.T) {
	source, _ := serving(t, leaderMetrics)
	values, _, err := source.read(t.Context(), true)
	require.NoError(t, err)
	once := map[string]bool{flat.InUse: true, flat.Keys: true, flat.HostWatches: true}
	for _, q := range flat.Quantities() {
		if _, read := values[q.Name]; !read && !once[q.Name] {
			t.Errorf("%s is judged, and never read", q.Name)
		}
	}
}
