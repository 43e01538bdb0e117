package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestQueueCountsByTheClockThatItIsGiven(t *testing.T) {
	assert.Nil(t, queueOn(clock.RealClock{}), "on the machine's clock, the controller makes its own queue")

	c := clocktesting.NewFakeClock(time.Now())
	queue := queueOn(c)("test", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	named := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	queue.AddAfter(named("in an hour"), time.Hour)
	queue.AddAfter(named("just before"), time.Hour-1500*time.Millisecond)
	require.Eventually(t, func() bool { return c.Waiters() == 3 }, 10*time.Second, time.Millisecond, "it waits by this clock, beside the queue's two tickers")
	c.Step(time.Hour - time.Second)
	first, _ := queue.Get()
	assert.Equal(t, named("just before"), first)
	assert.Zero(t, queue.Len(), "a second before: not yet")
	c.Step(time.Second)
	require.Eventually(t, func() bool { return queue.Len() == 1 }, 10*time.Second, time.Millisecond, "it comes when this clock says so")
}
