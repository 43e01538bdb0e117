package sandboxclaim

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

const anyClaim = v1alpha1.AnyClaim

func TestAcquireCreatesTheClaimOfItsKey(t *testing.T) {
	w := newWorld(t, 10)
	got, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	assert.True(t, got.Created)
	assert.EqualValues(t, 1, got.RetryAfterSeconds, "it is not bound, so the caller asks again")

	claim := w.get(got.ClaimName)
	assert.Equal(t, claim.UID, got.ClaimUID)
	assert.Equal(t, sandbox.ClassReference{Name: "shell", Kind: sandbox.ClusterSandboxClassKind}, claim.Spec.ClassRef)
	assert.EqualValues(t, 2, *claim.Spec.MaxInstances, "copied from the ToolRegistry")
	assert.Equal(t, map[string]string{v1alpha1.LabelAgentRuntime: "my-agent", v1alpha1.LabelSession: "s"}, claim.Labels)
	require.Len(t, claim.OwnerReferences, 1)
	assert.EqualValues(t, "runtime-uid", claim.OwnerReferences[0].UID)
	assert.Nil(t, claim.OwnerReferences[0].Controller)
	assert.True(t, writtenByAcquire(claim))
	assert.Nil(t, claim.Status.Wait, "who does not wait is never withdrawn")
	assert.NotNil(t, claim.Status.QueuedAt)

	again, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	assert.False(t, again.Created)
	assert.Equal(t, got.ClaimUID, again.ClaimUID)
}

// The limits leave room for one claim: whoever is second finds that it is the very one that it asks for.
func TestAcquireRacedGivesOneClaim(t *testing.T) {
	w := newWorld(t, 1000)
	w.registry.Spec.Sandboxes[0].MaxInstances = ptrTo[int32](1)
	w.runtimes["my-agent"].Spec.Sandbox.MaxPerSession = ptrTo[int32](1)
	var wg sync.WaitGroup
	uids := make([]string, 50)
	created := make([]bool, 50)
	for i := range uids {
		wg.Go(func() {
			got, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
			if assert.NoError(t, err) {
				uids[i], created[i] = string(got.ClaimUID), got.Created
			}
		})
	}
	wg.Wait()
	count := 0
	for i := range uids {
		assert.Equal(t, uids[0], uids[i])
		if created[i] {
			count++
		}
	}
	assert.Equal(t, 1, count, "one of them created it")
}

func TestAcquireWaits(t *testing.T) {
	tests := map[string]struct {
		meanwhile func(w *world, name string)
		phase     sandbox.Phase
		reason    string
	}{
		"bound meanwhile: its addresses": {func(w *world, name string) { w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "") }, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady},
		"the wait is over: as it stands, with the scheduler's words": {func(w *world, name string) {
			w.becomes(name, sandbox.PhasePending, v1alpha1.ReasonUnschedulable, "0/3 nodes")
			w.clock.Step(25 * time.Second)
		}, sandbox.PhasePending, v1alpha1.ReasonUnschedulable},
		"the server stops: told to ask again": {func(w *world, name string) {
			w.becomes(name, sandbox.PhasePending, v1alpha1.ReasonCreating, "")
			w.Waiters.Close()
		}, sandbox.PhasePending, v1alpha1.ReasonCreating},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			body := acquireOf("s", "shell/default", 25)
			out := w.waiting(w.agent(), body)
			tt.meanwhile(w, ClaimName("my-agent", "s", "shell/default"))
			got, err := w.result(out)
			require.NoError(t, err)
			assert.True(t, got.Created)
			if tt.phase == sandbox.PhaseBound {
				assert.Equal(t, "10.0.0.1:8080", got.Addresses["mcp"])
				assert.Zero(t, got.RetryAfterSeconds)
			} else {
				assert.Positive(t, got.RetryAfterSeconds)
				assert.Empty(t, got.Addresses)
			}
			// The last write may be newer than the answer where the server stopped.
			assert.Contains(t, []sandbox.Phase{tt.phase, ""}, got.Phase)
			assert.Contains(t, []string{tt.reason, ""}, got.Reason)
			assert.Zero(t, w.waiters(), "nobody is left waiting")
		})
	}
}

