package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// endsWithin is how long the controllers may take to end with their context.
const endsWithin = 20 * time.Second

func TestRunEndsWithItsContextWhileNothingAnswers(t *testing.T) {
	// Port 1 refuses connections: neither the host nor the loopback is there.
	nowhere := &rest.Config{Host: "http://127.0.0.1:1"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{Host: nowhere, Loopback: nowhere, Namespace: "default", Election: DefaultElection(), Clock: clock.RealClock{}})
	}()
	select {
	case err := <-done:
		assert.NoError(t, err, "what goes wrong with the controllers does not end the server")
	case <-time.After(endsWithin):
		t.Fatal("the controllers did not end with their context")
	}
}

func TestCauseOf(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	assert.Equal(t, "stopped", causeOf(ended, errLeaseLost), "the server ends, whatever else does")
	assert.Equal(t, "lease_lost", causeOf(t.Context(), fmt.Errorf("%w: it is held by another", errLeaseLost)))
	assert.Equal(t, "lease_lost", causeOf(t.Context(), errors.Join(errReleased, errors.New("leader election lost"))))
	assert.Equal(t, "host_unreachable", causeOf(t.Context(), errHostGone))
	assert.Equal(t, "error", causeOf(t.Context(), errors.New("no such kind")))
}

func TestPauses_NeverLongerThanAPersonWaits(t *testing.T) {
	again := pauses()
	for range 20 {
		assert.LessOrEqual(t, again.Step(), longestPause+longestPause/10)
	}
}
