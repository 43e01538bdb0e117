package sandboxclaim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestAcquireRecordsRequestedBy(t *testing.T) {
	w := newWorld(t, 10)
	body := acquireOf("s", "shell/default", 0)
	body.Spec.RequestedBy = &sandbox.RequestedBy{Subject: "pseudonym", Agent: "helper"}
	_, err := w.acquire(w.agent(), anyClaim, body)
	require.NoError(t, err)
	claim := w.get(ClaimName("my-agent", "s", "shell/default"))
	assert.Equal(t, &sandbox.RequestedBy{Subject: "pseudonym", Agent: "helper"}, claim.Spec.RequestedBy)

	body = acquireOf("s", "shell/default", 0)
	body.Spec.RequestedBy = &sandbox.RequestedBy{Subject: "another"}
	again, err := w.acquire(w.agent(), anyClaim, body)
	require.NoError(t, err, "nothing gates on it")
	assert.Equal(t, claim.UID, again.ClaimUID)
}

func TestAcquireAfterAWithdrawal_JoinsTheBackOfTheQueue(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	ctx, hangUp := context.WithCancel(w.agent())
	out := w.waiting(ctx, acquireOf("s", "shell/default", 25))
	w.becomes(name, sandbox.PhaseQueued, v1alpha1.ReasonCeilingReached, "all in use")
	w.clock.Step(time.Second)
	w.hold("other", "shell/default")
	hangUp()
	_, err := w.result(out)
	require.Error(t, err)
	_, err = w.writes.get(w.agent(), name)
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	w.clock.Step(time.Second)
	w.hold("s", "shell/default")
	other := w.get(ClaimName("my-agent", "other", "shell/default"))
	assert.True(t, w.get(name).Status.QueuedAt.After(other.Status.QueuedAt.Time), "behind whoever came meanwhile")
}

func TestAcquireAfterARelease_CreatesItAgain(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	first := w.get(name)
	released, err := w.release(w.agent(), anyClaim, ofSession("s"))
	require.NoError(t, err)
	require.Len(t, released.Claims, 1)
	require.True(t, released.Claims[0].Deleted)

	got, err := w.acquire(w.agent(), anyClaim, acquireOf("s", "shell/default", 0))
	require.NoError(t, err)
	assert.True(t, got.Created)
	assert.Equal(t, name, got.ClaimName)
	assert.NotEqual(t, first.UID, got.ClaimUID)
}

func TestAcquireReplacement_TakesTheSandboxsCurrentClass(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	w.hold("s", "shell/default")
	failed := w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonClassNotFound, "there is no ClusterSandboxClass shell")
	w.registry.Spec.Sandboxes[0].ClassRef.Name = "shell-2"
	w.registry.Spec.Sandboxes[0].MaxInstances = ptrTo[int32](7)
	w.hold("s", "shell/default")
	replacement := w.get(name)
	assert.Equal(t, failed.UID, replacement.Status.Replaces)
	assert.Equal(t, "shell-2", replacement.Spec.ClassRef.Name)
	assert.EqualValues(t, 7, *replacement.Spec.MaxInstances)
	assert.Equal(t, failed.Spec.Handle, replacement.Spec.Handle)
}

func TestAcquireReplacement_IsOnBehalfOfTheSame(t *testing.T) {
	w := newWorld(t, 10)
	name := ClaimName("my-agent", "s", "shell/default")
	body := acquireOf("s", "shell/default", 0)
	body.Spec.RequestedBy = &sandbox.RequestedBy{Subject: "pseudonym"}
	_, err := w.acquire(w.agent(), anyClaim, body)
	require.NoError(t, err)
	failed := w.becomes(name, sandbox.PhaseFailed, v1alpha1.ReasonSandboxNeverReady, "too long")

	body = acquireOf("s", "shell/default", 0)
	body.Spec.RequestedBy = &sandbox.RequestedBy{Subject: "another"}
	_, err = w.acquire(w.agent(), anyClaim, body)
	require.NoError(t, err)
	replacement := w.get(name)
	assert.Equal(t, failed.UID, replacement.Status.Replaces)
	assert.Equal(t, failed.Spec.RequestedBy, replacement.Spec.RequestedBy, "a forced promotion after the conversation needs to know")
}