func TestAcquireHoldsALease(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	first := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	lease := w.get(name).Status.Wait
	require.NotNil(t, lease)
	assert.EqualValues(t, 35, lease.DurationSeconds)

	shorter := w.waiting(w.agent(), acquireOf("s", "shell/default", 5))
	assert.Equal(t, lease, w.get(name).Status.Wait, "a new wait never shortens it")
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	for _, out := range []<-chan outcome{first, shorter} {
		_, err := w.result(out)
		require.NoError(t, err)
	}
}

func TestAcquireReplacesAFailureOnce(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	first, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonClassNotFound, "there is no ClusterSandboxClass shell")

	second, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	assert.True(t, second.Created)
	assert.NotEqual(t, first.ClaimUID, second.ClaimUID)
	assert.Equal(t, first.ClaimUID, w.get(name).Status.Replaces)

	w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonClassNotFound, "there is no ClusterSandboxClass shell")
	_, err = w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	assert.True(t, v1alpha1.IsSandboxFailed(err), "%v", err)
	assert.Contains(t, err.Error(), "there is no ClusterSandboxClass shell", "it quotes the claim's Ready message")
	assert.Equal(t, second.ClaimUID, w.get(name).UID, "the second failure stays until it is reaped")
}

func TestAcquireReplacesAFailureAfterBound(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	for range 3 {
		_, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
		require.NoError(t, err, "a replacement that was Bound is no second failure")
		w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
		w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonSandboxNeverReady, "")
	}
}

func TestAcquireWaiterSeesAFailure(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	uid := w.get(name).UID
	w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonSandboxRejected, "no")
	require.Eventually(t, func() bool { c, err := w.writes.get(w.agent(), name); return err == nil && c.UID != uid }, patience, time.Millisecond, "the waiter replaces it")
	w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonSandboxRejected, "no again")
	_, err := w.result(out)
	assert.True(t, v1alpha1.IsSandboxFailed(err), "%v", err)
}

func TestAcquireCreatesAVanishedClaimAgainOnce(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	first := w.get(name)
	require.NoError(t, w.writes.delete(w.agent(), first))
	require.Eventually(t, func() bool { c, err := w.writes.get(w.agent(), name); return err == nil && c.UID != first.UID }, patience, time.Millisecond)
	require.NoError(t, w.writes.delete(w.agent(), w.get(name)))
	_, err := w.result(out)
	assert.True(t, v1alpha1.IsSandboxEnded(err), "%v", err)
}

func TestAcquireWaitsOutATerminatingPredecessor(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	_, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	first := w.get(name)
	w.finalizers(name, "example.test/hold")
	require.NoError(t, w.writes.delete(w.agent(), w.get(name)))
	_, err = w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	assert.True(t, apierrors.IsServerTimeout(err), "whoever does not wait is told to ask again: %v", err)

	got := make(chan outcome, 1)
	go func() {
		status, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 25))
		got <- outcome{status, err}
	}()
	require.Eventually(t, func() bool { return w.waiters() == 1 }, patience, time.Millisecond)
	w.finalizers(name)
	require.Eventually(t, func() bool { c, err := w.writes.get(w.agent(), name); return err == nil && c.UID != first.UID }, patience, time.Millisecond)
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	status, err := w.result(got)
	require.NoError(t, err)
	assert.NotEqual(t, first.UID, status.ClaimUID)
}

// finalizers sets a claim's finalizers, as a person might.
func (w *world) finalizers(name string, finalizers ...string) {
	w.t.Helper()
	_, _, err := w.Claims.Update(asClaims(w.as("admin")), name, rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		claim := old.DeepCopyObject().(*sandbox.SandboxClaim)
		claim.Finalizers = finalizers
		return claim, nil
	}), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

