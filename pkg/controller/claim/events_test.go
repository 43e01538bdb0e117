package claim

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reasons gives type and reason of what was told.
func reasons(told []string) []string {
	var out []string
	for _, event := range told {
		words := strings.Fields(event)
		out = append(out, words[0]+" "+words[1])
	}
	return out
}

func TestEvents(t *testing.T) {
	w := newWorld(t, newClaim())
	w.settle()
	assert.Empty(t, w.told(), "that a sandbox is being created is nothing that a person must know")
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
	w.podWaits("ImagePullBackOff", "no such image")
	w.settle()
	for range 3 {
		_, _, err := w.reconcile()
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"Warning ImagePullBackOff"}, reasons(w.told()), "once, and not per reconcile")
	require.NoError(t, w.host.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}))
	w.serve()
	w.settle()
	assert.Empty(t, w.told(), "nor that it is Bound at last: the status says so")
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1})
	w.settle()
	assert.Equal(t, []string{"Warning Creating"}, reasons(w.told()), "a sandbox that is no longer Bound")
	w.rollOut(1, 1, appsv1.DeploymentStatus{UpdatedReplicas: 1, ReadyReplicas: 1})
	w.settle()
	assert.Equal(t, []string{"Normal SandboxReady"}, reasons(w.told()), "and is again")
}

func TestEvents_ObjectsThatComeBack(t *testing.T) {
	w := boundWorld(t)
	policy := &networkingv1.NetworkPolicy{}
	require.True(t, w.onHost(policy))
	require.NoError(t, w.host.Delete(t.Context(), policy))
	_, _, err := w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{"Warning Repaired NetworkPolicy my-agent-sbx-a-sandbox was gone and is made anew"}, w.told())

	require.True(t, w.onHost(policy))
	policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	require.NoError(t, w.host.Update(t.Context(), policy))
	_, _, err = w.reconcile()
	require.NoError(t, err)
	assert.Equal(t, []string{"Warning Repaired NetworkPolicy my-agent-sbx-a-sandbox was changed and is made as it was"}, w.told())
}

func TestEvents_Queue(t *testing.T) {
	w := crowd(t, 0, 3)
	for _, name := range []string{"c1", "c2", "c3", "c1", "c2"} {
		_, _, err := w.reconcileOf(name)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"Normal CeilingReached", "Warning CeilingReached", "Normal CeilingReached", "Normal CeilingReached"}, reasons(w.told()),
		"each claim once, and their runtime once for them all")
}

func TestEvents_Failure(t *testing.T) {
	w := newWorld(t, newClaim())
	require.NoError(t, w.claims.Delete(t.Context(), shellClass()))
	w.settle()
	told := w.told()
	require.Equal(t, []string{"Warning ClassNotFound", "Warning ClassNotFound"}, reasons(told), "the claim, and its runtime")
	assert.Contains(t, told[1], "claim my-agent-sbx-a failed")
}

func TestEvents_LongWordsAreClipped(t *testing.T) {
	w := newWorld(t, newClaim())
	w.r.tell(claimRef(newClaim()), nil, corev1.EventTypeNormal, "R", "A", strings.Repeat("é", 2000))
	told := strings.TrimPrefix(w.told()[0], "Normal R ")
	assert.LessOrEqual(t, len(told), longestNote, "the API server refuses a longer one")
	assert.True(t, utf8.ValidString(told))
}
