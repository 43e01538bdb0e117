package framework

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSteadily_SlowCallsDoNotHoldUpTheNext(t *testing.T) {
	const enough = 20
	var running atomic.Int32
	all := make(chan struct{})
	stop := Steadily(t, 200, func(_ context.Context, before int) error {
		if running.Add(1) == enough {
			close(all)
		}
		<-all
		if before == 3 {
			return errors.New("refused")
		}
		return nil
	})
	<-all
	tally := stop()
	assert.GreaterOrEqual(t, tally.Count, enough)
	assert.Positive(t, tally.Longest)
	require.Len(t, tally.Failures, 1)
	assert.Contains(t, tally.Failures[0], "call 3,")
	assert.Contains(t, tally.Failures[0], "refused")
}

func TestRequests_CountsWhatFails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	requests := &Requests{}
	client := &http.Client{Transport: requests.Count(http.DefaultTransport)}
	for _, path := range []string{"/good", "/bad"} {
		answer, err := client.Get(server.URL + path)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	}
	server.Close()
	_, err := client.Get(server.URL + "/gone")
	require.Error(t, err)
	assert.Contains(t, requests.String(), "3 requests, of which failed 2")
	assert.Contains(t, requests.String(), "502 Bad Gateway:1")
}