func TestAcquireAtMaxWaiters(t *testing.T) {
	w := newWorld(t, 1)
	out := w.waiting(w.agent(), acquireOf("s", "shell/default", 25))
	got, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 25))
	require.NoError(t, err)
	assert.Positive(t, got.RetryAfterSeconds, "answered at once, and told when to ask again")
	w.Waiters.Close()
	_, err = w.result(out)
	require.NoError(t, err)
}

func TestAcquireRefusals(t *testing.T) {
	tests := map[string]struct {
		before func(w *world)
		body   *sandbox.SandboxAcquire
		reason metav1.StatusReason
		code   int32
		says   string
	}{
		"no handle":               {nil, acquireOf("s", "", 0), metav1.StatusReasonInvalid, 422, "spec.handle"},
		"another's metadata.name": {nil, func() *sandbox.SandboxAcquire { b := acquireOf("s", "shell/default", 0); b.Name = "x"; return b }(), metav1.StatusReasonBadRequest, 400, "metadata.name"},
		"a declaration": {nil, func() *sandbox.SandboxAcquire {
			b := acquireOf("s", "shell/default", 0)
			b.Spec.Declaration = &sandbox.Declaration{}
			return b
		}(), v1alpha1.StatusReasonNotYetSupported, 422, "spec.declaration"},
		"sandboxes disabled":        {func(w *world) { w.runtimes["my-agent"].Spec.Sandbox = nil }, acquireOf("s", "shell/default", 0), v1alpha1.StatusReasonSandboxesDisabled, 403, "spec.sandbox.enabled"},
		"no ToolRegistry":           {func(w *world) { w.registry = nil }, acquireOf("s", "shell/default", 0), v1alpha1.StatusReasonUnknownSandbox, 422, "toolRegistryRef"},
		"a sandbox not declared":    {nil, acquireOf("s", "browser/default", 0), v1alpha1.StatusReasonUnknownSandbox, 422, "browser"},
		"a sandbox with targetPath": {nil, acquireOf("s", "project/default", 0), v1alpha1.StatusReasonNotYetSupported, 422, "targetPath"},
		"mustExist, and none does": {nil, func() *sandbox.SandboxAcquire {
			b := acquireOf("s", "shell/default", 0)
			b.Spec.MustExist = true
			return b
		}(), v1alpha1.StatusReasonSandboxEnded, 410, "mustExist"},
		"a sandbox of an impossible class": {func(w *world) { w.registry.Spec.Sandboxes[0].ClassRef.Kind = "Class" }, acquireOf("s", "shell/default", 0), v1alpha1.StatusReasonUnknownSandbox, 422, "mend it there"},
		"a sandbox of no class":            {func(w *world) { w.registry.Spec.Sandboxes[0].ClassRef.Name = "" }, acquireOf("s", "shell/default", 0), v1alpha1.StatusReasonUnknownSandbox, 422, "ToolRegistry agents/tools"},
		"the sandbox's maxInstances":       {func(w *world) { w.hold("s", "shell/a", "shell/b") }, acquireOf("s", "shell/default", 0), v1alpha1.StatusReasonMaxInstances, 403, "maxInstances"},
		"the runtime's maxPerSession": {func(w *world) {
			w.registry.Spec.Sandboxes[0].MaxInstances = ptrTo[int32](9)
			w.hold("s", "shell/a", "shell/b", "shell/c")
		}, acquireOf("s", "shell/default", 0), v1alpha1.StatusReasonMaxPerSession, 403, "maxPerSession"},
		"limits of another session: no refusal": {func(w *world) { w.hold("other", "shell/a", "shell/b") }, acquireOf("s", "shell/default", 0), "", 0, ""},
		"failed claims hold no place: no refusal": {func(w *world) {
			w.hold("s", "shell/a", "shell/b")
			w.becomes(ClaimName("my-agent", "s", "shell/a"), sandbox.PhaseFailed, "X", "")
		}, acquireOf("s", "shell/default", 0), "", 0, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			if tt.before != nil {
				tt.before(w)
			}
			_, err := w.acquire(w.agent(), anyClaim, tt.body)
			if tt.reason == "" {
				require.NoError(t, err)
				return
			}
			requireStatus(t, err, tt.code, tt.reason)
			assert.Contains(t, err.Error(), tt.says)
		})
	}
}

