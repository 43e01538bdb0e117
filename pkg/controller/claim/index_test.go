package claim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

func TestFound(t *testing.T) {
	claim, elsewhere, ofNone := newClaim(), newClaim(), newClaim()
	elsewhere.Namespace, ofNone.Name, ofNone.Spec.AgentRuntimeRef = "others", "enrols", nil
	claims := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, claimIndexes)
	for _, one := range []*v1alpha1.SandboxClaim{claim, elsewhere, ofNone} {
		require.NoError(t, claims.Add(one))
	}
	key := types.NamespacedName{Namespace: namespace, Name: "my-agent"}
	of, err := found[*v1alpha1.SandboxClaim](claims, key)
	require.NoError(t, err)
	require.Len(t, of, 1, "the runtime's own, and not those of another namespace's or of none")
	assert.Same(t, claim, of[0], "as it lies there")

	claim.Status.Class, claim.Status.SandboxName = &shellClass().Spec, sandboxName
	own := sandbox.Deployment(claim)
	labelled := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "labelled", Labels: own.Labels}}
	deployments := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, deploymentIndexes)
	for _, one := range []*appsv1.Deployment{own, labelled} {
		require.NoError(t, deployments.Add(one))
	}
	stand, err := found[*appsv1.Deployment](deployments, key)
	require.NoError(t, err)
	assert.Equal(t, []*appsv1.Deployment{own}, stand, "one that only bears the label holds no slot")

	_, err = found[*corev1.Pod](claims, key)
	assert.ErrorContains(t, err, "SandboxClaim", "what lies there is not taken for what it is not")
}
