package claim

import (
	"context"
	"sync/atomic"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// gauges count the claims as they stand, when they are asked. The replica that holds the Lease alone answers, so that a sum
// over the replicas is right.
type gauges struct {
	metrics.BaseStableCollector
	source atomic.Pointer[gaugeSource]
}

// gaugeSource is where claims are counted.
type gaugeSource struct {
	claims client.Reader
	clock  clock.PassiveClock
}

var (
	claimsDesc = metrics.NewDesc(metricsNamespace+"_claims", "Claims by phase and by the reason of their Ready condition.",
		[]string{"phase", "reason"}, nil, metrics.ALPHA, "")
	weakenedDesc = metrics.NewDesc(metricsNamespace+"_claims_weakened", "Claims whose sandbox another NetworkPolicy allows more than its class does.",
		nil, nil, metrics.ALPHA, "")
	unresolvedDesc = metrics.NewDesc(metricsNamespace+"_claims_egress_unresolved", "Claims whose class allows something that cannot be told, so that it is not allowed.",
		nil, nil, metrics.ALPHA, "")
	queueDepthDesc = metrics.NewDesc(metricsNamespace+"_queue_depth", "Claims that are Queued.", nil, nil, metrics.ALPHA, "")
	queueAgeDesc   = metrics.NewDesc(metricsNamespace+"_queue_oldest_age_seconds", "How long ago the oldest Queued claim was created; 0 if there is none.",
		nil, nil, metrics.ALPHA, "")

	// standing is the process' one collector: controllers are built again, metrics are registered once.
	standing = &gauges{}
)

func init() { legacyregistry.CustomMustRegister(standing) }

// Start counts the given claims until ctx ends. It needs the Lease, as every runnable that does not say otherwise.
func (s *gaugeSource) Start(ctx context.Context) error {
	standing.source.Store(s)
	<-ctx.Done()
	standing.source.CompareAndSwap(s, nil)
	return nil
}

// DescribeWithStability names the metrics.
func (*gauges) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, desc := range []*metrics.Desc{claimsDesc, weakenedDesc, unresolvedDesc, queueDepthDesc, queueAgeDesc} {
		ch <- desc
	}
}

// CollectWithStability counts.
func (g *gauges) CollectWithStability(ch chan<- metrics.Metric) {
	s := g.source.Load()
	if s == nil {
		return
	}
	var claims v1alpha1.SandboxClaimList
	if err := s.claims.List(context.Background(), &claims, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		klog.Background().Error(err, "Listing the claims to count them")
		return
	}
	type key struct{ phase, reason string }
	counts := map[key]int{}
	var oldest time.Duration
	queued, weakened, unresolved := 0, 0, 0
	for i := range claims.Items {
		status := &claims.Items[i].Status
		counts[key{string(status.Phase), v1alpha1.ReadyCondition(status.Conditions).Reason}]++
		if apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionIsolationWeakened) {
			weakened++
		}
		if apimeta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionEgressResolved) {
			unresolved++
		}
		if status.Phase == v1alpha1.PhaseQueued {
			queued++
			if status.QueuedAt != nil {
				oldest = max(oldest, s.clock.Since(status.QueuedAt.Time))
			}
		}
	}
	for k, n := range counts {
		ch <- metrics.NewLazyConstMetric(claimsDesc, metrics.GaugeValue, float64(n), k.phase, k.reason)
	}
	ch <- metrics.NewLazyConstMetric(weakenedDesc, metrics.GaugeValue, float64(weakened))
	ch <- metrics.NewLazyConstMetric(unresolvedDesc, metrics.GaugeValue, float64(unresolved))
	ch <- metrics.NewLazyConstMetric(queueDepthDesc, metrics.GaugeValue, float64(queued))
	ch <- metrics.NewLazyConstMetric(queueAgeDesc, metrics.GaugeValue, oldest.Seconds())
}
