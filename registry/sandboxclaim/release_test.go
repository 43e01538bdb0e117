package sandboxclaim

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func (w *world) release(ctx context.Context, name string, spec sandbox.SandboxReleaseSpec, dryRun ...string) (*sandbox.SandboxReleaseStatus, error) {
	obj, err := w.Release.Create(ctx, name, &sandbox.SandboxRelease{Spec: spec}, nil, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return &obj.(*sandbox.SandboxRelease).Status, nil
}

func ofSession(session string) sandbox.SandboxReleaseSpec {
	return sandbox.SandboxReleaseSpec{AgentRuntime: "my-agent", SessionID: session}
}

func cancelling(spec sandbox.SandboxReleaseSpec) sandbox.SandboxReleaseSpec {
	spec.Cancel = true
	return spec
}

// at is a time as it is stored.
func at(t time.Time) *metav1.MicroTime { return &metav1.MicroTime{Time: t} }

func TestRelease(t *testing.T) {
	bound := func(w *world, name string) { w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "") }
	tests := map[string]struct {
		before    func(w *world, name string)
		gone      bool
		releaseAt *metav1.MicroTime
	}{
		"bound: after the releaseGrace": {before: bound, releaseAt: at(began.Add(2 * time.Minute))},
		"bound and dropped back to pending: like a bound one": {before: func(w *world, name string) {
			bound(w, name)
			w.becomes(name, sandbox.PhasePending, v1alpha1.ReasonPodNotReady, "")
		}, releaseAt: at(began.Add(2 * time.Minute))},
		"scheduled already: keeps its time": {before: func(w *world, name string) {
			bound(w, name)
			w.set(name, func(s *sandbox.SandboxClaimStatus) { s.ReleaseAt = at(began.Add(time.Second)) })
		}, releaseAt: at(began.Add(time.Second))},
		"no phase: deleted at once":            {before: func(*world, string) {}, gone: true},
		"queued: deleted at once":              {before: func(w *world, name string) { w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonCeilingReached, "") }, gone: true},
		"pending, never having bound: deleted": {before: func(w *world, name string) { w.becomes(name, sandbox.PhasePending, v1alpha1.ReasonCreating, "") }, gone: true},
		"failed: left to the reaper":           {before: func(w *world, name string) { w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonClassNotFound, "") }},
		"failed after it was bound: left to the reaper": {before: func(w *world, name string) {
			bound(w, name)
			w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonSandboxNeverReady, "")
		}},
		"being deleted: left": {before: func(w *world, name string) {
			bound(w, name)
			w.finalizers(name, "example.test/hold")
			require.NoError(t, w.writes.delete(w.agent(), w.get(name)))
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			w.hold("s", "shell/default")
			claim := ClaimName("my-agent", "s", "shell/default")
			tt.before(w, claim)
			w.releasesOnce(claim, tt.gone, tt.releaseAt)
		})
	}
}

// releasesOnce releases the session of one claim, holds what is answered and written against what is wanted, and
// releases the claim again.
func (w *world) releasesOnce(claim string, gone bool, releaseAt *metav1.MicroTime) {
	t := w.t
	t.Helper()
	before := w.get(claim)
	var want []sandbox.ReleasedClaim
	if gone || releaseAt != nil {
		want = []sandbox.ReleasedClaim{{Name: claim, UID: before.UID, ReleaseAt: releaseAt, Deleted: gone}}
	}
	got, err := w.release(w.agent(), anyClaim, ofSession("s"), metav1.DryRunAll)
	require.NoError(t, err)
	assert.Equal(t, want, local(got.Claims))
	assert.Equal(t, before.ResourceVersion, w.get(claim).ResourceVersion, "a dry run changes nothing")

	got, err = w.release(w.agent(), anyClaim, ofSession("s"))
	require.NoError(t, err)
	assert.Equal(t, want, local(got.Claims))
	after, err := w.writes.get(w.agent(), claim)
	if gone {
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		return
	}
	require.NoError(t, err)
	assert.True(t, releaseAt.Equal(after.Status.ReleaseAt), "%v", after.Status.ReleaseAt)
	again, err := w.release(w.agent(), claim, sandbox.SandboxReleaseSpec{})
	require.NoError(t, err, "it is idempotent")
	assert.Len(t, again.Claims, len(want))
	assert.Equal(t, after.ResourceVersion, w.get(claim).ResourceVersion, "and writes once")
}

