package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	assert.Empty(t, claim.Status.Addresses, "what answers there is not the sandbox")

	require.NoError(t, w.Kube.CoreV1().Services(w.namespace).Delete(t.Context(), foreign.Name, metav1.DeleteOptions{}))
	w.Claim(t, w.namespace, "mine", framework.Bound)
}

// What is taken away or changed comes back within a second on an idle machine. The claim stays Bound at its address where
// that goes on to answer; a Service that is made anew has another.
func TestObject_DeletedOrChangedByHand_ComesBack(t *testing.T) {
	image := `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.test/other:1"}]`
	everywhere := `[{"op":"add","path":"/spec/egress","value":[{}]}]`
	elsewhere := `[{"op":"replace","path":"/spec/selector","value":{"app":"mine"}}]`
	tests := map[string]struct {
		by    []string // of kubectl; NAME stands for the sandbox' name
		stays bool     // the claim stays Bound meanwhile
		moves bool     // its addresses are others afterwards
	}{
		"NetworkPolicy deleted: the claim stays Bound":                  {by: []string{"delete", "netpol", "NAME"}, stays: true},
		"NetworkPolicy lets everything out: the claim stays Bound":      {by: []string{"patch", "netpol", "NAME", "--type=json", "--patch", everywhere}, stays: true},
		"Service deleted: Bound again, at the new one's address":        {by: []string{"delete", "svc", "NAME"}, moves: true},
		"Service leads elsewhere: Bound again, at the same address":     {by: []string{"patch", "svc", "NAME", "--type=json", "--patch", elsewhere}},
		"Deployment deleted: Bound again, at the same address":          {by: []string{"delete", "deploy", "NAME"}},
		"Deployment of another image: Bound again, at the same address": {by: []string{"patch", "deploy", "NAME", "--type=json", "--patch", image}},
		"Deployment scaled to none: Bound again, at the same address":   {by: []string{"scale", "deploy", "NAME", "--replicas=0"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, onFakeNodes)
			claim := w.bound("s")
			before := w.specs(claim)
			history := w.Record(t, w.namespace)
			args := slices.Clone(tt.by)
			args[slices.Index(args, "NAME")] = claim.Status.SandboxName
			w.kubectl(t, args...)
			framework.Eventually(t, framework.Shortly, "all stands as it was built", func(context.Context) (map[string]any, error) {
				return w.specs(claim), nil
			}, func(now map[string]any) bool { return equality.Semantic.DeepEqual(before, now) })
			w.reconciled(claim)
			again := w.Claim(t, w.namespace, claim.Name, framework.Bound)
			if tt.stays {
				for _, seen := range history.Of(claim.Name) {
					assert.True(t, framework.Bound(seen.Claim))
				}
			}
			service, err := w.Kube.CoreV1().Services(w.namespace).Get(t.Context(), claim.Status.SandboxName, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"mcp": service.Spec.ClusterIP + ":8080"}, again.Status.Addresses)
			assert.Equal(t, !tt.moves, maps.Equal(claim.Status.Addresses, again.Status.Addresses))
			assert.Equal(t, claim.UID, again.UID)
		})
	}
}

// specs are what matters of a claim's objects as they stand; nothing of one that does not.
func (w *world) specs(claim *v1alpha1.SandboxClaim) map[string]any {
	ctx, name := w.t.Context(), claim.Status.SandboxName
	specs := map[string]any{}
	if p, err := w.Kube.NetworkingV1().NetworkPolicies(w.namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
		specs["policy"] = p.Spec
	}
	if s, err := w.Kube.CoreV1().Services(w.namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
		specs["selector"] = s.Spec.Selector
	}
	if d, err := w.Kube.AppsV1().Deployments(w.namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
		specs["deployment"] = d.Spec
	}
	return specs
}

