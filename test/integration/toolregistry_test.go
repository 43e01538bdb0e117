package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// mine is the registry of a test's own, beside the world's.
const mine = "mine"

// valid waits until a registry's SandboxesValid tells of the registry as it is now, with this reason, and gives it.
func (w *world) valid(name, reason string) *metav1.Condition {
	w.t.Helper()
	return w.validWithin(framework.Shortly, name, reason)
}

func (w *world) validWithin(timeout time.Duration, name, reason string) *metav1.Condition {
	w.t.Helper()
	registry := framework.Eventually(w.t, timeout, "ToolRegistry "+name+" says "+reason, func(ctx context.Context) (*omniav1alpha1.ToolRegistry, error) {
		registry := &omniav1alpha1.ToolRegistry{}
		return registry, w.Client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, registry)
	}, func(registry *omniav1alpha1.ToolRegistry) bool {
		is := sandboxesValid(registry)
		return is != nil && is.Reason == reason && is.ObservedGeneration == registry.Generation
	})
	return sandboxesValid(registry)
}

func sandboxesValid(registry *omniav1alpha1.ToolRegistry) *metav1.Condition {
	return apimeta.FindStatusCondition(registry.Status.Conditions, omniav1alpha1.ConditionSandboxesValid)
}

// specOf gives the test's registry another spec, as far as it is named.
func (w *world) specOf(patch string) {
	w.t.Helper()
	registry := framework.MakeToolRegistry(mine, w.namespace).Obj()
	require.NoError(w.t, w.Client.Patch(w.t.Context(), registry, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+patch+`}`))))
}

// handlers are those of a registry that has one, which addresses a port of the sandbox shell. Its type is Omnia's.
func handlers(port string) string {
	return fmt.Sprintf(`{"handlers":[{"name":"run","type":"mcp","sandbox":{"name":"shell","port":%q}}]}`, port)
}

// sandboxes are those of a registry that has one, of a class.
func sandboxes(class string, kind v1alpha1.ClassKind) string {
	return fmt.Sprintf(`{"sandboxes":[{"name":"shell","classRef":{"name":%q,"kind":%q}}]}`, class, kind)
}

func TestToolRegistry_UnknownPortOrClass_IsReportedAndClears(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.Create(t, framework.MakeToolRegistry(mine, w.namespace).Sandbox("shell", w.class).Handler("run", "shell", "mcp").Obj())
	assert.Equal(t, metav1.ConditionTrue, w.valid(mine, omniav1alpha1.ReasonValid).Status)

	w.specOf(handlers("none"))
	is := w.valid(mine, omniav1alpha1.ReasonUnknownPort)
	assert.Equal(t, metav1.ConditionFalse, is.Status)
	assert.Contains(t, is.Message, "handler run: ClusterSandboxClass "+w.class+" of sandbox shell has no port none: name one of mcp")
	w.specOf(handlers("mcp"))
	w.valid(mine, omniav1alpha1.ReasonValid)
	assert.Equal(t, "mcp", w.kubectl(t, "get", "toolregistry", mine, "--output", "jsonpath={.spec.handlers[0].type}"), "what is Omnia's is kept")

	// A class that comes and goes has the registries that name it looked at, of whichever kind it is.
	class := framework.MakeClass("late-" + w.namespace)
	for kind, object := range map[v1alpha1.ClassKind]client.Object{v1alpha1.SandboxClassKind: class.In(w.namespace), v1alpha1.ClusterSandboxClassKind: class.Cluster()} {
		w.specOf(sandboxes(object.GetName(), kind))
		is := w.valid(mine, omniav1alpha1.ReasonClassNotFound)
		assert.Contains(t, is.Message, fmt.Sprintf("sandbox shell: there is no %s %s", kind, object.GetName()))
		w.CreateUntilEnd(t, object)
		w.valid(mine, omniav1alpha1.ReasonValid)
		require.NoError(t, w.Client.Delete(t.Context(), object))
		w.valid(mine, omniav1alpha1.ReasonClassNotFound)
	}

	w.specOf(`{"sandboxes":null,"handlers":null}`)
	framework.Eventually(t, framework.Shortly, "no sandboxes, no condition", func(ctx context.Context) (*omniav1alpha1.ToolRegistry, error) {
		registry := &omniav1alpha1.ToolRegistry{}
		return registry, w.Client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: mine}, registry)
	}, func(registry *omniav1alpha1.ToolRegistry) bool { return sandboxesValid(registry) == nil })

	framework.Eventually(t, framework.Shortly, "people are told", w.eventsOf, func(said map[string]int) bool {
		return saysOnce(said, []string{"ToolRegistry/mine Warning UnknownPort: handler run"})
	})
	assert.Contains(t, w.kubectl(t, "describe", "toolregistry", mine), "UnknownPort")
}

