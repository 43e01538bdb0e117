package claim

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func somebodyElses() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sandboxName},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "theirs"}},
	}
}

func TestForeignObject(t *testing.T) {
	for name, hidden := range map[string]bool{"in the cache": false, "not in the cache, lacking the label": true} {
		t.Run(name+": named and left alone", func(t *testing.T) {
			w := newWorld(t, newClaim(), somebodyElses())
			w.hidden["Service/"+sandboxName] = hidden
			_, result, err := w.reconcile()
			require.NoError(t, err)
			assert.Equal(t, recheck, result.RequeueAfter, "no event tells when it goes")
			assert.Equal(t, v1alpha1.ReasonNameTaken, w.ready().Reason)
			assert.Contains(t, w.ready().Message, "Service agents/"+sandboxName)
			theirs := &corev1.Service{}
			require.True(t, w.onHost(theirs))
			assert.Equal(t, somebodyElses().Spec, theirs.Spec)
			assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase)
			assert.Empty(t, w.claim().Status.Addresses, "what answers there is not the sandbox")

			require.NoError(t, w.host.Delete(t.Context(), theirs))
			w.hidden = map[string]bool{}
			w.settle()
			ours := &corev1.Service{}
			require.True(t, w.onHost(ours))
			assert.True(t, metav1.IsControlledBy(ours, w.claim()))
		})
	}
}

func TestForeignPolicy_NothingIsBuiltBeyondIt(t *testing.T) {
	w := newWorld(t, newClaim(), &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sandboxName}})
	_, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.ReasonNameTaken, w.ready().Reason)
	assert.False(t, w.onHost(&appsv1.Deployment{}), "without its policy no pod is started")
}

func TestForeignObjectOfAFailedClaim(t *testing.T) {
	claim := newClaim()
	claim.Status = v1alpha1.SandboxClaimStatus{Phase: v1alpha1.PhaseFailed, SandboxName: sandboxName, Class: &shellClass().Spec}
	w := newWorld(t, claim, somebodyElses())
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did)
}

func TestPredecessorsObject(t *testing.T) {
	left := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: sandboxName, UID: "left", Finalizers: []string{"foregroundDeletion"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SandboxClaim", Name: claimName, UID: "uid-0", Controller: ptr.To(true)}},
	}}
	w := newWorld(t, newClaim(), left)
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Contains(t, did, "delete Deployment")
	assert.NotContains(t, did, "update Deployment", "never adopted")
	assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase)
	assert.Equal(t, v1alpha1.ReasonClearingPrevious, w.ready().Reason)

	ending := w.deployment()
	ending.Finalizers = nil
	require.NoError(t, w.host.Update(t.Context(), ending))
	w.settle()
	assert.NotEqual(t, left.UID, w.deployment().UID)
	assert.Equal(t, v1alpha1.ReasonCreating, w.ready().Reason)
}

func TestOwnObjectThatEnds(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	deployment := w.deployment()
	deployment.Finalizers = []string{"foregroundDeletion"}
	require.NoError(t, w.host.Update(t.Context(), deployment))
	require.NoError(t, w.host.Delete(t.Context(), deployment))
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{patchStatus}, did)
	assert.Equal(t, v1alpha1.ReasonClearingPrevious, w.ready().Reason)
}

func TestChangedObjectIsMended(t *testing.T) {
	tests := map[string]struct {
		object client.Object
		change func(client.Object)
		kind   string
	}{
		"egress opened": {&networkingv1.NetworkPolicy{}, func(o client.Object) {
			policy := o.(*networkingv1.NetworkPolicy)
			policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
		}, "NetworkPolicy"},
		"selector turned elsewhere": {&corev1.Service{}, func(o client.Object) {
			o.(*corev1.Service).Spec.Selector = map[string]string{"app": "theirs"}
		}, "Service"},
		"image replaced": {&appsv1.Deployment{}, func(o client.Object) {
			o.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image = "evil"
		}, "Deployment"},
		"label taken, so that it left the cache": {&appsv1.Deployment{}, func(o client.Object) {
			o.SetLabels(map[string]string{"team": "x"})
		}, "Deployment"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newClaim())
			w.settle()
			require.True(t, w.onHost(tt.object))
			before := tt.object.DeepCopyObject().(client.Object)
			tt.change(tt.object)
			require.NoError(t, w.host.Update(t.Context(), tt.object))
			did, _, err := w.reconcile()
			require.NoError(t, err)
			assert.Equal(t, []string{"update " + tt.kind}, did)
			require.True(t, w.onHost(tt.object))
			assert.Subset(t, tt.object.GetLabels(), before.GetLabels())
			w.settle()
		})
	}
}