// local gives the claims with their times in the zone of the fake clock, so that they can be compared.
func local(claims []sandbox.ReleasedClaim) []sandbox.ReleasedClaim {
	for i := range claims {
		if claims[i].ReleaseAt != nil {
			claims[i].ReleaseAt = at(claims[i].ReleaseAt.UTC())
		}
	}
	return claims
}

func TestReleaseTakesTheRuntimesGrace(t *testing.T) {
	w := newWorld(t, 10)
	w.runtimes["my-agent"].Spec.Sandbox.ReleaseGrace = &metav1.Duration{Duration: time.Second}
	w.runtimes["my-agent"].Spec.Sandbox.MountReleaseGrace = &metav1.Duration{Duration: time.Hour}
	w.hold("s", "shell/a")
	plain := ClaimName("my-agent", "s", "shell/a")
	mounting := w.get(plain)
	mounting.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: ClaimName("my-agent", "s", "shell/b")}
	mounting.Spec.Handle, mounting.Spec.Mounts = "shell/b", []sandbox.SandboxMount{{Role: sandbox.MountRoleSession}}
	_, err := w.writes.create(w.agent(), mounting, origin{}, &metav1.CreateOptions{})
	require.NoError(t, err)
	for _, name := range []string{plain, mounting.Name} {
		w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	}

	_, err = w.release(w.agent(), anyClaim, ofSession("s"))
	require.NoError(t, err)
	assert.True(t, w.get(plain).Status.ReleaseAt.Time.Equal(w.clock.Now().Add(time.Second)))
	assert.True(t, w.get(mounting.Name).Status.ReleaseAt.Time.Equal(w.clock.Now().Add(time.Hour)), "a mounting claim has a grace of its own")
}

func TestReleaseIsOfTheSessionsClaimsAlone(t *testing.T) {
	w := newWorld(t, 10)
	w.hold("ended", "shell/a", "shell/b")
	w.hold("other", "shell/a")
	got, err := w.release(w.agent(), anyClaim, ofSession("ended"))
	require.NoError(t, err)
	assert.Len(t, got.Claims, 2)
	got, err = w.release(w.agent(), anyClaim, ofSession("ended"))
	require.NoError(t, err, "nothing to release is success")
	assert.Empty(t, got.Claims)

	other := w.get(ClaimName("my-agent", "other", "shell/a"))
	_, err = w.release(w.agent(), other.Name, sandbox.SandboxReleaseSpec{UID: "another"})
	requireStatus(t, err, http.StatusConflict, metav1.StatusReasonConflict)
	for _, spec := range []sandbox.SandboxReleaseSpec{{}, {Cancel: true}} {
		_, err = w.release(w.as("stranger"), other.Name, spec)
		requireStatus(t, err, http.StatusForbidden, metav1.StatusReasonForbidden)
	}
	for _, spec := range []sandbox.SandboxReleaseSpec{ofSession("ended"), cancelling(ofSession("ended"))} {
		_, err = w.release(w.as("stranger"), anyClaim, spec)
		requireStatus(t, err, http.StatusForbidden, metav1.StatusReasonForbidden)
	}
	got, err = w.release(w.agent(), other.Name, sandbox.SandboxReleaseSpec{UID: other.UID})
	require.NoError(t, err)
	assert.Len(t, got.Claims, 1)

	w.allowed["get sandboxclaims"] = true
	got, err = w.release(w.as("reader"), other.Name, sandbox.SandboxReleaseSpec{})
	require.NoError(t, err, "a claim that is gone is released, to whoever may know")
	assert.Empty(t, got.Claims)
}

