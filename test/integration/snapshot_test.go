package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const newerImage = "example.test/newer:1"

func TestWhatASandboxIsMadeFrom_ChangedUnderIt_ReachesNewClaimsOnly(t *testing.T) {
	tests := map[string]struct {
		change []string // of kubectl; CLASS stands for the class' name
		fresh  string   // the image of a new claim; empty if there is none
		refuse func(error) bool
	}{
		"its class edited: a new claim gets it as it is": {
			change: []string{"patch", "csbc", "CLASS", "--type=merge", "--patch", `{"spec":{"image":"` + newerImage + `"}}`}, fresh: newerImage},
		"its class deleted: a new claim fails": {
			change: []string{"delete", "csbc", "CLASS"}, refuse: v1alpha1.IsSandboxFailed},
		"its ToolRegistry names another class: a new claim gets that": {
			change: []string{"patch", "toolregistry", "tools", "--type=merge", "--patch",
				`{"spec":{"sandboxes":[{"name":"shell","classRef":{"kind":"ClusterSandboxClass","name":"CLASS-newer"}}]}}`}, fresh: newerImage},
		"its ToolRegistry declares it no longer: a new claim is refused": {
			change: []string{"patch", "toolregistry", "tools", "--type=merge", "--patch", `{"spec":{"sandboxes":[]}}`}, refuse: v1alpha1.IsUnknownSandbox},
		"its ToolRegistry deleted: a new claim is refused": {
			change: []string{"delete", "toolregistry", "tools"}, refuse: v1alpha1.IsUnknownSandbox},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, onFakeNodes)
			w.CreateClasses(t, framework.MakeClass(w.class+"-newer").OnFakeNodes().Image(newerImage))
			old := w.bound("old")
			before := w.runs(old)
			history := w.Record(t, w.namespace)
			var args []string
			for _, arg := range tt.change {
				args = append(args, strings.ReplaceAll(arg, "CLASS", w.class))
			}
			w.kubectl(t, args...)

			w.newClaim(tt.fresh, tt.refuse)
			w.reconciled(old)
			assert.Equal(t, before, w.runs(old), "the running sandbox is left as it is")
			for _, seen := range history.Of(old.Name) {
				assert.True(t, framework.Bound(seen.Claim))
			}

			require.NoError(t, w.Kube.AppsV1().Deployments(w.namespace).Delete(t.Context(), old.Status.SandboxName, metav1.DeleteOptions{}))
			framework.Eventually(t, framework.Shortly, "the Deployment is back", func(ctx context.Context) (*appsv1.Deployment, error) {
				return w.Kube.AppsV1().Deployments(w.namespace).Get(ctx, old.Status.SandboxName, metav1.GetOptions{})
			}, func(d *appsv1.Deployment) bool { return d.UID != before.deployment })
			assert.Equal(t, framework.SandboxImage, w.deployment(old).Spec.Template.Spec.Containers[0].Image, "repair gives what the claim was admitted with")
			w.Claim(t, w.namespace, old.Name, framework.Bound)
		})
	}
}

// newClaim acquires until a new claim's sandbox is of the image, or an acquire is refused as wanted: the replicas learn of a
// change a moment after it was made.
func (w *world) newClaim(image string, refused func(error) bool) {
	w.t.Helper()
	for began, session := time.Now(), 0; time.Since(began) < framework.NoticeTimeout; session++ {
		got, err := w.acquire(w.agent, fmt.Sprintf("new-%d", session))
		if refused != nil && err != nil {
			require.True(w.t, refused(err), "got %v", err)
			return
		}
		require.NoError(w.t, err)
		claim := w.Claim(w.t, w.namespace, got.ClaimName, framework.Bound)
		if image != "" && claim.Status.Class.Image == image {
			assert.Equal(w.t, image, w.deployment(claim).Spec.Template.Spec.Containers[0].Image)
			return
		}
		require.NoError(w.t, w.deleted(claim.Name))
	}
	require.Fail(w.t, "new claims are made as if nothing had changed")
}

// running is what runs for a claim.
type running struct {
	deployment types.UID
	generation int64
	pod        types.UID
}

// runs waits until one pod of a claim is there, of the Deployment as it stands, and not ending, and gives what runs.
func (w *world) runs(claim *v1alpha1.SandboxClaim) running {
	w.t.Helper()
	d := w.deployment(claim)
	grace := *d.Spec.Template.Spec.TerminationGracePeriodSeconds
	pods := framework.Eventually(w.t, framework.PodTimeout, "one pod runs", func(ctx context.Context) ([]corev1.Pod, error) {
		return w.PodsOf(ctx, w.namespace, claim.UID)
	}, func(pods []corev1.Pod) bool {
		return len(pods) == 1 && pods[0].DeletionTimestamp == nil && *pods[0].Spec.TerminationGracePeriodSeconds == grace
	})
	return running{deployment: d.UID, generation: d.Generation, pod: pods[0].UID}
}

