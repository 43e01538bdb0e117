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
	"k8s.io/apimachinery/pkg/types"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func (w *world) touch(ctx context.Context, name string, uid types.UID) (*sandbox.SandboxTouchStatus, error) {
	obj, err := w.Touch.Create(ctx, name, &sandbox.SandboxTouch{Spec: sandbox.SandboxTouchSpec{UID: uid}}, nil, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &obj.(*sandbox.SandboxTouch).Status, nil
}

func TestTouch(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	before := w.get(name)

	w.clock.Step(time.Minute)
	got, err := w.touch(w.agent(), name, before.UID)
	require.NoError(t, err)
	assert.Equal(t, before.UID, got.ClaimUID)
	assert.Equal(t, before.ResourceVersion, w.get(name).ResourceVersion, "within the throttle nothing is written")

	w.clock.Step(15 * time.Minute)
	_, err = w.touch(w.agent(), name, "")
	require.NoError(t, err)
	assert.True(t, w.get(name).Status.LastUsedAt.Time.Equal(w.clock.Now()))

	_, err = w.writes.updateStatus(w.agent(), w.get(name), func(c *sandbox.SandboxClaim) (bool, error) {
		c.Status.ReleaseAt = &metav1.MicroTime{Time: w.clock.Now().Add(time.Minute)}
		return true, nil
	})
	require.NoError(t, err)
	_, err = w.touch(w.agent(), name, "")
	require.NoError(t, err)
	assert.Nil(t, w.get(name).Status.ReleaseAt, "a use withdraws a release, whatever the throttle says")
}

func TestTouchRefusals(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")

	_, err := w.touch(w.agent(), anyClaim, "")
	requireStatus(t, err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	_, err = w.touch(w.agent(), name, "another")
	requireStatus(t, err, http.StatusConflict, metav1.StatusReasonConflict)
	for what, claim := range map[string]string{"a foreign claim": name, "an unknown one": "my-agent-sbx-none"} {
		_, err = w.touch(w.as("stranger"), claim, "")
		requireStatus(t, err, http.StatusForbidden, metav1.StatusReasonForbidden)
		assert.Contains(t, err.Error(), "no such claim, or not one of a runtime that you may speak for", what+" looks the same")
	}
	w.allowed["get sandboxclaims"] = true
	_, err = w.touch(w.as("reader"), "my-agent-sbx-none", "")
	requireStatus(t, err, http.StatusNotFound, metav1.StatusReasonNotFound)

	w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonClassNotFound, "")
	_, err = w.touch(w.agent(), name, "")
	requireStatus(t, err, http.StatusConflict, metav1.StatusReasonConflict)

	delete(w.runtimes, "my-agent")
	_, err = w.touch(w.as("stranger"), name, "")
	requireStatus(t, err, http.StatusForbidden, metav1.StatusReasonForbidden)
	w.allowed["acquire agentruntimes"] = true
	_, err = w.touch(w.as("admin"), name, "")
	requireStatus(t, err, http.StatusNotFound, metav1.StatusReasonNotFound)
	assert.Contains(t, err.Error(), "agentruntimes", "it is the runtime that is gone")
}

func TestCallers(t *testing.T) {
	w := newWorld(t, 10)
	_, err := w.acquire(w.as("stranger"), anyClaim, acquireOf("s", "shell/default", 0))
	requireStatus(t, err, http.StatusForbidden, metav1.StatusReasonForbidden)
	assert.Contains(t, err.Error(), "the verb acquire")

	missing := acquireOf("s", "shell/default", 0)
	missing.Spec.AgentRuntime = "none"
	_, err = w.acquire(w.as("stranger"), anyClaim, missing.DeepCopyObject().(*sandbox.SandboxAcquire))
	requireStatus(t, err, http.StatusForbidden, metav1.StatusReasonForbidden)
	w.allowed["acquire agentruntimes"] = true
	_, err = w.acquire(w.as("gateway"), anyClaim, missing)
	requireStatus(t, err, http.StatusNotFound, metav1.StatusReasonNotFound)
	_, err = w.acquire(w.as("gateway"), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
}

func TestCallersThatShareAServiceAccount_AskForAndRenewTheOthersSandboxes(t *testing.T) {
	w := newWorld(t, 10)
	w.runtimes["other"] = &omniav1alpha1.AgentRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other", UID: "other-uid"}, Spec: w.runtimes["my-agent"].Spec}
	theirs := acquireOf("s", "shell/default", 0)
	theirs.Spec.AgentRuntime = "other"
	_, err := w.acquire(w.as("other-facade"), anyClaim, theirs)
	require.NoError(t, err)
	name := ClaimName("other", "s", "shell/default")
	w.becomes(name, sandbox.PhaseBound, v1alpha1.ReasonSandboxReady, "")
	w.clock.Step(15 * time.Minute)
	_, err = w.touch(w.agent(), name, "")
	requireStatus(t, err, http.StatusForbidden, metav1.StatusReasonForbidden)

	w.runtimes["other"].Spec.PodOverrides = &omniav1alpha1.PodOverrides{ServiceAccountName: "my-agent-facade"}
	_, err = w.touch(w.agent(), name, "")
	require.NoError(t, err)
	assert.True(t, w.get(name).Status.LastUsedAt.Time.Equal(w.clock.Now()))
	got, err := w.acquire(w.agent(), anyClaim, theirs)
	require.NoError(t, err)
	assert.Equal(t, name, got.ClaimName)
}

func TestClaimByHand(t *testing.T) {
	w := newWorld(t, 10)
	good := func(name string) *sandbox.SandboxClaim {
		return &sandbox.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: sandbox.SandboxClaimSpec{
			AgentRuntimeRef: &sandbox.AgentRuntimeReference{Name: "my-agent"}, ClassRef: sandbox.ClassReference{Name: "c", Kind: sandbox.SandboxClassKind}, SessionID: "s"}}
	}
	forged := good("forged")
	forged.Status = sandbox.SandboxClaimStatus{Phase: sandbox.PhaseBound, Replaces: "x", Conditions: []metav1.Condition{provenance(1, metav1.Now())}}
	created, err := w.byHand(forged)
	require.NoError(t, err)
	assert.False(t, writtenByAcquire(created))
	assert.Empty(t, created.Status.Phase)
	assert.Empty(t, created.Status.Replaces)
	assert.NotNil(t, created.Status.QueuedAt)

	target := good("target")
	target.Spec.TargetPath = "projects/x"
	_, err = w.byHand(target)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.Contains(t, err.Error(), "spec.targetPath")
}

func TestStatusUpdateKeepsWhatIsWrittenOnce(t *testing.T) {
	w := newWorld(t, 10)
	w.hold("s", "shell/default")
	name := ClaimName("my-agent", "s", "shell/default")
	before := w.get(name)
	after, err := w.writes.updateStatus(w.agent(), before, func(c *sandbox.SandboxClaim) (bool, error) {
		c.Spec.SessionID, c.Labels, c.Status.QueuedAt, c.Status.Replaces, c.Status.Conditions = "x", nil, nil, "x", nil
		c.Status.Phase = sandbox.PhasePending
		return true, nil
	})
	require.NoError(t, err)
	assert.Equal(t, before.Spec, after.Spec)
	assert.Equal(t, before.Labels, after.Labels)
	assert.True(t, before.Status.QueuedAt.Equal(after.Status.QueuedAt))
	assert.Empty(t, after.Status.Replaces)
	assert.True(t, writtenByAcquire(after), "nobody removes the provenance")
	assert.Equal(t, sandbox.PhasePending, after.Status.Phase)
	assert.Equal(t, before.Generation, after.Generation)
}
