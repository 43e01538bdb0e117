package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestNamespace_WithAndWithoutClaims_IsDeleted(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.bound("s")
	without := w.Namespace(t)
	for _, name := range []string{w.namespace, without} {
		require.NoError(t, w.Kube.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	for _, name := range []string{without, w.namespace} {
		framework.Eventually(t, framework.GoneTimeout, "namespace "+name+" is gone", func(ctx context.Context) (bool, error) {
			_, err := w.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		}, func(gone bool) bool { return gone })
	}
}

func TestClaim_Deleted_LeavesNoObject(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	require.NoError(t, w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Delete(t.Context(), claim.Name, metav1.DeleteOptions{}))
	w.noObjects()
}

func TestAgentRuntime_Deleted_LeavesNoClaimAndNoObject(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.bound("s")
	_, err := w.Kubectl(t.Context(), "--namespace", w.namespace, "delete", "agentruntime", runtimeName)
	require.NoError(t, err)
	framework.Eventually(t, framework.GoneTimeout, "the runtime's claims are gone", func(ctx context.Context) (*v1alpha1.SandboxClaimList, error) {
		return w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).List(ctx, metav1.ListOptions{})
	}, func(list *v1alpha1.SandboxClaimList) bool { return len(list.Items) == 0 })
	w.noObjects()
}

func TestForeignService_OfTheSandboxsName_IsLeftAlone(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	foreign := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mine-sandbox"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "mine"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	w.Create(t, foreign, framework.MakeClaim("mine", w.namespace, runtimeName, w.class).Obj())
	claim := w.Claim(t, w.namespace, "mine", func(c *v1alpha1.SandboxClaim) bool { return framework.Reason(c) == v1alpha1.ReasonNameTaken })
	assert.Equal(t, v1alpha1.PhasePending, claim.Status.Phase)

	stands, err := w.Kube.CoreV1().Services(w.namespace).Get(t.Context(), foreign.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, foreign.ResourceVersion, stands.ResourceVersion, "it was not touched")
	_, err = w.Kube.AppsV1().Deployments(w.namespace).Get(t.Context(), foreign.Name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "no pod runs behind somebody else's Service")

	require.NoError(t, w.Kube.CoreV1().Services(w.namespace).Delete(t.Context(), foreign.Name, metav1.DeleteOptions{}))
	w.Claim(t, w.namespace, "mine", framework.Bound)
}

func TestObjects_ChangedOrDeletedByHand_ComeBack(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	name := claim.Status.SandboxName
	policies, services, deployments := w.Kube.NetworkingV1().NetworkPolicies(w.namespace), w.Kube.CoreV1().Services(w.namespace), w.Kube.AppsV1().Deployments(w.namespace)

	policy, err := policies.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, policies.Delete(t.Context(), name, metav1.DeleteOptions{}))
	require.NoError(t, services.Delete(t.Context(), name, metav1.DeleteOptions{}))
	deployment, err := deployments.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	deployment.Spec.Template.Spec.Containers[0].Image = "example.test/other:1"
	_, err = deployments.Update(t.Context(), deployment, metav1.UpdateOptions{})
	require.NoError(t, err)

	framework.Eventually(t, framework.Shortly, "all three stand as they were built", func(ctx context.Context) (bool, error) {
		p, perr := policies.Get(ctx, name, metav1.GetOptions{})
		_, serr := services.Get(ctx, name, metav1.GetOptions{})
		d, derr := deployments.Get(ctx, name, metav1.GetOptions{})
		return perr == nil && serr == nil && derr == nil && p.UID != policy.UID &&
			d.Spec.Template.Spec.Containers[0].Image == framework.SandboxImage, nil
	}, func(mended bool) bool { return mended })
	w.Claim(t, w.namespace, claim.Name, framework.Bound)
}

