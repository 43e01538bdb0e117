package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func mirror() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "artifacts", Name: "mirror"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "mirror"}, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}}}
}

// newReaching is a world with a claim whose class allows the mirror.
func newReaching(t *testing.T, onHost ...client.Object) *world {
	w := newWorld(t, newClaim(), onHost...)
	class := shellClass()
	class.Spec.Egress = &v1alpha1.Egress{AllowedServices: []v1alpha1.AllowedService{{Name: "mirror", Namespace: "artifacts"}}}
	require.NoError(t, w.claims.Delete(t.Context(), shellClass()))
	require.NoError(t, w.claims.Create(t.Context(), class))
	return w
}

func (w *world) policy() *networkingv1.NetworkPolicy {
	w.Helper()
	policy := &networkingv1.NetworkPolicy{}
	require.True(w, w.onHost(policy), w.dump())
	return policy
}

// condition is the claim's condition of a type; nil if it has none.
func (w *world) condition(kind string) *metav1.Condition {
	w.Helper()
	return apimeta.FindStatusCondition(w.claim().Status.Conditions, kind)
}

func TestAllowedService_IsReached(t *testing.T) {
	w := newReaching(t, mirror())
	w.settle()
	require.Len(t, w.policy().Spec.Egress, 1)
	assert.Equal(t, map[string]string{"app": "mirror"}, w.policy().Spec.Egress[0].To[0].PodSelector.MatchLabels)
	told := w.condition(v1alpha1.ConditionEgressResolved)
	require.NotNil(t, told)
	assert.Equal(t, metav1.ConditionTrue, told.Status)
	assert.Empty(t, w.told())

	plain := newWorld(t, newClaim())
	plain.settle()
	assert.Nil(t, plain.condition(v1alpha1.ConditionEgressResolved), "a class that asks for nothing has nothing to tell")
}

func TestAllowedService_MissingThenMade(t *testing.T) {
	w := newReaching(t)
	w.settle()
	assert.Empty(t, w.policy().Spec.Egress)
	told := w.condition(v1alpha1.ConditionEgressResolved)
	require.NotNil(t, told)
	assert.Equal(t, metav1.ConditionFalse, told.Status)
	assert.Equal(t, v1alpha1.ReasonServiceNotFound, told.Reason)
	assert.Equal(t, []string{"Warning ServiceNotFound " + told.Message}, w.told())

	require.NoError(t, w.host.Create(t.Context(), mirror()))
	assert.Equal(t, requestsFor([]*v1alpha1.SandboxClaim{w.claim()}), w.r.claimsThatReach(t.Context(), mirror()))
	w.settle()
	assert.Len(t, w.policy().Spec.Egress, 1)
	assert.Equal(t, metav1.ConditionTrue, w.condition(v1alpha1.ConditionEgressResolved).Status)
	assert.Equal(t, []string{
		"Normal EgressUpdated NetworkPolicy my-agent-sbx-a-sandbox is made as the Services are that its class allows",
		"Normal EgressResolved no longer: " + told.Message,
	}, w.told())
}

func TestAllowedService_Changes_PolicyFollowsInOneWrite(t *testing.T) {
	w := newReaching(t, mirror())
	w.settle()
	moved := mirror()
	moved.Spec.Selector, moved.Spec.Ports[0].TargetPort = map[string]string{"app": "other"}, intstr.FromInt32(9443)
	require.NoError(t, w.host.Update(t.Context(), moved))
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{"read Service", "update NetworkPolicy"}, did)
	rule := w.policy().Spec.Egress[0]
	assert.Equal(t, map[string]string{"app": "other"}, rule.To[0].PodSelector.MatchLabels)
	assert.EqualValues(t, 9443, rule.Ports[0].Port.IntVal)

	require.NoError(t, w.host.Delete(t.Context(), moved))
	w.settle()
	assert.Empty(t, w.policy().Spec.Egress)
	assert.Equal(t, v1alpha1.ReasonServiceNotFound, w.condition(v1alpha1.ConditionEgressResolved).Reason)
}

func TestAllowedService_CacheLagsBehind_PolicyIsNotPutBack(t *testing.T) {
	w := newReaching(t, mirror())
	w.hidden["Service/mirror"] = true
	_, _, err := w.reconcile()
	require.NoError(t, err)
	did, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{"read Service"}, did, "what stands is of the Service as it is")
	assert.Len(t, w.policy().Spec.Egress, 1)
	assert.Equal(t, metav1.ConditionTrue, w.condition(v1alpha1.ConditionEgressResolved).Status)
}

func TestAllowedService_CannotBeRead(t *testing.T) {
	w := newReaching(t, mirror())
	w.settle()
	w.refuse["get Service"] = apierrors.NewServiceUnavailable("away")
	_, _, err := w.reconcile()
	require.ErrorContains(t, err, "reading Service artifacts/mirror, which the class allows")
}

func TestLeadsElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.Service)
		passes bool
	}{
		"its status: no":     {func(s *corev1.Service) { s.ResourceVersion = "2" }, false},
		"its selector: yes":  {func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "other"} }, true},
		"its ports: yes":     {func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("tls") }, true},
		"what it is: yes":    {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }, true},
		"its address: no":    {func(s *corev1.Service) { s.Spec.ClusterIP = "10.0.0.9" }, false},
		"nothing at all: no": {func(*corev1.Service) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			after := mirror()
			tt.change(after)
			assert.Equal(t, tt.passes, leadsElsewhere().Update(event.UpdateEvent{ObjectOld: asKept(t, mirror()), ObjectNew: asKept(t, after)}))
		})
	}
	assert.True(t, leadsElsewhere().Create(event.CreateEvent{Object: mirror()}))
	assert.True(t, leadsElsewhere().Delete(event.DeleteEvent{Object: mirror()}))
}

func TestClaimThatEnds_FollowsNothing(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.SandboxClaim){
		"not admitted": func(c *v1alpha1.SandboxClaim) { c.Status = v1alpha1.SandboxClaimStatus{Phase: v1alpha1.PhaseQueued} },
		"failed":       func(c *v1alpha1.SandboxClaim) { c.Status.Phase = v1alpha1.PhaseFailed },
		"being deleted": func(c *v1alpha1.SandboxClaim) {
			c.DeletionTimestamp = &metav1.Time{Time: began.Add(time.Second)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newReaching(t, mirror())
			w.settle()
			claim := w.claim()
			values, err := allowedServices(claim)
			require.NoError(t, err)
			assert.Equal(t, []string{"artifacts/mirror"}, values)
			change(claim)
			values, err = allowedServices(claim)
			require.NoError(t, err)
			assert.Empty(t, values)
		})
	}
}
