package controller

import (
	"context"
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
		done <- Run(ctx, Config{Host: nowhere, Loopback: nowhere, Namespace: "default", Clock: clock.RealClock{}})
	}()
	select {
	case err := <-done:
		assert.NoError(t, err, "what goes wrong with the controllers does not end the server")
	case <-time.After(endsWithin):
		t.Fatal("the controllers did not end with their context")
	}
}
