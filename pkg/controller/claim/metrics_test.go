package claim

import (
	"context"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// gathered gives a metric's series.
func gathered(t *testing.T, name string) []*dto.Metric {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()
		}
	}
	return nil
}

// countOf sums how much a metric has counted, or how often it was observed.
func countOf(t *testing.T, name string) float64 {
	t.Helper()
	sum := 0.0
	for _, m := range gathered(t, name) {
		sum += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

func TestMetrics(t *testing.T) {
	bound, idle := countOf(t, "sandbox_omnia_claim_time_to_bound_seconds"), countOf(t, "sandbox_omnia_claims_ended_total")
	claim := newClaim()
	claim.Status.QueuedAt = &metav1.MicroTime{Time: began.Add(-time.Second)}
	w := newWorld(t, claim)
	w.settle()
	w.serve()
	w.settle()
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
	w.settle()
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1, ReadyReplicas: 1})
	w.settle()
	assert.EqualValues(t, 1, countOf(t, "sandbox_omnia_claim_time_to_bound_seconds")-bound, "once per claim")
	w.clock.SetTime(began.Add(time.Hour))
	w.settle()
	assert.EqualValues(t, 1, countOf(t, "sandbox_omnia_claims_ended_total")-idle)
	assert.Positive(t, countOf(t, "sandbox_omnia_reconcile_duration_seconds"))
}

func TestGauges(t *testing.T) {
	w := crowd(t, 1, 3)
	for _, name := range []string{"c1", "c2", "c3"} {
		_, _, err := w.reconcileOf(name)
		require.NoError(t, err)
	}
	assert.Empty(t, gathered(t, "sandbox_omnia_claims"), "a replica without the Lease counts nothing")
	w.clock.SetTime(began.Add(time.Minute))
	ctx, end := context.WithCancel(t.Context())
	source := &gaugeSource{claims: w.claims, clock: w.clock}
	done := make(chan error)
	go func() { done <- source.Start(ctx) }()
	require.Eventually(t, func() bool { return len(gathered(t, "sandbox_omnia_claims")) == 2 }, time.Minute, time.Millisecond)
	assert.EqualValues(t, 2, gathered(t, "sandbox_omnia_queue_depth")[0].GetGauge().GetValue())
	assert.Zero(t, gathered(t, "sandbox_omnia_claims_weakened")[0].GetGauge().GetValue())
	assert.Zero(t, gathered(t, "sandbox_omnia_claims_egress_unresolved")[0].GetGauge().GetValue())
	claim := w.claimOf("c1")
	claim.Status.Conditions = append(claim.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionIsolationWeakened, Status: metav1.ConditionTrue},
		metav1.Condition{Type: v1alpha1.ConditionEgressResolved, Status: metav1.ConditionFalse})
	require.NoError(t, w.claims.Status().Update(t.Context(), claim))
	assert.EqualValues(t, 1, gathered(t, "sandbox_omnia_claims_weakened")[0].GetGauge().GetValue())
	assert.EqualValues(t, 1, gathered(t, "sandbox_omnia_claims_egress_unresolved")[0].GetGauge().GetValue())
	assert.EqualValues(t, 58, gathered(t, "sandbox_omnia_queue_oldest_age_seconds")[0].GetGauge().GetValue())
	end()
	require.NoError(t, <-done)
	assert.Empty(t, gathered(t, "sandbox_omnia_claims"))
}
