package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// ends releases, or with a claim's name in place of - that claim, and gives what became of the claims.
func (w *world) ends(set versioned.Interface, name string, spec v1alpha1.SandboxReleaseSpec) ([]v1alpha1.ReleasedClaim, error) {
	got, err := set.SandboxV1alpha1().SandboxClaims(w.namespace).Release(w.t.Context(), name, &v1alpha1.SandboxRelease{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return got.Status.Claims, nil
}

func (w *world) read(name string) *v1alpha1.SandboxClaim {
	w.t.Helper()
	claim, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return claim
}

func TestRelease_OfABoundClaim_ScheduledUntilItIsUsed(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claims := w.agent.SandboxV1alpha1().SandboxClaims(w.namespace)
	claim := w.bound("s1")
	other := w.bound("s2")
	session := v1alpha1.SandboxReleaseSpec{AgentRuntime: runtimeName, SessionID: "s1"}
	withdrawn := session
	withdrawn.Cancel = true

	uses := map[string]func() error{
		"its session's release withdrawn": func() error { _, err := w.ends(w.agent, v1alpha1.AnyClaim, withdrawn); return err },
		"its own release withdrawn": func() error {
			_, err := w.ends(w.agent, claim.Name, v1alpha1.SandboxReleaseSpec{UID: claim.UID, Cancel: true})
			return err
		},
		"touched": func() error {
			_, err := claims.Touch(t.Context(), claim.Name, &v1alpha1.SandboxTouch{Spec: v1alpha1.SandboxTouchSpec{UID: claim.UID}}, metav1.CreateOptions{})
			return err
		},
		"acquired": func() error { _, err := w.acquire(w.agent, "s1"); return err },
	}
	for name, use := range uses {
		t.Run(name+": kept", func(t *testing.T) {
			before := time.Now().Truncate(time.Microsecond)
			got, err := w.ends(w.agent, v1alpha1.AnyClaim, session)
			require.NoError(t, err)
			after := time.Now()
			require.Len(t, got, 1, "the other session's claim is left")
			assert.Equal(t, claim.UID, got[0].UID)
			assert.False(t, got[0].Deleted)
			require.NotNil(t, got[0].ReleaseAt)
			at := got[0].ReleaseAt.Add(-omniav1alpha1.DefaultReleaseGrace)
			assert.False(t, at.Before(before) || at.After(after), "released between %s and %s, to go at %s", before, after, got[0].ReleaseAt)

			again, err := w.ends(w.agent, claim.Name, v1alpha1.SandboxReleaseSpec{UID: claim.UID})
			require.NoError(t, err)
			require.Len(t, again, 1)
			assert.True(t, again[0].ReleaseAt.Equal(got[0].ReleaseAt), "one that is scheduled keeps its time")
			require.True(t, w.read(claim.Name).Status.ReleaseAt.Equal(got[0].ReleaseAt))

			require.NoError(t, use())
			used := w.read(claim.Name)
			assert.Equal(t, claim.UID, used.UID)
			assert.Nil(t, used.Status.ReleaseAt)
			assert.False(t, used.Status.LastUsedAt.Time.Before(before), "it is a use")
		})
	}
	assert.Nil(t, w.read(other.Name).Status.ReleaseAt)
}

func TestRelease_GraceOver_TheClaimGoesWithItsObjects(t *testing.T) {
	s := newSmall(t, onFakeNodes, func(r *framework.RuntimeWrapper) { r.ReleaseGrace(2 * time.Second) })
	name := s.ask("s")
	s.history.First(t, framework.BoundTimeout, name, "is Bound", framework.Bound)
	got, err := s.ends(s.agent, v1alpha1.AnyClaim, v1alpha1.SandboxReleaseSpec{AgentRuntime: smallName, SessionID: "s"})
	require.NoError(t, err)
	require.Len(t, got, 1)
	gone := s.history.WaitGone(t, name)
	assert.False(t, gone.Before(got[0].ReleaseAt.Time), "not before its time")
	assert.Less(t, gone.Sub(got[0].ReleaseAt.Time), framework.Shortly)
	s.noObjects()

	got, err = s.ends(s.agent, v1alpha1.AnyClaim, v1alpha1.SandboxReleaseSpec{AgentRuntime: smallName, SessionID: "s"})
	require.NoError(t, err, "nothing to release is success")
	assert.Empty(t, got)
}

func TestRelease_NeverBound_DeletedAtOnce(t *testing.T) {
	w := newWorld(t, unplaceable)
	got, err := w.acquireNow(w.agent, "s")
	require.NoError(t, err)
	claim := w.Claim(t, w.namespace, got.ClaimName, unschedulable)
	released, err := w.ends(w.agent, v1alpha1.AnyClaim, v1alpha1.SandboxReleaseSpec{AgentRuntime: runtimeName, SessionID: "s"})
	require.NoError(t, err)
	assert.Equal(t, []v1alpha1.ReleasedClaim{{Name: claim.Name, UID: claim.UID, Deleted: true}}, released)
	_, err = w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Get(t.Context(), claim.Name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "got %v", err)
	w.noObjects()
}

func TestRelease_RuntimeGone_WhoeverMayAcquireForItStillMay(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	agent, err := w.AsServiceAccount(t.Context(), w.namespace, runtimeName+"-facade")
	require.NoError(t, err)
	_, err = w.Kubectl(t.Context(), "--namespace", w.namespace, "delete", "agentruntime", runtimeName, "--cascade=orphan")
	require.NoError(t, err)
	for _, server := range w.servers.List { // each hears of it by itself
		set, err := versioned.NewForConfig(server.Direct(agent))
		require.NoError(t, err)
		framework.Eventually(t, framework.NoticeTimeout, "its own ServiceAccount is nobody's by now", func(context.Context) (bool, error) {
			_, err := w.ends(set, claim.Name, v1alpha1.SandboxReleaseSpec{Cancel: true})
			return apierrors.IsForbidden(err), nil
		}, func(forbidden bool) bool { return forbidden })
	}
	_, err = w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Touch(t.Context(), claim.Name, &v1alpha1.SandboxTouch{}, metav1.CreateOptions{})
	require.True(t, apierrors.IsNotFound(err), "nothing says how long it may be idle: %v", err)
	assert.Contains(t, err.Error(), "agentruntimes")
	got, err := w.ends(w.Sandbox, claim.Name, v1alpha1.SandboxReleaseSpec{})
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.NotNil(t, got[0].ReleaseAt)
}

func TestTouchAndRelease_Refused(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	_, err := w.agent.SandboxV1alpha1().SandboxClaims(w.namespace).Touch(t.Context(), claim.Name,
		&v1alpha1.SandboxTouch{Spec: v1alpha1.SandboxTouchSpec{UID: "another"}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsConflict(err), "got %v", err)
	for _, cancel := range []bool{false, true} {
		_, err = w.ends(w.agent, claim.Name, v1alpha1.SandboxReleaseSpec{UID: "another", Cancel: cancel})
		require.True(t, apierrors.IsConflict(err), "got %v", err)
		_, err = w.ends(w.agent, v1alpha1.AnyClaim, v1alpha1.SandboxReleaseSpec{Cancel: cancel})
		require.True(t, apierrors.IsInvalid(err), "got %v", err)
	}
}
