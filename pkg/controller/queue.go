package controller

import (
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queueOn gives what makes a controller's queue on another clock than the machine's: one whose delays that clock counts,
// as it counts what they are waited for. On the machine's own clock it gives nil, and the controller makes its own queue.
func queueOn(c clock.WithTicker) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	if _, real := c.(clock.RealClock); real {
		return nil
	}
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: c})
	}
}