// reconciled has the controller look at a claim's objects: it takes the first of them away, and waits until all was looked
// at once more since it was put back.
func (w *world) reconciled(claim *v1alpha1.SandboxClaim) {
	w.t.Helper()
	policies := w.Kube.NetworkingV1().NetworkPolicies(w.namespace)
	for range 2 {
		before, err := policies.Get(w.t.Context(), claim.Status.SandboxName, metav1.GetOptions{})
		require.NoError(w.t, err)
		require.NoError(w.t, policies.Delete(w.t.Context(), before.Name, metav1.DeleteOptions{}))
		framework.Eventually(w.t, framework.Shortly, "the NetworkPolicy is back", func(ctx context.Context) (bool, error) {
			after, err := policies.Get(ctx, before.Name, metav1.GetOptions{})
			return err == nil && after.UID != before.UID, nil
		}, func(back bool) bool { return back })
	}
}

// A newer server would build another pod for the claims that it finds Bound. What an older one built is imitated by what
// this one does not build, put in place while no server runs.
func TestServersUpgraded_WhatAnOlderOneBuiltIsLeft_UntilSomebodyEditsIt(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	built := w.deployment(claim)
	w.Claim(t, w.namespace, claim.Name, func(c *v1alpha1.SandboxClaim) bool {
		return c.Status.Deployment != nil && *c.Status.Deployment == v1alpha1.DeploymentRecord{UID: built.UID, Generation: built.Generation}
	})
	w.startsAgain()
	for _, server := range w.servers.List {
		require.NoError(t, server.Stop())
	}
	olderGrace := *built.Spec.Template.Spec.TerminationGracePeriodSeconds + 7
	older := w.editGrace(claim, olderGrace)
	w.rewrite(claim, older.Generation)
	before := w.runs(claim)
	for _, server := range w.servers.List {
		require.NoError(t, server.Start(t.Context()))
	}
	require.NoError(t, w.WaitServed(t.Context()))

	history := w.Record(t, w.namespace)
	history.First(t, framework.FailoverTimeout, claim.Name, "is Bound", framework.Bound)
	w.reconciled(claim)
	assert.Equal(t, ptr.To(olderGrace), w.deployment(claim).Spec.Template.Spec.TerminationGracePeriodSeconds)
	assert.Equal(t, before, w.runs(claim), "it runs on")

	w.editGrace(claim, olderGrace+1)
	framework.Eventually(t, framework.Shortly, "an edit that nobody recorded is mended", func(context.Context) (*int64, error) {
		return w.deployment(claim).Spec.Template.Spec.TerminationGracePeriodSeconds, nil
	}, func(grace *int64) bool { return *grace == *built.Spec.Template.Spec.TerminationGracePeriodSeconds })
	w.Claim(t, w.namespace, claim.Name, framework.Bound)
}

// editGrace changes a claim's Deployment.
func (w *world) editGrace(claim *v1alpha1.SandboxClaim, seconds int64) *appsv1.Deployment {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"terminationGracePeriodSeconds": seconds}}}})
	require.NoError(w.t, err)
	edited, err := w.Kube.AppsV1().Deployments(w.namespace).Patch(w.t.Context(), claim.Status.SandboxName, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w.t, err)
	return edited
}

// rewrite changes a stored claim's record of its Deployment while no server runs.
func (w *world) rewrite(claim *v1alpha1.SandboxClaim, generation int64) {
	w.t.Helper()
	etcd, err := w.Etcd()
	require.NoError(w.t, err)
	defer func() { _ = etcd.Close() }()
	key := w.servers.EtcdPrefix() + "/sandbox.omnia/sandboxclaims/" + w.namespace + "/" + claim.Name
	stored, err := etcd.Get(w.t.Context(), key)
	require.NoError(w.t, err)
	require.Len(w.t, stored.Kvs, 1, "the claim is stored")
	var object map[string]any
	require.NoError(w.t, json.Unmarshal(stored.Kvs[0].Value, &object))
	object["status"].(map[string]any)["deployment"].(map[string]any)["generation"] = generation
	changed, err := json.Marshal(object)
	require.NoError(w.t, err)
	_, err = etcd.Put(w.t.Context(), key, string(changed))
	require.NoError(w.t, err)
}
