package claim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

const patchStatus = "patch status SandboxClaim"

func TestNewClaim(t *testing.T) {
	w := newWorld(t, newClaim())

	did, _, err := w.reconcile()
	require.NoError(t, err)
	require.Len(t, did, 5)
	assert.ElementsMatch(t, []string{patchStatus, "create NetworkPolicy"}, did[:2], "the class is on record, and the policy stands, before a pod is asked for")
	assert.Equal(t, []string{"create NetworkPolicy", "create Deployment", "create Service"}, did[2:], "and the namespace's floor")
	claim := w.claim()
	assert.Equal(t, v1alpha1.PhasePending, claim.Status.Phase)
	assert.Equal(t, v1alpha1.ReasonCreating, w.ready().Reason)
	assert.Equal(t, sandboxName, claim.Status.SandboxName)
	assert.Equal(t, &shellClass().Spec, claim.Status.Class)
	assert.EqualValues(t, 1, claim.Status.ObservedGeneration)
	assert.True(t, claim.Status.LastUsedAt.Equal(&metav1.MicroTime{Time: began}))

	did, result, err := w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did, "with nothing to do there is neither a write nor an uncached read")
	assert.Equal(t, 5*time.Second, result.RequeueAfter, "until it is news that its pod does not answer")
	w.clock.SetTime(began.Add(5 * time.Second))
	did, result, err = w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did, "there is no pod of which to tell")
	assert.Equal(t, 30*time.Minute-5*time.Second, result.RequeueAfter, "until it has gone untouched for too long")
}

func TestStartOfAPod(t *testing.T) {
	starts := func(t *testing.T) *world {
		w := newWorld(t, newClaim())
		w.settle()
		w.clock.SetTime(began.Add(2 * time.Second))
		w.podWaits("ContainerCreating", "")
		w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
		did, result, err := w.reconcile()
		require.NoError(t, err)
		assert.Empty(t, did, "that a pod starts is worth no write")
		assert.Equal(t, 3*time.Second, result.RequeueAfter)
		return w
	}
	t.Run("it answers: Bound, and nothing was written in between", func(t *testing.T) {
		w := starts(t)
		w.serve()
		did, result, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, []string{patchStatus}, did)
		assert.Equal(t, v1alpha1.PhaseBound, w.claim().Status.Phase)
		assert.Equal(t, 30*time.Minute, result.RequeueAfter)

		w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
		_, _, err = w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.ReasonPodNotReady, w.ready().Reason, "that it answers no longer is told at once")
	})
	t.Run("it does not answer: told in time, and for as long as it lasts", func(t *testing.T) {
		w := starts(t)
		w.clock.SetTime(began.Add(5 * time.Second))
		did, _, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, []string{patchStatus}, did)
		assert.Equal(t, v1alpha1.ReasonPodNotReady, w.ready().Reason)

		touched := w.claim()
		touched.Status.LastUsedAt = &metav1.MicroTime{Time: began.Add(6 * time.Second)}
		require.NoError(t, w.claims.Status().Update(t.Context(), touched))
		w.clock.SetTime(began.Add(6 * time.Second))
		did, _, err = w.reconcile()
		require.NoError(t, err)
		assert.Empty(t, did, "that it is used takes nothing back")
	})
	t.Run("its container ends: told at once", func(t *testing.T) {
		w := starts(t)
		pod := &corev1.Pod{}
		require.NoError(t, w.host.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "p"}, pod))
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}
		require.NoError(t, w.host.Status().Update(t.Context(), pod))
		_, _, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.ReasonPodNotReady, w.ready().Reason)
		assert.Contains(t, w.ready().Message, "exit code 3")
	})
}

func TestBoundAndBack(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	w.clock.SetTime(began.Add(time.Second))
	w.serve()
	w.settle()
	claim := w.claim()
	assert.Equal(t, v1alpha1.PhaseBound, claim.Status.Phase)
	assert.Equal(t, map[string]string{"mcp": "10.0.0.1:8080"}, claim.Status.Addresses)
	assert.Equal(t, metav1.ConditionTrue, w.ready().Status)
	first := claim.Status.BoundAt
	assert.True(t, first.Equal(&metav1.MicroTime{Time: began.Add(time.Second)}))

	w.clock.SetTime(began.Add(time.Minute))
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
	w.settle()
	claim = w.claim()
	assert.Equal(t, v1alpha1.PhasePending, claim.Status.Phase, "a sandbox that drops out of service is Pending again")
	assert.Empty(t, claim.Status.Addresses)
	assert.Equal(t, first, claim.Status.BoundAt)
	assert.True(t, claim.Status.LastUsedAt.Equal(&metav1.MicroTime{Time: began.Add(time.Minute)}), "every change of phase is a use")

	w.clock.SetTime(began.Add(time.Hour))
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1, ReadyReplicas: 1})
	w.settle()
	assert.Equal(t, v1alpha1.PhaseBound, w.claim().Status.Phase)
	assert.Equal(t, first, w.claim().Status.BoundAt, "boundAt is the first time")
}

