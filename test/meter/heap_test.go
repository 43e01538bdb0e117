package meter

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCollectGarbage(t *testing.T) {
	var asked []string
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" gc="+r.FormValue("gc"))
	})
	require.NoError(t, CollectGarbage(t.Context(), clientOf(t, server)))
	assert.Equal(t, []string{"GET /debug/pprof/heap gc=1", "GET /debug/pprof/heap gc=1"}, asked)
}

func TestCollectGarbageIsRefused(t *testing.T) {
	for code, remedy := range map[int]string{
		http.StatusForbidden: "the verb get on nonResourceURLs /debug/pprof/heap",
		http.StatusNotFound:  "--profiling",
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) })
		require.ErrorContains(t, CollectGarbage(t.Context(), clientOf(t, server)), remedy)
	}
}
