package property

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/utils/clock"
	"pgregory.net/rapid"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/altairalabs/omnia-sandboxes/pkg/apiserver"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/framework/inside"
)

// startServers starts two servers by this clock, as their command would start them, with what they log in a file.
func startServers(t *testing.T, cluster *framework.Cluster, c clock.WithTicker) *framework.Servers {
	t.Helper()
	inside.LogTo(t, cluster, "property.log")
	return framework.StartServers(t, cluster, framework.ServerOptions{Replicas: 2, Run: inside.Server(func(o *apiserver.Options) { o.Clock = c })})
}

// running are the servers that run.
func (w *world) running() []*framework.Server {
	var out []*framework.Server
	for _, server := range w.servers.List {
		if server.Running() {
			out = append(out, server)
		}
	}
	return out
}

// stop ends one of the servers; where it was the leader, the other takes its place.
func (w *world) stop(rt *rapid.T) {
	if len(w.running()) < 2 || rapid.IntRange(0, 2).Draw(rt, "seldom") > 0 {
		rt.Skip("seldom, and never the last one")
	}
	server := rapid.SampledFrom(w.servers.List).Draw(rt, "server")
	before := w.leader(rt)
	w.calls.stopping(server.Index, true)
	// The aggregator is told, as it is of a pod that is not ready: the garbage collector's watches go by it.
	if err := errors.Join(server.RemoveEndpoint(w.ctx), server.Stop()); err != nil {
		rt.Fatalf("stopping server %d: %v", server.Index, err)
	}
	after := framework.Eventually(w.t, framework.FailoverTimeout, "a server leads", w.LeaseHolder, func(holder string) bool { return holder != "" })
	if after != before {
		w.events.newLeader()
	}
	w.say("stopped server %d (it led: %t)", server.Index, after != before)
}

// start starts the server that was stopped.
func (w *world) start(rt *rapid.T) {
	if len(w.running()) == 2 {
		rt.Skip("all run")
	}
	w.startAll(rt)
}

func (w *world) startAll(rt fataler) {
	for _, server := range w.servers.List {
		if server.Running() {
			continue
		}
		if err := errors.Join(server.Start(context.Background()), server.AddEndpoint(context.Background())); err != nil {
			rt.Fatalf("starting server %d again: %v", server.Index, err)
		}
		w.calls.stopping(server.Index, false)
		w.say("started server %d", server.Index)
	}
}

func (w *world) leader(rt *rapid.T) string {
	holder, err := w.LeaseHolder(context.Background())
	if err != nil {
		rt.Fatalf("reading the Lease: %v", err)
	}
	return holder
}

// busy are the metrics that say that a controller has something to do.
var busy = map[string]bool{"controller_runtime_active_workers": true, "workqueue_depth": true}

// atWork says what the controllers, which run in this process, are about; empty if they only wait.
func atWork() string {
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		return fmt.Sprintf("reading the controllers' metrics: %v", err)
	}
	for _, family := range families {
		if !busy[family.GetName()] {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetGauge().GetValue() > 0 {
				return "the controllers are at work: " + metric.String()
			}
		}
	}
	return ""
}