func TestToolRegistry_WhatNeedsAWorkspace_WithoutOne_IsReported(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.Create(t, framework.MakeToolRegistry(mine, w.namespace).Sandbox("shell", w.class).TargetPath("projects/shop").Obj())
	assert.Contains(t, w.valid(mine, omniav1alpha1.ReasonWorkspaceNotSupported).Message, "drop targetPath")
	w.specOf(sandboxes(w.class, v1alpha1.ClusterSandboxClassKind))
	w.valid(mine, omniav1alpha1.ReasonValid)
}

func TestToolRegistry_ConditionTakenAway_ComesBack(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.valid("tools", omniav1alpha1.ReasonValid) // the world's own
	tools := framework.MakeToolRegistry("tools", w.namespace).Obj()
	require.NoError(t, w.Client.Status().Patch(t.Context(), tools, client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[]}}`))))
	w.valid("tools", omniav1alpha1.ReasonValid)
}

// Somebody else's operator writes the same status all the while, reading and updating the whole of it.
func TestToolRegistry_OthersConditionsStay(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.Create(t, framework.MakeToolRegistry(mine, w.namespace).Sandbox("shell", w.class).Handler("run", "shell", "mcp").Obj())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type counted struct {
		times int
		err   error
	}
	ended := make(chan counted, 1)
	go func() {
		var c counted
		for c.err == nil && ctx.Err() == nil {
			if c.err = w.count(c.times); c.err == nil {
				c.times++
			}
		}
		ended <- c
	}()
	for range 100 { // so that the two meet, however short the moment is in which they can
		w.specOf(handlers("none"))
		w.specOf(handlers("mcp"))
	}
	w.specOf(handlers("none"))
	w.valid(mine, omniav1alpha1.ReasonUnknownPort)
	cancel()
	theirs := <-ended
	require.NoError(t, theirs.err)
	require.Greater(t, theirs.times, 3, "they wrote all the while")

	status := w.registryAsStored().Object["status"].(map[string]any)
	assert.Equal(t, "Ready", status["phase"])
	assert.Equal(t, int64(theirs.times), status["discoveredToolsCount"])
	kept := map[string]bool{}
	for _, one := range status["conditions"].([]any) {
		condition := one.(map[string]any)
		kept[condition["type"].(string)] = true
		if condition["type"] != omniav1alpha1.ConditionSandboxesValid {
			assert.Equal(t, theirCondition(condition["type"].(string)), condition)
		}
	}
	for i := range theirs.times {
		assert.True(t, kept[fmt.Sprintf("Count%d", i)], "condition %d, which somebody wrote meanwhile", i)
	}
	assert.True(t, kept[omniav1alpha1.ConditionSandboxesValid])
}

func theirCondition(kind string) map[string]any {
	return map[string]any{"type": kind, "status": "True", "reason": "Counted", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}
}

// count has somebody else add a condition to the registry, and count it there.
func (w *world) count(i int) error {
	often := wait.Backoff{Steps: 100, Duration: time.Millisecond, Jitter: 1}
	return retry.RetryOnConflict(often, func() error {
		registry := w.registryAsStored()
		conditions, _, err := unstructured.NestedSlice(registry.Object, "status", "conditions")
		if err != nil {
			return err
		}
		registry.Object["status"] = map[string]any{
			"phase": "Ready", "discoveredToolsCount": int64(i + 1), "conditions": append(conditions, theirCondition(fmt.Sprintf("Count%d", i))),
		}
		return w.Client.Status().Update(w.t.Context(), registry)
	})
}

// registryAsStored is the test's registry with all that others wrote into it.
func (w *world) registryAsStored() *unstructured.Unstructured {
	registry := &unstructured.Unstructured{}
	registry.SetGroupVersionKind(omniav1alpha1.SchemeGroupVersion.WithKind("ToolRegistry"))
	assert.NoError(w.t, w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: mine}, registry))
	return registry
}

// Claims that are written by hand need no ToolRegistry, so a cluster that does not know them has claims all the same.
func TestToolRegistry_KindMissing_ClaimsAreServed_AndItIsFoundLater(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.startsAgain()
	t.Cleanup(func() {
		assert.NoError(t, w.InstallOmnia(context.WithoutCancel(t.Context())), "the tests that follow have no ToolRegistries")
	})
	for _, server := range w.servers.List {
		require.NoError(t, server.Stop())
	}
	w.kubectl(t, "delete", "crd", "toolregistries."+omniav1alpha1.GroupName)
	for _, server := range w.servers.List {
		require.NoError(t, server.Start(t.Context()))
	}
	require.NoError(t, w.WaitServed(t.Context()))
	w.Create(t, framework.MakeClaim("by-hand", w.namespace, runtimeName, w.class).Obj())
	w.Claim(t, w.namespace, "by-hand", framework.Bound)

	require.NoError(t, w.InstallOmnia(t.Context()))
	w.Create(t, framework.MakeToolRegistry(mine, w.namespace).Sandbox("shell", w.class).Handler("run", "shell", "none").Obj())
	w.validWithin(framework.FailoverTimeout, mine, omniav1alpha1.ReasonUnknownPort)
	w.specOf(handlers("mcp"))
	w.valid(mine, omniav1alpha1.ReasonValid)
}

func TestLookup_SameNameInBothKinds_NoFallback(t *testing.T) {
	const inNamespace, inCluster = "example.test/namespace:1", "example.test/cluster:1"
	w := newWorld(t, onFakeNodes)
	class := "both-" + w.namespace
	namespaced := func() client.Object {
		return framework.MakeClass(class).OnFakeNodes().Image(inNamespace).In(w.namespace)
	}
	shared := func() client.Object { return framework.MakeClass(class).OnFakeNodes().Image(inCluster).Cluster() }
	w.CreateUntilEnd(t, namespaced(), shared())
	w.Create(t, framework.MakeToolRegistry(mine, w.namespace).
		SandboxOf("unset", "", class).SandboxOf("namespaced", v1alpha1.SandboxClassKind, class).Sandbox("shared", class).Obj())
	w.valid(mine, omniav1alpha1.ReasonValid)
	claim := func(name string, kind v1alpha1.ClassKind, wanted func(*v1alpha1.SandboxClaim) bool) *v1alpha1.SandboxClaim {
		claim := framework.MakeClaim(name, w.namespace, runtimeName, class).Session(name).Obj()
		claim.Spec.ClassRef.Kind = kind
		w.Create(t, claim)
		return w.Claim(t, w.namespace, name, wanted)
	}
	kinds := []struct {
		name  string // of claims
		kind  v1alpha1.ClassKind
		image string
		class func() client.Object
	}{
		{"unset", "", inNamespace, namespaced},
		{"namespaced", v1alpha1.SandboxClassKind, inNamespace, namespaced},
		{"shared", v1alpha1.ClusterSandboxClassKind, inCluster, shared},
	}
	for _, k := range kinds {
		admitted := claim(k.name+"-both", k.kind, func(c *v1alpha1.SandboxClaim) bool { return c.Status.Class != nil })
		assert.Equal(t, k.image, admitted.Status.Class.Image, "both are there: the one that is named")
	}
	for _, k := range kinds {
		require.NoError(t, w.Client.Delete(t.Context(), k.class()))
		w.valid(mine, omniav1alpha1.ReasonClassNotFound) // the controller knows that it is gone
		failed := claim(k.name+"-gone", k.kind, framework.Failed)
		assert.Equal(t, v1alpha1.ReasonClassNotFound, framework.Reason(failed), "the other is there: nothing in its place")
		w.Create(t, k.class())
		w.valid(mine, omniav1alpha1.ReasonValid)
	}
}