func TestClassChangedAfterAdmission(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	class := &v1alpha1.ClusterSandboxClass{}
	require.NoError(t, w.claims.Get(t.Context(), client.ObjectKey{Name: "shell"}, class))
	class.Spec.Image = "shell:2"
	require.NoError(t, w.claims.Update(t.Context(), class))
	require.NoError(t, w.host.Delete(t.Context(), w.deployment()))
	w.settle()
	assert.Equal(t, "shell:1", w.deployment().Spec.Template.Spec.Containers[0].Image, "a repaired sandbox is the one that was admitted")
	require.NoError(t, w.claims.Delete(t.Context(), class))
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did)
}

func (w *world) deployment() *appsv1.Deployment {
	w.Helper()
	deployment := &appsv1.Deployment{}
	require.True(w, w.onHost(deployment), w.dump())
	return deployment
}

func TestStatusWriteConflicts(t *testing.T) {
	w := newWorld(t, newClaim())
	w.refuse[patchStatus] = apierrors.NewConflict(schema.GroupResource{Resource: "sandboxclaims"}, claimName, nil)
	did, result, err := w.reconcile()
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{patchStatus, "create NetworkPolicy"}, did, "no pod is asked for that is not on record, and a lost write is not tried twice")
	assert.Equal(t, soon, result.RequeueAfter)

	delete(w.refuse, patchStatus)
	w.settle()
	assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase)
	assert.True(t, w.onHost(&appsv1.Deployment{}), "the policy that it made before stands, and is no obstacle")
}

func TestCacheMisses(t *testing.T) {
	t.Run("a runtime that the cache misses and the API has: admitted", func(t *testing.T) {
		w := newWorld(t, newClaim())
		w.hidden["AgentRuntime/my-agent"] = true
		w.settle()
		assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase)
	})
	t.Run("a runtime that neither has: failed", func(t *testing.T) {
		w := newWorld(t, newClaim())
		require.NoError(t, w.host.Delete(t.Context(), enabledRuntime()))
		w.settle()
		assert.Equal(t, v1alpha1.PhaseFailed, w.claim().Status.Phase)
		assert.Equal(t, v1alpha1.ReasonAgentRuntimeNotFound, w.ready().Reason)
		assert.False(t, w.onHost(&appsv1.Deployment{}))
	})
	t.Run("a namespaced class of a cluster class's name: no fallback between the kinds", func(t *testing.T) {
		claim := newClaim()
		claim.Spec.ClassRef.Kind = v1alpha1.SandboxClassKind
		w := newWorld(t, claim)
		w.settle()
		assert.Equal(t, v1alpha1.ReasonClassNotFound, w.ready().Reason)
	})
	t.Run("a cluster class named, and a namespaced one of that name: no fallback", func(t *testing.T) {
		w := newWorld(t, newClaim())
		require.NoError(t, w.claims.Delete(t.Context(), shellClass()))
		require.NoError(t, w.claims.Create(t.Context(), &v1alpha1.SandboxClass{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shell"}, Spec: shellClass().Spec}))
		w.settle()
		assert.Equal(t, v1alpha1.ReasonClassNotFound, w.ready().Reason)
	})
	t.Run("a class of that name in another namespace: failed", func(t *testing.T) {
		claim := newClaim()
		claim.Spec.ClassRef.Kind = v1alpha1.SandboxClassKind
		w := newWorld(t, claim)
		require.NoError(t, w.claims.Create(t.Context(), &v1alpha1.SandboxClass{ObjectMeta: metav1.ObjectMeta{Namespace: "others", Name: "shell"}, Spec: shellClass().Spec}))
		w.settle()
		assert.Equal(t, v1alpha1.ReasonClassNotFound, w.ready().Reason)
	})
	t.Run("a runtime of that name in another namespace: failed", func(t *testing.T) {
		w := newWorld(t, newClaim())
		require.NoError(t, w.host.Delete(t.Context(), enabledRuntime()))
		elsewhere := enabledRuntime()
		elsewhere.Namespace = "others"
		require.NoError(t, w.host.Create(t.Context(), elsewhere))
		w.settle()
		assert.Equal(t, v1alpha1.ReasonAgentRuntimeNotFound, w.ready().Reason)
	})
	t.Run("a runtime that the cache still has as forbidding sandboxes: read live, admitted", func(t *testing.T) {
		w := newWorld(t, newClaim())
		forbidding := enabledRuntime()
		forbidding.Spec.Sandbox.Enabled = false
		w.r.Host = &oldRuntime{Client: w.r.Host, runtime: forbidding}
		_, _, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase)
	})
	t.Run("a cluster without the AgentRuntime CRD: an error, not the claim's failure", func(t *testing.T) {
		w := newWorld(t, newClaim())
		w.refuse["get AgentRuntime"] = &apimeta.NoKindMatchError{}
		_, _, err := w.reconcile()
		require.ErrorContains(t, err, "manifests/omnia-crds")
		assert.Empty(t, w.claim().Status.Phase)
	})
	t.Run("own objects that the cache misses: read live, nothing made twice", func(t *testing.T) {
		w := newWorld(t, newClaim())
		w.settle()
		w.hidden["Deployment/"+sandboxName] = true
		did, _, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, []string{"read SandboxClaim", "create Deployment", "read Deployment"}, did)
		assert.Equal(t, v1alpha1.ReasonCreating, w.ready().Reason)
	})
}

