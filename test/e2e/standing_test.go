package e2e

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	// untilUnready is how long a sandbox may go without an answer before the readiness rule notices: ten probes, one a
	// second, and the time that the last of them may take.
	untilUnready = 11 * time.Second
	// busy is what a busy machine may add to that which takes a moment. What is only looked at again takes 10 seconds.
	busy = 8 * time.Second
)

// A sandbox that hangs, with its port open and nobody behind it, is Bound for no longer than the readiness rule says.
func TestSandbox_ThatAnswersNoLonger_IsNotBoundForLonger(t *testing.T) {
	w := newWorld(t, asItIs)
	claim := w.bound("hangs")
	process := w.process(claim)
	history := w.Record(t, w.namespace)
	hung := time.Now()
	require.NoError(t, process.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = process.Signal(syscall.SIGCONT) }) // else the pod could not end; it may have ended
	noticed := history.First(t, framework.BoundTimeout, claim.Name, "is Pending", framework.InPhase(v1alpha1.PhasePending))
	assert.Less(t, noticed.At.Sub(hung), untilUnready+busy)
	assert.Greater(t, noticed.At.Sub(hung), untilUnready/2, "a hiccup is not told")
	assert.Equal(t, v1alpha1.ReasonPodNotReady, framework.Reason(noticed.Claim))
	assert.Contains(t, framework.Message(noticed.Claim), w.pod(claim).Name)
	assert.Empty(t, noticed.Claim.Status.Addresses)

	require.NoError(t, process.Signal(syscall.SIGCONT))
	woken := time.Now()
	again := w.bound("hangs")
	assert.Less(t, time.Since(woken), busy)
	assert.Equal(t, claim.UID, again.UID)
	assert.Equal(t, claim.Status.Addresses, again.Status.Addresses)
}

// process finds the process of a claim's container on this machine, which is the node.
func (w *world) process(claim *v1alpha1.SandboxClaim) *os.Process {
	w.t.Helper()
	process, err := framework.ProcessOf(w.pod(claim).UID, "sandbox")
	require.NoError(w.t, err)
	return process
}

func TestNetworkPolicy_DeletedByHand_IsBackAtOnce_AndHolds(t *testing.T) {
	w := newWorld(t, asItIs)
	claim := w.bound("opened")
	address := claim.Status.Addresses["mcp"]
	w.StartPod(t, framework.AgentPod(w.namespace, "runtime", facade, framework.AgentLabels(runtimeName), "sleep"))
	w.StartPod(t, framework.AgentPod(w.namespace, "knocker", facade, nil, "sleep"))
	other := w.StartPod(t, framework.AgentPod(w.namespace, "other", "stranger", nil, "listen", "-addr", ":8080"))
	w.reaches("runtime", address)
	w.reaches("knocker", other.Status.PodIP+":8080")

	history := w.Record(t, w.namespace)
	policies := w.Kube.NetworkingV1().NetworkPolicies(w.namespace)
	before, err := policies.Get(t.Context(), claim.Status.SandboxName, metav1.GetOptions{})
	require.NoError(t, err)
	soon, cancel := context.WithTimeout(t.Context(), framework.Shortly)
	defer cancel()
	watcher, err := policies.Watch(soon, metav1.ListOptions{FieldSelector: "metadata.name=" + before.Name, ResourceVersion: before.ResourceVersion})
	require.NoError(t, err)
	defer watcher.Stop()
	deleted := time.Now()
	require.NoError(t, policies.Delete(t.Context(), before.Name, metav1.DeleteOptions{}))
	for event := range watcher.ResultChan() {
		if event.Type == watch.Added {
			break
		}
	}
	assert.Less(t, time.Since(deleted), busy)
	w.reaches("runtime", address)
	// The network plugin saw it go and come back, each a moment later.
	framework.Eventually(t, framework.Shortly, "a pod that is not labelled as the runtime is kept out, and the sandbox in", func(context.Context) (string, error) {
		in, err := w.exec("knocker", "dial", address)
		if err == nil {
			return in, nil
		}
		return w.exec("runtime", "call", "-address", address, "-tool", "shell", "-args", `{"command":"dial `+other.Status.PodIP+`:8080"}`)
	}, func(out string) bool { return !strings.Contains(out, "connected") })
	for _, seen := range history.Of(claim.Name) {
		assert.True(t, framework.Bound(seen.Claim))
		assert.Equal(t, claim.Status.Addresses, seen.Claim.Status.Addresses)
	}
}
