package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	serverPod      = framework.ServerName + "-0"
	restoreOverlay = "test/install/restore"
)

// The steps are those of the operations page.
func TestEmbedded_RestoredFromABackup_ClaimsAreAsTheyWereAndTheirSandboxesRunOn(t *testing.T) {
	w := install(t, framework.LocalOverlay, nil)
	standing, ended := w.acquire("standing"), w.acquire("ended")
	pod := w.pod(standing)
	backup := w.backup()
	later := w.acquire("later")
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	require.NoError(t, claims.Delete(t.Context(), ended.Name, metav1.DeleteOptions{}))
	w.sandboxGone(ended.UID)

	require.NoError(t, w.Apply(t.Context(), restoreOverlay))
	w.send(backup[:len(backup)/2])
	w.restoreRefused("cut off", "use another copy of it")
	w.send(backup)
	w.rolledOut()
	logs, err := w.Kubectl(t.Context(), "--namespace", framework.SystemNamespace, "logs", serverPod, "--container", "restore")
	require.NoError(t, err)
	assert.Regexp(t, `Restored \d+ keys into /var/lib/sandbox-apiserver/etcd`, logs)
	assert.Contains(t, logs, "What was there before is in /var/lib/sandbox-apiserver/etcd/data.before-")
	require.NoError(t, w.Apply(t.Context(), framework.LocalOverlay))
	w.rolledOut()

	w.sandboxGone(later.UID)
	_, err = claims.Get(t.Context(), later.Name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "a claim of after the backup: %v", err)
	assert.Equal(t, standing.UID, w.acquire("standing").UID)
	assert.Equal(t, pod.UID, w.pod(standing).UID, "its sandbox was left alone")
	assert.Equal(t, ended.UID, w.acquire("ended").UID, "a claim that was deleted since is back, and its sandbox with it")
	assert.NotEqual(t, later.UID, w.acquire("later").UID, "whoever asks again has a sandbox again")
	for _, container := range w.servers()[0].Spec.Containers {
		assert.NotContains(t, container.Args, "--accept-new-store", "it serves by itself from now on")
	}
}

// backup is a snapshot of the server that serves, as it arrives outside the cluster.
func (w *world) backup() []byte {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), framework.PodTimeout)
	defer cancel()
	var out, told bytes.Buffer
	command := w.KubectlCommand(ctx, "--namespace", framework.SystemNamespace, "exec", serverPod, "--container", "server", "--",
		"/sandbox-apiserver", "snapshot", "-")
	command.Stdout, command.Stderr = &out, &told
	require.NoError(w.t, command.Run(), told.String())
	require.Contains(w.t, told.String(), fmt.Sprintf("Wrote %d bytes, sha256 %x", out.Len(), sha256.Sum256(out.Bytes())))
	return out.Bytes()
}

// send gives a snapshot to the pod that waits for one, as soon as there is one.
func (w *world) send(snapshot []byte) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "snapshot")
	require.NoError(w.t, os.WriteFile(path, snapshot, 0o600))
	framework.Eventually(w.t, framework.PodTimeout, "the pod takes a snapshot", func(ctx context.Context) (string, error) {
		file, err := os.Open(path) // anew: an attempt that failed may have read some of it
		if err != nil {
			return "", err
		}
		defer func() { _ = file.Close() }()
		command := w.KubectlCommand(ctx, "--namespace", framework.SystemNamespace, "attach", serverPod, "--container", "restore", "--stdin")
		command.Stdin = file
		told, err := command.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, told)
		}
		return string(told), nil
	}, func(string) bool { return true })
}

// restoreRefused waits until the pod has refused what it was sent, in these words, and waits for another snapshot.
func (w *world) restoreRefused(words ...string) {
	w.t.Helper()
	framework.Eventually(w.t, framework.PodTimeout, "the snapshot is refused", func(ctx context.Context) (*corev1.ContainerState, error) {
		pod, err := w.Kube.CoreV1().Pods(framework.SystemNamespace).Get(ctx, serverPod, metav1.GetOptions{})
		if err != nil || len(pod.Status.InitContainerStatuses) != 1 {
			return nil, err
		}
		status := pod.Status.InitContainerStatuses[0]
		if status.RestartCount == 0 {
			return &status.LastTerminationState, nil
		}
		return &status.State, nil
	}, func(state *corev1.ContainerState) bool { return state != nil && state.Running != nil })
	logs, err := w.Kubectl(w.t.Context(), "--namespace", framework.SystemNamespace, "logs", serverPod, "--container", "restore", "--previous")
	require.NoError(w.t, err)
	for _, say := range words {
		assert.Contains(w.t, logs, say)
	}
}

// sandboxGone waits until nothing of a claim's sandbox runs.
func (w *world) sandboxGone(claim types.UID) {
	w.t.Helper()
	framework.Eventually(w.t, framework.GoneTimeout, "the sandbox is gone", func(ctx context.Context) ([]string, error) {
		var names []string
		deployments, err := w.Kube.AppsV1().Deployments(w.namespace).List(ctx, framework.OfClaim(claim))
		if err != nil {
			return nil, err
		}
		for _, deployment := range deployments.Items {
			names = append(names, "deployment "+deployment.Name)
		}
		pods, err := w.PodsOf(ctx, w.namespace, claim)
		for _, pod := range pods {
			names = append(names, "pod "+pod.Name)
		}
		return names, err
	}, func(names []string) bool { return len(names) == 0 })
}

// rolledOut waits until the server's pod is the one that was applied last, and serves.
func (w *world) rolledOut() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*framework.PodTimeout)
	defer cancel()
	out, err := w.Kubectl(ctx, "--namespace", framework.SystemNamespace, "rollout", "status", "statefulset/"+framework.ServerName)
	require.NoError(w.t, err, strings.TrimSpace(out))
	require.NoError(w.t, w.WaitServed(ctx))
}