// What was decided about a claim is carried out only while it is that claim still.
func TestReleaseDecidesAgainWhenTheClaimChanged(t *testing.T) {
	tests := map[string]struct {
		first, then func(w *world, name string)
		deleted     bool
		after       time.Duration // 0: not listed
	}{
		"just bound, and it was to be deleted: scheduled instead": {
			func(w *world, name string) { w.becomes(name, sandbox.PhasePending, v1alpha1.ReasonCreating, "") },
			func(w *world, name string) { w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "") },
			false, 2 * time.Minute,
		},
		"changed otherwise: deleted all the same": {
			func(*world, string) {},
			func(w *world, name string) { w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonCeilingReached, "") },
			true, 0,
		},
		"scheduled meanwhile: that time stands": {
			func(w *world, name string) { w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "") },
			func(w *world, name string) {
				w.set(name, func(s *sandbox.SandboxClaimStatus) { s.ReleaseAt = at(w.clock.Now().Add(time.Second)) })
			},
			false, time.Second,
		},
		"failed meanwhile: left": {
			func(w *world, name string) { w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "") },
			func(w *world, name string) { w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonSandboxRejected, "") },
			false, 0,
		},
		"gone meanwhile: nothing is left to do": {
			func(w *world, name string) { w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "") },
			func(w *world, name string) { require.NoError(w.t, w.writes.delete(w.agent(), w.get(name))) },
			false, 0,
		},
		"another claim of the name by now: left": {
			func(*world, string) {},
			func(w *world, name string) {
				require.NoError(w.t, w.writes.delete(w.agent(), w.get(name)))
				w.hold("s", "shell/default")
			},
			false, 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			w.hold("s", "shell/default")
			claim := ClaimName("my-agent", "s", "shell/default")
			tt.first(w, claim)
			read := w.get(claim)
			tt.then(w, claim)

			w.releasesAsDecidedAgain(read, tt.deleted, tt.after)
		})
	}
}

// releasesAsDecidedAgain releases what was read of a claim, and holds what becomes of the claim against what is wanted: it
// is deleted, or goes after so long; 0 is that it is left.
func (w *world) releasesAsDecidedAgain(read *sandbox.SandboxClaim, deleted bool, after time.Duration) {
	t := w.t
	t.Helper()
	got, err := w.Release.release(w.agent(), read, w.runtimes["my-agent"], false)
	require.NoError(t, err)
	if !deleted && after == 0 {
		assert.Nil(t, got)
		return
	}
	require.NotNil(t, got)
	assert.Equal(t, deleted, got.Deleted)
	if deleted {
		_, err := w.writes.get(w.agent(), read.Name)
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
		return
	}
	assert.True(t, got.ReleaseAt.Time.Equal(w.clock.Now().Add(after)), "%v", got.ReleaseAt)
	assert.True(t, w.get(read.Name).Status.ReleaseAt.Equal(got.ReleaseAt), "as it was told, so it is written")
}

