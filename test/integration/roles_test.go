package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// Whoever has one of Kubernetes' own roles in a namespace sees what is there, and makes none of it.
func TestPeoplesRoles_SeeClaimsAndClasses_MakeNone(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	for _, role := range []string{"view", "edit", "admin"} {
		t.Run(role, func(t *testing.T) {
			account := role + "er"
			w.ServiceAccount(t, w.namespace, account)
			w.bind(t, account, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role})
			may := func(verb, resource, subresource string) bool { return w.may(t, account, verb, resource, subresource) }
			framework.Eventually(t, framework.NoticeTimeout, "the role is aggregated", func(context.Context) (bool, error) {
				return may("list", "sandboxclaims", ""), nil
			}, func(yes bool) bool { return yes })
			for _, resource := range []string{"sandboxclaims", "sandboxclasses"} {
				assert.True(t, may("get", resource, "") && may("watch", resource, ""), resource)
				for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
					assert.False(t, may(verb, resource, ""), "%s %s", verb, resource)
				}
			}
			assert.True(t, may("get", "sandboxclaims", "status"))
			assert.False(t, may("update", "sandboxclaims", "status"), "the server reads a claim's status back as its own")
			for _, action := range []string{"acquire", "touch", "release"} {
				assert.False(t, may("create", "sandboxclaims", action), action)
			}
		})
	}
}

// The cluster refuses an owner reference that blocks to whoever may not update the owner's finalizers; the controller may.
func TestBlockingOwnerReference_NeedsFinalizers_ServerHasThem(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	deployment, err := w.Kube.AppsV1().Deployments(w.namespace).Get(t.Context(), claim.Status.SandboxName, metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, ptr.Deref(deployment.OwnerReferences[0].BlockOwnerDeletion, false), "what the server made blocks the claim's deletion")

	w.ServiceAccount(t, w.namespace, "deployer")
	w.bind(t, "deployer", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"})
	config, err := w.AsServiceAccount(t.Context(), w.namespace, "deployer")
	require.NoError(t, err)
	set, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	copied := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "copied", OwnerReferences: deployment.OwnerReferences}, Spec: deployment.Spec}
	w.mayOnce(t, "deployer", authorizationv1.ResourceAttributes{Verb: "create", Group: appsv1.GroupName, Resource: "deployments"})
	_, err = set.AppsV1().Deployments(w.namespace).Create(t.Context(), copied, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "got %v", err)
	assert.Contains(t, err.Error(), "blockOwnerDeletion")
}

// bind gives a role in the world's namespace to a ServiceAccount there.
func (w *world) bind(t *testing.T, account string, role rbacv1.RoleRef) {
	t.Helper()
	w.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: account}, RoleRef: role,
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: account}},
	})
}

// may says what RBAC allows a ServiceAccount in the world's namespace, without the groups that every ServiceAccount is in.
func (w *world) may(t *testing.T, account, verb, resource, subresource string) bool {
	t.Helper()
	return w.allows(t, account, authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.GroupName, Resource: resource, Subresource: subresource})
}

// mayOnce waits until the cluster has heard that a ServiceAccount may do something. The sandbox servers remember a refusal
// for a while: let none happen before.
func (w *world) mayOnce(t *testing.T, account string, action authorizationv1.ResourceAttributes) {
	t.Helper()
	framework.Eventually(t, framework.NoticeTimeout, account+" may "+action.Verb+" "+action.Resource, func(context.Context) (bool, error) {
		return w.allows(t, account, action), nil
	}, func(allowed bool) bool { return allowed })
}

func (w *world) allows(t *testing.T, account string, action authorizationv1.ResourceAttributes) bool {
	t.Helper()
	action.Namespace = w.namespace
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + w.namespace + ":" + account, ResourceAttributes: &action,
	}}
	answer, err := w.Kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	require.NoError(t, err)
	return answer.Status.Allowed
}
