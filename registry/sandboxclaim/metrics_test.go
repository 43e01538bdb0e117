package sandboxclaim

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/metrics"
	"github.com/altairalabs/omnia-sandboxes/registry/refusal"
)

func acquired(t *testing.T, outcome string) uint64 {
	t.Helper()
	count, err := testutil.GetHistogramMetricCount(acquireDuration.WithLabelValues(outcome))
	require.NoError(t, err)
	return count
}

func released(t *testing.T, cause string) float64 {
	t.Helper()
	count, err := testutil.GetCounterMetricValue(releases.WithLabelValues(cause))
	require.NoError(t, err)
	return count
}

func withdrawn(t *testing.T, cause string) float64 {
	t.Helper()
	count, err := testutil.GetCounterMetricValue(metrics.Withdrawals.WithLabelValues(cause))
	require.NoError(t, err)
	return count
}

func TestAcquireIsCountedByOutcome(t *testing.T) {
	w := newWorld(t, 10)
	w.claimsOfEveryOutcome()
	mustExist := acquireOf("none", "shell/default", 0)
	mustExist.Spec.MustExist = true
	unsupported := acquireOf("s", "shell/default", 0)
	unsupported.Spec.Declaration = &sandbox.Declaration{}
	named := acquireOf("s", "shell/default", 0)
	named.Name = "another"
	ask := func(ctx context.Context, name string, body *sandbox.SandboxAcquire) func() {
		return func() { _, _ = w.acquire(ctx, name, body) }
	}
	for name, tt := range map[string]struct {
		outcome string
		call    func()
	}{
		"bound":                         {"bound", ask(w.agent(), anyClaim, acquireOf("bound", "shell/default", 25))},
		"told to ask again":             {"unbound", ask(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))},
		"the last claim is ending":      {"unbound", ask(w.agent(), anyClaim, acquireOf("ending", "shell/default", 0))},
		"the caller hangs up":           {"hung_up", w.acquireAndHangUp},
		"too many of the sandbox":       {"MaxInstances", ask(w.agent(), anyClaim, acquireOf("full", "shell/default", 0))},
		"too many of the session":       {"MaxPerSession", ask(w.agent(), anyClaim, acquireOf("queued", "shell/default", 0))},
		"a sandbox not declared":        {"UnknownSandbox", ask(w.agent(), anyClaim, acquireOf("s", "browser/default", 0))},
		"mustExist, and none does":      {"SandboxEnded", ask(w.agent(), anyClaim, mustExist)},
		"a failed claim":                {"SandboxFailed", ask(w.agent(), "by-hand", acquireOf("s", "shell/default", 0))},
		"a declaration":                 {"NotYetSupported", ask(w.agent(), anyClaim, unsupported)},
		"a stranger":                    {"Forbidden", ask(w.as("stranger"), anyClaim, acquireOf("s", "shell/default", 0))},
		"no such claim":                 {"NotFound", ask(w.agent(), "none", acquireOf("s", "shell/default", 0))},
		"the claim of another session":  {"Conflict", ask(w.agent(), "by-hand", acquireOf("t", "shell/default", 0))},
		"no handle":                     {"Invalid", ask(w.agent(), anyClaim, acquireOf("s", "", 0))},
		"another's metadata.name":       {"BadRequest", ask(w.agent(), anyClaim, named)},
		"the host cluster is away":      {"error", w.acquireWithoutNeighbours},
		"the runtime forbids sandboxes": {"SandboxesDisabled", w.acquireWhereDisabled},
	} {
		t.Run(name+": "+tt.outcome, func(t *testing.T) {
			before := acquired(t, tt.outcome)
			tt.call()
			assert.Equal(t, before+1, acquired(t, tt.outcome))
		})
	}

	before := acquired(t, outcomeUnbound)
	_, err := w.Acquire.Create(w.agent(), anyClaim, acquireOf("dry", "shell/default", 0), nil, dryRun())
	require.NoError(t, err)
	assert.Equal(t, before, acquired(t, outcomeUnbound), "a dry run acquires nothing")
}

// claimsOfEveryOutcome makes a claim for each way in which an acquire of what is there can end.
func (w *world) claimsOfEveryOutcome() {
	w.t.Helper()
	of := func(session string) string { return ClaimName("my-agent", session, "shell/default") }
	w.hold("bound", "shell/default")
	w.becomes(of("bound"), sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	w.hold("ending", "shell/default")
	w.finalizers(of("ending"), "example.test/hold")
	require.NoError(w.t, w.writes.delete(w.agent(), w.get(of("ending"))))
	w.hold("full", "shell/a", "shell/b")
	w.hold("queued", "shell/default")
	w.fill("queued", sessionLimits["maxPerSession"].handles...)
	w.becomes(of("queued"), sandbox.PhaseQueued, v1alpha1.ReasonSessionLimit, "")
	_, err := w.byHand(claimOf("by-hand"))
	require.NoError(w.t, err)
	w.becomes("by-hand", sandbox.PhaseFailed, v1alpha1.ReasonClassNotFound, "")
}

func (w *world) acquireAndHangUp() {
	ctx, hangUp := context.WithCancel(w.agent())
	out := w.waiting(ctx, acquireOf("hung-up", "shell/default", 25))
	hangUp()
	_, err := w.result(out)
	require.Error(w.t, err)
}

func (w *world) acquireWithoutNeighbours() {
	w.broken = errors.New("connection refused")
	defer func() { w.broken = nil }()
	_, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.Error(w.t, err)
}

func (w *world) acquireWhereDisabled() {
	w.runtimes["my-agent"].Spec.Sandbox.Enabled = false
	defer func() { w.runtimes["my-agent"].Spec.Sandbox.Enabled = true }()
	_, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.Error(w.t, err)
}

func dryRun() *metav1.CreateOptions { return &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}} }