func TestReleaseWithdrawn(t *testing.T) {
	w := newWorld(t, 10)
	w.registry.Spec.Sandboxes[0].MaxInstances = ptrTo[int32](4)
	w.runtimes["my-agent"].Spec.Sandbox.MaxPerSession = ptrTo[int32](4)
	w.hold("s", "shell/scheduled", "shell/used", "shell/failed", "shell/waiting")
	waiting := ClaimName("my-agent", "s", "shell/waiting")
	scheduled, used, failed := ClaimName("my-agent", "s", "shell/scheduled"), ClaimName("my-agent", "s", "shell/used"), ClaimName("my-agent", "s", "shell/failed")
	w.becomes(scheduled, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	w.becomes(used, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	w.becomes(failed, sandbox.PhaseFailed, v1alpha1.ReasonClassNotFound, "")
	schedule := func() {
		_, err := w.release(w.agent(), scheduled, sandbox.SandboxReleaseSpec{})
		require.NoError(t, err)
		require.NotNil(t, w.get(scheduled).Status.ReleaseAt)
	}
	schedule()
	before := map[string]string{used: w.get(used).ResourceVersion, failed: w.get(failed).ResourceVersion, waiting: w.get(waiting).ResourceVersion}
	live := []sandbox.ReleasedClaim{{Name: scheduled, UID: w.get(scheduled).UID}, {Name: used, UID: w.get(used).UID}, {Name: waiting, UID: w.get(waiting).UID}}
	w.clock.Step(time.Minute)

	got, err := w.release(w.agent(), anyClaim, cancelling(ofSession("s")), metav1.DryRunAll)
	require.NoError(t, err)
	assert.ElementsMatch(t, live, got.Claims)
	assert.NotNil(t, w.get(scheduled).Status.ReleaseAt, "a dry run changes nothing")

	got, err = w.release(w.agent(), anyClaim, cancelling(ofSession("s")))
	require.NoError(t, err)
	assert.ElementsMatch(t, live, got.Claims, "the claims that are live, none to be released")
	assert.Nil(t, w.get(scheduled).Status.ReleaseAt)
	assert.True(t, w.get(scheduled).Status.LastUsedAt.Time.Equal(w.clock.Now()), "it is a use, whatever the throttle says")
	for name, version := range before {
		assert.Equal(t, version, w.get(name).ResourceVersion, "nothing is written where there is nothing to withdraw")
	}

	schedule()
	for range 2 {
		got, err = w.release(w.agent(), scheduled, sandbox.SandboxReleaseSpec{Cancel: true, UID: w.get(scheduled).UID})
		require.NoError(t, err)
		assert.Equal(t, live[:1], got.Claims)
		assert.Nil(t, w.get(scheduled).Status.ReleaseAt)
	}
	got, err = w.release(w.agent(), failed, sandbox.SandboxReleaseSpec{Cancel: true})
	require.NoError(t, err)
	assert.Empty(t, got.Claims, "it has ended")
}

// A withdrawal that was decided on what was read is no use of a claim whose release somebody else withdrew meanwhile, and
// none of a claim that ended.
func TestReleaseWithdrawnMeanwhile(t *testing.T) {
	w := newWorld(t, 10)
	w.hold("s", "shell/default")
	name := ClaimName("my-agent", "s", "shell/default")
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	read := w.set(name, func(s *sandbox.SandboxClaimStatus) { s.ReleaseAt = at(w.clock.Now().Add(time.Minute)) })
	used := w.set(name, func(s *sandbox.SandboxClaimStatus) { s.ReleaseAt = nil })
	w.clock.Step(time.Minute)
	got, err := w.Release.cancel(w.agent(), read, false)
	require.NoError(t, err)
	assert.Equal(t, &sandbox.ReleasedClaim{Name: name, UID: read.UID}, got)
	assert.Equal(t, used.ResourceVersion, w.get(name).ResourceVersion)

	require.NoError(t, w.writes.delete(w.agent(), used))
	got, err = w.Release.cancel(w.agent(), read, false)
	require.NoError(t, err)
	assert.Nil(t, got)
}

func TestReleaseOfARuntimeThatIsGone(t *testing.T) {
	w := newWorld(t, 10)
	w.runtimes["my-agent"].Spec.Sandbox.ReleaseGrace = &metav1.Duration{Duration: time.Hour}
	w.hold("s", "shell/a", "shell/b")
	a, b := ClaimName("my-agent", "s", "shell/a"), ClaimName("my-agent", "s", "shell/b")
	w.becomes(a, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	delete(w.runtimes, "my-agent")

	for name, spec := range map[string]sandbox.SandboxReleaseSpec{anyClaim: ofSession("s"), a: {}} {
		_, err := w.release(w.agent(), name, spec)
		requireStatus(t, err, http.StatusForbidden, metav1.StatusReasonForbidden)
	}
	w.allowed["acquire agentruntimes"] = true
	got, err := w.release(w.as("admin"), b, sandbox.SandboxReleaseSpec{})
	require.NoError(t, err)
	require.Len(t, got.Claims, 1)
	assert.True(t, got.Claims[0].Deleted)

	_, err = w.release(w.as("admin"), anyClaim, ofSession("s"))
	require.NoError(t, err)
	assert.True(t, w.get(a).Status.ReleaseAt.Time.Equal(w.clock.Now().Add(omniav1alpha1.DefaultReleaseGrace)), "nobody is left to say another grace")
	_, err = w.release(w.as("admin"), a, sandbox.SandboxReleaseSpec{Cancel: true})
	require.NoError(t, err)
	assert.Nil(t, w.get(a).Status.ReleaseAt)
}