func ptrTo[T interface{ ~int32 }](v T) *T { return &v }

// hold acquires the session's claims of these handles.
func (w *world) hold(session string, handles ...string) {
	w.t.Helper()
	for _, h := range handles {
		_, err := w.acquire(w.agent(), anyClaim, acquireOf(session, h, 0))
		require.NoError(w.t, err)
	}
}

func requireStatus(t *testing.T, err error, code int32, reason metav1.StatusReason) {
	t.Helper()
	require.Error(t, err)
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	assert.Equal(t, reason, status.Status().Reason, "%v", err)
	assert.Equal(t, code, status.Status().Code, "%v", err)
}

func TestAcquireByName(t *testing.T) {
	w := newWorld(t, 10)
	w.runtimes["other"] = &omniav1alpha1.AgentRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}, Spec: w.runtimes["my-agent"].Spec}
	created, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)

	got, err := w.acquire(w.agent(), created.ClaimName, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	assert.Equal(t, created.ClaimUID, got.ClaimUID)

	_, err = w.acquire(w.agent(), "my-agent-sbx-none", acquireOf("s", "shell/default", 0))
	requireStatus(t, err, http.StatusNotFound, metav1.StatusReasonNotFound)

	_, err = w.acquire(w.agent(), created.ClaimName, acquireOf("s", "shell/another", 0))
	requireStatus(t, err, http.StatusConflict, metav1.StatusReasonConflict)

	foreign := acquireOf("s", "shell/default", 0)
	foreign.Spec.AgentRuntime = "other"
	_, err = w.acquire(w.as("other-facade"), created.ClaimName, foreign)
	requireStatus(t, err, http.StatusNotFound, metav1.StatusReasonNotFound)
	w.allowed["get sandboxclaims"] = true
	_, err = w.acquire(w.as("other-facade"), created.ClaimName, foreign)
	requireStatus(t, err, http.StatusConflict, metav1.StatusReasonConflict)

	hand, err := w.byHand(&sandbox.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}, Spec: sandbox.SandboxClaimSpec{
		AgentRuntimeRef: &sandbox.AgentRuntimeReference{Name: "my-agent"}, ClassRef: sandbox.ClassReference{Name: "c", Kind: sandbox.SandboxClassKind}, SessionID: "s", Handle: "shell/hand"}})
	require.NoError(t, err)
	w.becomes(hand.Name, sandbox.PhaseFailed, v1alpha1.ReasonClassNotFound, "no class")
	_, err = w.acquire(w.agent(), hand.Name, acquireOf("s", "shell/hand", 0))
	assert.True(t, v1alpha1.IsSandboxFailed(err), "a failed claim by hand is never replaced: %v", err)
	assert.Contains(t, err.Error(), "delete it and create it again")
}

func TestAcquireDryRun(t *testing.T) {
	w := newWorld(t, 10)
	obj, err := w.Acquire.Create(w.agent(), anyClaim, acquireOf("s", "shell/default", 25), nil, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	assert.True(t, obj.(*sandbox.SandboxAcquire).Status.Created)
	_, err = w.writes.get(w.agent(), ClaimName("my-agent", "s", "shell/default"))
	assert.True(t, apierrors.IsNotFound(err))
}

func TestAcquireOfABoundClaimIsAUse(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	before := w.get(name)

	w.clock.Step(14 * time.Minute)
	w.hold("s", "shell/default")
	assert.Equal(t, before.ResourceVersion, w.get(name).ResourceVersion, "within the throttle nothing is written")
	w.clock.Step(time.Minute)
	w.hold("s", "shell/default")
	assert.True(t, w.get(name).Status.LastUsedAt.Time.Equal(w.clock.Now()))
}