func TestRefusedObject(t *testing.T) {
	services := schema.GroupResource{Resource: "services"}
	t.Run("invalid: failed, with the API server's words, and nothing is left running", func(t *testing.T) {
		w := newWorld(t, newClaim())
		w.refuse["create Deployment"] = apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, sandboxName, nil)
		_, _, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.PhaseFailed, w.claim().Status.Phase)
		assert.Equal(t, v1alpha1.ReasonSandboxRejected, w.ready().Reason)
		assert.Contains(t, w.ready().Message, "is invalid")
		w.settle()
		assert.False(t, w.onHost(&corev1.Service{}))
	})
	t.Run("over a quota: waits, in its words, and no pod stands without its policy", func(t *testing.T) {
		w := newWorld(t, newClaim())
		w.refuse["create NetworkPolicy"] = apierrors.NewForbidden(services, sandboxName, assert.AnError)
		_, result, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, recheck, result.RequeueAfter)
		assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase)
		assert.Equal(t, v1alpha1.ReasonPodRefused, w.ready().Reason)
		assert.False(t, w.onHost(&appsv1.Deployment{}))
	})
	t.Run("by a webhook that does not answer: waits, in its words", func(t *testing.T) {
		w := newWorld(t, newClaim())
		w.refuse["create Deployment"] = apierrors.NewInternalError(errors.New("failed calling webhook"))
		_, result, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, recheck, result.RequeueAfter)
		assert.Equal(t, v1alpha1.ReasonPodRefused, w.ready().Reason)
		assert.Contains(t, w.ready().Message, "failed calling webhook")
	})
	t.Run("an opened policy that may not be mended: no longer Bound", func(t *testing.T) {
		w := newWorld(t, newClaim())
		w.settle()
		w.serve()
		w.settle()
		policy := &networkingv1.NetworkPolicy{}
		require.True(t, w.onHost(policy))
		policy.Spec.PolicyTypes = policy.Spec.PolicyTypes[:1]
		require.NoError(t, w.host.Update(t.Context(), policy))
		w.refuse["update NetworkPolicy"] = apierrors.NewForbidden(services, sandboxName, assert.AnError)
		_, _, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase)
		assert.Empty(t, w.claim().Status.Addresses)
	})
	t.Run("a mend that comes too late: nothing is said before it is looked at again", func(t *testing.T) {
		w := newWorld(t, newClaim())
		w.settle()
		w.serve()
		w.settle()
		service := &corev1.Service{}
		require.True(t, w.onHost(service))
		service.Spec.ExternalIPs = []string{"192.0.2.1"}
		require.NoError(t, w.host.Update(t.Context(), service))
		w.refuse["update Service"] = apierrors.NewConflict(services, sandboxName, nil)
		did, result, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, []string{"update Service"}, did)
		assert.Equal(t, soon, result.RequeueAfter)
		assert.Equal(t, v1alpha1.PhaseBound, w.claim().Status.Phase)
	})
	t.Run("a server that is busy: an error, tried again", func(t *testing.T) {
		w := newWorld(t, newClaim())
		w.refuse["create Service"] = apierrors.NewTooManyRequests("busy", 1)
		_, _, err := w.reconcile()
		require.Error(t, err)
		assert.Equal(t, v1alpha1.PhasePending, w.claim().Status.Phase)
		delete(w.refuse, "create Service")
		w.settle()
		assert.True(t, w.onHost(&appsv1.Deployment{}))
	})
}

// An upgraded server builds another Deployment than the one that stands. Nothing running changes.
func TestDeploymentOfAnotherBuilder(t *testing.T) {
	w := boundWorld(t)
	deployment := w.deployment()
	assert.Equal(t, deployment.Generation, w.claim().Status.Deployment.Generation)
	// As an older builder had made it.
	deployment.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](77)
	require.NoError(t, w.host.Update(t.Context(), deployment))
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Empty(t, did, "its spec is as it was when the claim was last Bound")

	t.Run("its labels are still mended", func(t *testing.T) {
		deployment := w.deployment()
		delete(deployment.Labels, v1alpha1.LabelSession)
		require.NoError(t, w.host.Update(t.Context(), deployment))
		did, _, err := w.reconcile()
		require.NoError(t, err)
		assert.Equal(t, []string{"update Deployment"}, did)
		assert.EqualValues(t, 77, *w.deployment().Spec.Template.Spec.TerminationGracePeriodSeconds)
	})
	t.Run("one that somebody changes is mended", func(t *testing.T) {
		w.rollOut(2, 2, appsv1.DeploymentStatus{UpdatedReplicas: 1, ReadyReplicas: 1})
		did, _, err := w.reconcile()
		require.NoError(t, err)
		assert.Contains(t, did, "update Deployment")
		assert.EqualValues(t, 10, *w.deployment().Spec.Template.Spec.TerminationGracePeriodSeconds)
	})
}

func TestObjectOfAClaimThatHasGone(t *testing.T) {
	w := boundWorld(t)
	claim := w.claim()
	w.r.Claims = cached{w.r.Claims, claim}
	require.NoError(t, w.host.Delete(t.Context(), w.deployment())) // as garbage collection does
	require.NoError(t, w.claims.Delete(t.Context(), w.claim()))
	did, result, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{"read SandboxClaim"}, did, "nothing is made for a claim that only the cache still has")
	assert.Equal(t, soon, result.RequeueAfter)
	assert.Empty(t, w.told())
}

// cached is a cache that has not heard of a claim's end.
type cached struct {
	client.Client
	claim *v1alpha1.SandboxClaim
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if claim, ok := into.(*v1alpha1.SandboxClaim); ok && key == client.ObjectKeyFromObject(c.claim) {
		c.claim.DeepCopyInto(claim)
		return nil
	}
	return c.Client.Get(ctx, key, into, opts...)
}