func TestOutcomesAreAClosedSet(t *testing.T) {
	hookSays := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: "SomethingOfAWebhook"}}
	etcdIsAway := apierrors.NewServerTimeout(sandbox.Resource("sandboxclaims"), "get", 2)
	assert.Equal(t, outcomeError, outcomeOf(t.Context(), nil, hookSays), "a webhook's own word makes no series")
	assert.Equal(t, outcomeError, outcomeOf(t.Context(), nil, etcdIsAway), "not a claim that is ending")
	assert.Equal(t, "DeclarationMismatch", outcomeOf(t.Context(), nil, refusal.New(v1alpha1.StatusReasonDeclarationMismatch, "", "")))
}

func TestAcquireIsTimedWithItsWait(t *testing.T) {
	w := newWorld(t, 10)
	seconds := func() float64 {
		sum, err := testutil.GetHistogramMetricValue(acquireDuration.WithLabelValues(outcomeUnbound))
		require.NoError(t, err)
		return sum
	}
	before := seconds()
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	w.clock.Step(25 * time.Second)
	_, err := w.result(out)
	require.NoError(t, err)
	assert.InDelta(t, 25, seconds()-before, 0.001)
}

func TestWaitingAcquiresAreGauged(t *testing.T) {
	gauge := func() float64 {
		value, err := testutil.GetGaugeMetricValue(waitingAcquires)
		require.NoError(t, err)
		return value
	}
	w := newWorld(t, 10)
	before := gauge()
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	assert.InDelta(t, before+1, gauge(), 0)
	w.becomes(ClaimName("my-agent", "s", "shell/default"), sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	_, err := w.result(out)
	require.NoError(t, err)
	assert.InDelta(t, before, gauge(), 0)
}

func TestReleasesAreCounted(t *testing.T) {
	w := newWorld(t, 10)
	w.hold("s", "shell/default", "shell/never-bound")
	name := ClaimName("my-agent", "s", "shell/default")
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	release := func(spec sandbox.SandboxReleaseSpec, options ...string) {
		_, err := w.release(w.agent(), anyClaim, spec, options...)
		require.NoError(t, err)
	}
	scheduled, atOnce, cancelled := released(t, causeScheduled), released(t, causeAtOnce), released(t, causeCancelled)
	now := func(s, a, c float64) {
		t.Helper()
		assert.InDelta(t, scheduled+s, released(t, causeScheduled), 0, "scheduled")
		assert.InDelta(t, atOnce+a, released(t, causeAtOnce), 0, "at once")
		assert.InDelta(t, cancelled+c, released(t, causeCancelled), 0, "cancelled")
	}
	release(ofSession("s"), metav1.DryRunAll)
	now(0, 0, 0)
	release(ofSession("s"))
	now(1, 1, 0)
	release(ofSession("s"))
	now(1, 1, 0)
	release(cancelling(ofSession("s")))
	release(cancelling(ofSession("s")))
	now(1, 1, 1)

	release(ofSession("s"))
	_, err := w.touch(w.agent(), name, "")
	require.NoError(t, err)
	now(2, 1, 2)
	release(ofSession("s"))
	_, err = w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	now(3, 1, 3)
	w.becomes(name, sandbox.PhasePending, v1alpha1.ReasonPodNotReady, "")
	release(ofSession("s"))
	_, err = w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	now(4, 1, 4)
}

func TestWithdrawalsAreCounted(t *testing.T) {
	for cause, end := range map[string]func(w *world, name string, hangUp func()){
		"hung_up": func(_ *world, _ string, hangUp func()) { hangUp() },
		"session_limit": func(w *world, name string, _ func()) {
			w.fill("s", sessionLimits["maxPerSession"].handles...)
			w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonSessionLimit, "")
		},
		"instance_limit": func(w *world, name string, _ func()) {
			w.fill("s", sessionLimits["maxInstances"].handles...)
			w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonInstanceLimit, "")
		},
	} {
		t.Run(cause, func(t *testing.T) {
			w := newWorld(t, 10)
			before := withdrawn(t, cause)
			ctx, hangUp := context.WithCancel(w.agent())
			defer hangUp()
			out := w.waiting(ctx, acquireOf("s", "shell/default", 25))
			end(w, ClaimName("my-agent", "s", "shell/default"), hangUp)
			_, err := w.result(out)
			require.Error(t, err)
			assert.InDelta(t, before+1, withdrawn(t, cause), 0)
		})
	}
}