func TestPodRefused_TheClaimWaits_InTheRefusersWords(t *testing.T) {
	tests := map[string]struct {
		class   func(*framework.ClassWrapper)
		refuser func(*world)
		words   []string
		relent  func(*world)
	}{
		"a ResourceQuota on pods, then raised": {
			onFakeNodes, func(w *world) { w.quota("pods", "0") }, []string{"exceeded quota: refuses", "limited: pods=0"},
			func(w *world) { w.quota("pods", "5") }},
		"a ResourceQuota on Deployments, then raised": {
			onFakeNodes, func(w *world) { w.quota("count/deployments.apps", "0") }, []string{"exceeded quota: refuses", "limited: count/deployments.apps=0"},
			func(w *world) { w.quota("count/deployments.apps", "5") }},
		"a LimitRange, then deleted": {
			onFakeNodes, func(w *world) {
				w.Create(w.t, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "refuses"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
					{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}}}})
			}, []string{"maximum memory usage per Container is 64Mi"},
			func(w *world) { w.kubectl(w.t, "delete", "limitrange", "refuses") }},
		"no such RuntimeClass, then made": {
			func(c *framework.ClassWrapper) {
				c.With(func(s *v1alpha1.SandboxClassSpec) { s.RuntimeClassName = ptr.To(c.Cluster().Name) })
			}, func(*world) {}, []string{"RuntimeClass", "not found"},
			func(w *world) {
				class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: w.class}, Handler: "runc"}
				w.CreateUntilEnd(w.t, class)
			}},
		"an admission policy, as Pod Security is one, then withdrawn": {
			onFakeNodes, func(w *world) { w.refusePods("no pods on Mondays") }, []string{"no pods on Mondays"},
			func(w *world) { w.kubectl(w.t, "delete", "validatingadmissionpolicybinding", w.namespace) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.class)
			tt.refuser(w)
			asked, err := w.acquireNow(w.agent, "s")
			require.NoError(t, err)
			claim := w.Claim(t, w.namespace, asked.ClaimName, func(c *v1alpha1.SandboxClaim) bool { return framework.Reason(c) == v1alpha1.ReasonPodRefused })
			assert.Equal(t, v1alpha1.PhasePending, claim.Status.Phase)
			told, err := w.acquireNow(w.agent, "s")
			require.NoError(t, err)
			assert.Equal(t, v1alpha1.ReasonPodRefused, told.Reason)
			for _, words := range tt.words {
				assert.Contains(t, framework.Message(claim), words)
				assert.Contains(t, told.Message, words, "whoever waits is told the same")
			}
			tt.relent(w)
			w.Claim(t, w.namespace, asked.ClaimName, framework.Bound)
		})
	}
}

// quota lets the namespace have so much of a resource.
func (w *world) quota(what corev1.ResourceName, much string) {
	w.t.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "refuses"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{what: resource.MustParse(much)}}}
	err := w.Client.Create(w.t.Context(), quota.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = w.Client.Patch(w.t.Context(), quota, client.Merge)
	}
	require.NoError(w.t, err)
	framework.Eventually(w.t, framework.NoticeTimeout, "the quota is counted", func(ctx context.Context) (*corev1.ResourceQuota, error) {
		return w.Kube.CoreV1().ResourceQuotas(w.namespace).Get(ctx, quota.Name, metav1.GetOptions{})
	}, func(q *corev1.ResourceQuota) bool { return equality.Semantic.DeepEqual(q.Status.Hard, quota.Spec.Hard) })
}

// refusePods has an admission policy refuse the namespace's pods, and waits until it does.
func (w *world) refusePods(words string) {
	w.t.Helper()
	rule := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{NamespaceSelector: w.onlyHere(), ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}},
		Validations:      []admissionregistrationv1.Validation{{Expression: "false", Message: words}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	w.CreateUntilEnd(w.t, policy, binding)
	framework.Eventually(w.t, framework.NoticeTimeout, "the policy bites", func(ctx context.Context) (string, error) {
		pod := framework.AgentPod(w.namespace, "probe", "default", nil)
		_, err := w.Kube.CoreV1().Pods(w.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), nil
	}, func(said string) bool { return strings.Contains(said, words) })
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
	} {
		t.Run(field, func(t *testing.T) {
			_, err := w.Sandbox.SandboxV1alpha1().SandboxClasses(w.namespace).Create(t.Context(), framework.MakeClass("x").With(change).In(w.namespace), metav1.CreateOptions{})
			require.True(t, v1alpha1.IsNotYetSupported(err), "got %v", err)
			assert.Contains(t, err.Error(), field)
		})
	}
}