// oldRuntime is a cache that has an AgentRuntime as it was.
type oldRuntime struct {
	client.Client
	runtime *omniav1alpha1.AgentRuntime
}

func (c *oldRuntime) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if runtime, ok := into.(*omniav1alpha1.AgentRuntime); ok {
		c.runtime.DeepCopyInto(runtime)
		return nil
	}
	return c.Client.Get(ctx, key, into, opts...)
}

func TestRefusedMount_MakesNothing(t *testing.T) {
	claim := newClaim()
	claim.Spec.Mounts = []v1alpha1.SandboxMount{{Role: "project", ID: "shop", Path: "p"}}
	w := newWorld(t, claim)
	w.settle()
	assert.Equal(t, v1alpha1.ReasonMountNotGranted, w.ready().Reason)
	for _, object := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}} {
		assert.False(t, w.onHost(object), "%T", object)
	}
}

func TestWithdrawal(t *testing.T) {
	claim := newClaim()
	claim.Status.Wait = &v1alpha1.WaitLease{RenewTime: metav1.NewMicroTime(began.Add(-time.Hour)), DurationSeconds: 35}
	w := newWorld(t, claim)
	w.refuse["get AgentRuntime"] = apierrors.NewInternalError(assert.AnError) // it cannot be admitted
	_, _, err := w.reconcile()
	require.Error(t, err)
	w.clock.SetTime(began.Add(34 * time.Second))
	_, _, err = w.reconcile()
	require.Error(t, err, "counted from when it was first seen, not from what is written in it")
	w.clock.SetTime(began.Add(35 * time.Second))
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{"delete SandboxClaim"}, did)
	assert.Empty(t, w.r.leases.seen, "nothing is remembered of what has gone")
}

func TestEndedClaim(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
	w.podWaits("InvalidImageName", "bad name")
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{patchStatus}, did)
	assert.Equal(t, v1alpha1.ReasonInvalidImageName, w.ready().Reason)

	did, _, err = w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{"delete Deployment", "delete Service"}, did, "a failed claim holds no pod")
	assert.True(t, w.onHost(&networkingv1.NetworkPolicy{}), "its policy binds the pod while that ends")
	did, _, err = w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did)
	assert.Equal(t, v1alpha1.PhaseFailed, w.claim().Status.Phase, "Failed is for good")
}

func TestTerminatingClaim(t *testing.T) {
	claim := newClaim()
	claim.Finalizers = []string{"example.test/hold"}
	w := newWorld(t, claim)
	require.NoError(t, w.claims.Delete(t.Context(), w.claim()))
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did)
}

func TestPodOfAnOlderTemplate(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	w.podWaits("InvalidImageName", "an image that somebody had set, and that was mended")
	w.rollOut(2, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
	w.settle()
	assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase, "before the Deployment controller has seen the mended template")
	w.rollOut(2, 2, appsv1.DeploymentStatus{})
	w.settle()
	assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase, "before the mended template has a pod")
}

func TestPodOfADeploymentThatHasJustLostOne(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Labels: map[string]string{v1alpha1.LabelClaimUID: "uid-1"}}}
	unschedulable(pod)
	require.NoError(t, w.host.Create(t.Context(), pod))
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
	w.settle()
	require.Equal(t, v1alpha1.ReasonUnschedulable, w.ready().Reason)
	w.rollOut(1, 1, appsv1.DeploymentStatus{})
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did, "the scheduler's words stand while the Deployment counts no pod")
}

func TestHeadlessServiceOfOurs(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	w.serve()
	service := &corev1.Service{}
	require.True(t, w.onHost(service))
	service.Spec.ClusterIP = corev1.ClusterIPNone
	require.NoError(t, w.host.Update(t.Context(), service))
	w.settle()
	assert.NotEqual(t, v1alpha1.PhaseBound, w.claim().Status.Phase, "there is no address to promise")
}
