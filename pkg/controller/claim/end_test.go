package claim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

const deleteClaim = "delete SandboxClaim"

// boundWorld holds one claim that has been Bound since began.
func boundWorld(t *testing.T) *world {
	w := newWorld(t, newClaim())
	w.settle()
	w.serve()
	w.settle()
	require.Equal(t, v1alpha1.PhaseBound, w.claim().Status.Phase)
	w.told()
	return w
}

func TestIdleClaim(t *testing.T) {
	w := boundWorld(t)
	w.clock.SetTime(began.Add(30*time.Minute - time.Microsecond))
	did, result, err := w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did)
	assert.Equal(t, time.Microsecond, result.RequeueAfter, "it is due at its moment, and not before")

	w.clock.SetTime(began.Add(30 * time.Minute))
	did, _, err = w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{"read SandboxClaim", "read AgentRuntime", deleteClaim}, did, "it is read again before it is deleted")
	assert.Equal(t, []string{
		"Normal Reaped nobody has used claim my-agent-sbx-a since 2026-01-02T03:04:05Z",
		"Normal Reaped nobody has used claim my-agent-sbx-a since 2026-01-02T03:04:05Z",
	}, w.told(), "the claim, and its runtime")
}

func TestReleasedClaim(t *testing.T) {
	w := boundWorld(t)
	claim := w.claim()
	claim.Status.ReleaseAt = &metav1.MicroTime{Time: began.Add(2 * time.Minute)}
	require.NoError(t, w.claims.Status().Update(t.Context(), claim))
	_, result, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, 2*time.Minute, result.RequeueAfter)
	w.clock.SetTime(began.Add(2 * time.Minute))
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Contains(t, did, deleteClaim)
	assert.Contains(t, w.told()[0], "Normal Released")
}

func TestDueClaimThatWasUsed(t *testing.T) {
	t.Run("before it was read again: kept", func(t *testing.T) {
		w := boundWorld(t)
		cached := w.claim()
		used := w.claim()
		used.Status.LastUsedAt = &metav1.MicroTime{Time: began.Add(29 * time.Minute)}
		require.NoError(t, w.claims.Status().Update(t.Context(), used))
		w.clock.SetTime(began.Add(30 * time.Minute))
		result, err := w.r.end(t.Context(), cached)
		require.NoError(t, err)
		assert.Equal(t, soon, result.RequeueAfter)
		assert.NotEmpty(t, w.claim().UID)
	})
	t.Run("its runtime's idleTimeout was raised a moment ago: kept", func(t *testing.T) {
		w := boundWorld(t)
		w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.IdleTimeout = &metav1.Duration{Duration: time.Hour} })
		w.clock.SetTime(began.Add(30 * time.Minute))
		_, err := w.r.end(t.Context(), w.claim())
		require.NoError(t, err)
		assert.NotEmpty(t, w.claim().UID)
	})
	t.Run("after that: not deleted, and looked at again", func(t *testing.T) {
		w := boundWorld(t)
		w.clock.SetTime(began.Add(30 * time.Minute))
		w.r.Claims = &usedBeforeItsEnd{Client: w.r.Claims, use: func() {
			used := w.claim()
			used.Status.LastUsedAt = &metav1.MicroTime{Time: began.Add(30 * time.Minute)}
			require.NoError(t, w.claims.Status().Update(t.Context(), used))
		}}
		_, result, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, soon, result.RequeueAfter)
		assert.Empty(t, w.told())
		assert.Equal(t, v1alpha1.PhaseBound, w.claim().Status.Phase)
	})
}

// usedBeforeItsEnd has the claim used just before it is deleted.
type usedBeforeItsEnd struct {
	client.Client
	use func()
}

func (c *usedBeforeItsEnd) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	c.use()
	return c.Client.Delete(ctx, object, opts...)
}

// A deadline may pass while a claim is worked on for another reason.
func TestDueWhileItIsReconciled(t *testing.T) {
	w := boundWorld(t)
	w.clock.SetTime(began.Add(30*time.Minute - time.Millisecond))
	require.NoError(t, w.host.Delete(t.Context(), w.deployment()))
	w.r.Host = &meanwhile{Client: w.r.Host, before: func(string) { w.clock.SetTime(began.Add(30*time.Minute + time.Millisecond)) }}
	w.refuse["create Deployment"] = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, sandboxName, assert.AnError)
	claim := w.claim()
	claim.Status.ReleaseAt = &metav1.MicroTime{Time: began.Add(30 * time.Minute)}
	require.NoError(t, w.claims.Status().Update(t.Context(), claim))
	_, result, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, atOnce, result.RequeueAfter, "it is not forgotten")
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Contains(t, did, deleteClaim)
}

func TestUnbuildableForTooLong(t *testing.T) {
	w := newWorld(t, newClaim())
	w.refuse["create Service"] = apierrors.NewServiceUnavailable("the server is not there")
	_, _, err := w.reconcile()
	require.Error(t, err)
	w.clock.SetTime(began.Add(30 * time.Minute))
	_, _, err = w.reconcile()
	require.Error(t, err)
	assert.Equal(t, v1alpha1.PhaseFailed, w.claim().Status.Phase, "what cannot be built holds no slot for ever")
	assert.Equal(t, v1alpha1.ReasonSandboxNeverReady, w.ready().Reason)
}

func TestPendingForTooLong(t *testing.T) {
	w := newWorld(t, newClaim())
	w.change(func(s *omniav1alpha1.AgentRuntimeSandbox) { s.IdleTimeout = &metav1.Duration{Duration: time.Minute} })
	w.settle()
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
	w.podWaits("ImagePullBackOff", "no such image")
	w.settle()
	w.clock.SetTime(began.Add(10*time.Minute - time.Second))
	did, result, err := w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did, "ten minutes at least, however short the idleTimeout")
	assert.Equal(t, time.Second, result.RequeueAfter)

	w.clock.SetTime(began.Add(10 * time.Minute))
	w.told()
	w.settle()
	assert.Equal(t, v1alpha1.PhaseFailed, w.claim().Status.Phase)
	assert.Equal(t, v1alpha1.ReasonSandboxNeverReady, w.ready().Reason)
	assert.Contains(t, w.ready().Message, "no such image", "what it waited for is the cause")
	assert.False(t, w.onHost(&appsv1.Deployment{}), "it holds no slot any longer")

	w.clock.SetTime(began.Add(20 * time.Minute))
	did, _, err = w.reconcile()
	require.NoError(t, err)
	assert.Contains(t, did, deleteClaim, "failed claims do not pile up")
}

func TestReadyAtTheLastMoment(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	w.serve()
	w.clock.SetTime(began.Add(time.Hour))
	w.settle()
	assert.Equal(t, v1alpha1.PhaseBound, w.claim().Status.Phase, "what is ready at last is not ended for not having been")
}

func TestRuntimeGone(t *testing.T) {
	w := boundWorld(t)
	require.NoError(t, w.host.Delete(t.Context(), enabledRuntime()))
	_, result, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, 30*time.Minute, result.RequeueAfter, "a claim without its runtime lives by the defaults")
	w.clock.SetTime(began.Add(30 * time.Minute))
	_, _, err = w.reconcile()
	require.NoError(t, err)
	err = w.claims.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: claimName}, &v1alpha1.SandboxClaim{})
	assert.True(t, apierrors.IsNotFound(err))
}