func TestClass_EditedUnderARunningSandbox_ReachesNewClaimsOnly(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	old := w.bound("old")
	_, err := w.Kubectl(t.Context(), "patch", "csbc", w.class, "--type=merge", "--patch", `{"spec":{"image":"example.test/newer:1"}}`)
	require.NoError(t, err)
	fresh := w.bound("new")
	image := func(claim *v1alpha1.SandboxClaim) string {
		d, err := w.Kube.AppsV1().Deployments(w.namespace).Get(t.Context(), claim.Status.SandboxName, metav1.GetOptions{})
		require.NoError(t, err)
		return d.Spec.Template.Spec.Containers[0].Image
	}
	assert.Equal(t, "example.test/newer:1", image(fresh))

	require.NoError(t, w.Kube.AppsV1().Deployments(w.namespace).Delete(t.Context(), old.Status.SandboxName, metav1.DeleteOptions{}))
	framework.Eventually(t, framework.Shortly, "the old sandbox is repaired", func(ctx context.Context) (bool, error) {
		_, err := w.Kube.AppsV1().Deployments(w.namespace).Get(ctx, old.Status.SandboxName, metav1.GetOptions{})
		return err == nil, nil
	}, func(stands bool) bool { return stands })
	assert.Equal(t, framework.SandboxImage, image(old), "repair gives what the claim was admitted with")
}

func TestClaimByHand(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	for field, change := range map[string]func(*v1alpha1.SandboxClaimSpec){
		"targetPath": func(s *v1alpha1.SandboxClaimSpec) { s.TargetPath = "projects/x" },
		"mounts":     func(s *v1alpha1.SandboxClaimSpec) { s.Mounts = []v1alpha1.SandboxMount{{Role: "session"}} },
		"connections": func(s *v1alpha1.SandboxClaimSpec) {
			s.Connections = []v1alpha1.ConnectionBinding{{Role: "r", Connection: "c"}}
		},
		"declaredBy":   func(s *v1alpha1.SandboxClaimSpec) { s.DeclaredBy = "someone" },
		"maxInstances": func(s *v1alpha1.SandboxClaimSpec) { s.MaxInstances = ptr.To[int32](1) },
	} {
		t.Run("an administrator writes "+field+": forbidden", func(t *testing.T) {
			claim := framework.MakeClaim("forged", w.namespace, runtimeName, w.class).Obj()
			change(&claim.Spec)
			_, err := claims.Create(t.Context(), claim, metav1.CreateOptions{})
			require.True(t, apierrors.IsForbidden(err), "got %v", err)
			assert.Contains(t, err.Error(), field)
		})
	}
	forged := framework.MakeClaim("forged", w.namespace, runtimeName, w.class).Obj()
	forged.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProvenanceVerified, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWrittenByOperator, LastTransitionTime: metav1.Now()}}
	created, err := claims.Create(t.Context(), forged.DeepCopy(), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Empty(t, created.Status.Conditions, "a status given at create is dropped")
	bound := w.Claim(t, w.namespace, "forged", framework.Bound)
	bound.Status.Conditions = append(bound.Status.Conditions, forged.Status.Conditions...)
	updated, err := claims.UpdateStatus(t.Context(), bound, metav1.UpdateOptions{})
	require.NoError(t, err)
	for _, c := range updated.Status.Conditions {
		assert.NotEqual(t, v1alpha1.ConditionProvenanceVerified, c.Type, "nobody sets it afterwards")
	}
	updated.Spec.SessionID = "another"
	_, err = claims.Update(t.Context(), updated, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "the spec is immutable: got %v", err)
}

func TestClass_WhatIsNotServedYet_IsRefusedAndNotIgnored(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	for field, change := range map[string]func(*v1alpha1.SandboxClassSpec){
		"spec.connections": func(s *v1alpha1.SandboxClassSpec) { s.Connections = []v1alpha1.ClassConnection{{Role: "r"}} },
		"spec.enrolment": func(s *v1alpha1.SandboxClassSpec) {
			s.View, s.Enrolment = &v1alpha1.View{Port: "mcp"}, &v1alpha1.ClassEnrolment{Args: []string{"-x"}}
		},
		"spec.egress.dns": func(s *v1alpha1.SandboxClassSpec) { s.Egress = &v1alpha1.Egress{DNS: true} },
		"spec.egress.allowedServices": func(s *v1alpha1.SandboxClassSpec) {
			s.Egress = &v1alpha1.Egress{AllowedServices: []v1alpha1.AllowedService{{Name: "x"}}}
		},
	} {
		t.Run(field, func(t *testing.T) {
			_, err := w.Sandbox.SandboxV1alpha1().SandboxClasses(w.namespace).Create(t.Context(), framework.MakeClass("x").With(change).In(w.namespace), metav1.CreateOptions{})
			require.True(t, v1alpha1.IsNotYetSupported(err), "got %v", err)
			assert.Contains(t, err.Error(), field)
		})
	}
}
