package toolregistry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

var (
	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tools = client.ObjectKey{Namespace: "agents", Name: "tools"}
)

// world is a reconciler over two clusters that are held in memory.
type world struct {
	*testing.T
	r      *Reconciler
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	// host and own are what the test reads and writes by.
	host, own client.WithWatch
	// writes are the patches of a status that were tried.
	writes int
	// meanwhile happens before a patch of a status gets through.
	meanwhile func()
	// hidden is a class that the cache does not hold yet, and reading an error of each read.
	hidden  string
	reading error
}

// newWorld holds the classes small and large of each kind, with their ports in that order, and the registries.
func newWorld(t *testing.T, registries ...client.Object) *world {
	hostScheme, ownScheme := runtime.NewScheme(), runtime.NewScheme()
	require.NoError(t, omniav1alpha1.AddToScheme(hostScheme))
	require.NoError(t, v1alpha1.AddToScheme(ownScheme))
	w := &world{T: t, clock: clocktesting.NewFakePassiveClock(began), events: events.NewFakeRecorder(100), meanwhile: func() {}}
	w.host = fake.NewClientBuilder().WithScheme(hostScheme).WithObjects(registries...).
		WithStatusSubresource(&omniav1alpha1.ToolRegistry{}).
		WithIndex(&omniav1alpha1.ToolRegistry{}, byClass, classesOf).Build()
	w.own = fake.NewClientBuilder().WithScheme(ownScheme).WithObjects(smallClass(), largeClass()).Build()
	w.r = &Reconciler{Host: w.counted(), Own: w.cached(), OwnLive: w.own, Events: w.events, Clock: w.clock, listed: func() bool { return true }}
	return w
}

func (w *world) counted() client.Client {
	return interceptor.NewClient(w.host, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			w.writes++
			w.meanwhile()
			return c.SubResource(sub).Patch(ctx, object, patch, opts...)
		},
	})
}

func (w *world) cached() client.Client {
	return interceptor.NewClient(w.own, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			switch {
			case w.reading != nil:
				return w.reading
			case w.hidden == key.Name:
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return c.Get(ctx, key, into, opts...)
		},
	})
}

// reconcile looks at the registry once.
func (w *world) reconcile() (reconcile.Result, error) {
	return w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: tools})
}

// settled looks at the registry until it has nothing to write, and gives its condition; nil if it has none.
func (w *world) settled() *metav1.Condition {
	w.Helper()
	for range 3 {
		before := w.writes
		_, err := w.reconcile()
		require.NoError(w, err)
		if w.writes == before {
			return w.condition(omniav1alpha1.ConditionSandboxesValid)
		}
	}
	require.Fail(w, "it never settles", "%+v", w.registry())
	return nil
}

func (w *world) registry() *omniav1alpha1.ToolRegistry {
	w.Helper()
	registry := &omniav1alpha1.ToolRegistry{}
	require.NoError(w, w.host.Get(w.Context(), tools, registry))
	return registry
}

func (w *world) condition(kind string) *metav1.Condition {
	w.Helper()
	return apimeta.FindStatusCondition(w.registry().Status.Conditions, kind)
}

// change changes the registry's spec, and its generation with it, as an API server would.
func (w *world) change(change func(*omniav1alpha1.ToolRegistrySpec)) {
	w.Helper()
	registry := w.registry()
	change(&registry.Spec)
	registry.Generation++
	require.NoError(w, w.host.Update(w.Context(), registry))
}

// someoneWrites has somebody else write a condition of the registry.
func (w *world) someoneWrites(kind string) {
	w.Helper()
	registry := w.registry()
	apimeta.SetStatusCondition(&registry.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Theirs",
		LastTransitionTime: metav1.Time{Time: began.Add(-time.Hour)}})
	require.NoError(w, w.host.Status().Update(w.Context(), registry))
}

// told gives what people were told since the last time.
func (w *world) told() []string {
	var out []string
	for len(w.events.Events) > 0 {
		out = append(out, <-w.events.Events)
	}
	return out
}

// registryOf declares the sandbox shell of a class, and a handler that addresses its port mcp.
func registryOf(class string, kind v1alpha1.ClassKind) *omniav1alpha1.ToolRegistry {
	return &omniav1alpha1.ToolRegistry{
		ObjectMeta: metav1.ObjectMeta{Namespace: tools.Namespace, Name: tools.Name, Generation: 1},
		Spec: omniav1alpha1.ToolRegistrySpec{
			Sandboxes: []omniav1alpha1.RegistrySandbox{{Name: "shell", ClassRef: omniav1alpha1.ClassReference{Name: class, Kind: string(kind)}}},
			Handlers:  []omniav1alpha1.RegistryHandler{{Name: "run", Sandbox: &omniav1alpha1.HandlerSandbox{Name: "shell", Port: "mcp"}}},
		},
	}
}

func smallClass() *v1alpha1.SandboxClass {
	return &v1alpha1.SandboxClass{ObjectMeta: metav1.ObjectMeta{Namespace: tools.Namespace, Name: "small"},
		Spec: v1alpha1.SandboxClassSpec{Ports: []v1alpha1.ClassPort{{Name: "mcp", Port: 8080}}}}
}

func largeClass() *v1alpha1.ClusterSandboxClass {
	return &v1alpha1.ClusterSandboxClass{ObjectMeta: metav1.ObjectMeta{Name: "large"},
		Spec: v1alpha1.SandboxClassSpec{Ports: []v1alpha1.ClassPort{{Name: "view", Port: 8081}}}}
}

func TestReconcile_TheClassIsOfTheKindAndPlaceThatAreNamed(t *testing.T) {
	tests := map[string]struct {
		name   string
		kind   v1alpha1.ClassKind
		reason string
	}{
		"a class of the namespace":               {"small", v1alpha1.SandboxClassKind, omniav1alpha1.ReasonValid},
		"a class of the namespace, kind unset":   {"small", "", omniav1alpha1.ReasonValid},
		"it is no class of the cluster":          {"small", v1alpha1.ClusterSandboxClassKind, omniav1alpha1.ReasonClassNotFound},
		"a class of the cluster, another port":   {"large", v1alpha1.ClusterSandboxClassKind, omniav1alpha1.ReasonUnknownPort},
		"it is no class of the namespace":        {"large", "", omniav1alpha1.ReasonClassNotFound},
		"a class of another namespace":           {"theirs", v1alpha1.SandboxClassKind, omniav1alpha1.ReasonClassNotFound},
		"a kind that no class is of: no mistake": {"small", "Pod", omniav1alpha1.ReasonClassNotFound},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, registryOf(tt.name, tt.kind))
			theirs := smallClass()
			theirs.Namespace, theirs.Name = "others", "theirs"
			require.NoError(t, w.own.Create(t.Context(), theirs))
			got := w.settled()
			require.NotNil(t, got)
			assert.Equal(t, tt.reason, got.Reason, got.Message)
			assert.Equal(t, int64(1), got.ObservedGeneration)
		})
	}
}

func TestReconcile_WhatDoesNotChangeIsNotWritten(t *testing.T) {
	w := newWorld(t, registryOf("small", ""))
	_, err := w.reconcile()
	require.NoError(t, err)
	require.Equal(t, 1, w.writes)
	version := w.registry().ResourceVersion
	w.clock.SetTime(began.Add(time.Hour))
	for range 3 {
		_, err := w.reconcile()
		require.NoError(t, err)
	}
	assert.Equal(t, 1, w.writes)
	assert.Equal(t, version, w.registry().ResourceVersion)
	assert.Empty(t, w.told(), "that all is well is nothing that a person must know")
}

func TestReconcile_FalseAndTrueAgain_ToldOnceEach(t *testing.T) {
	w := newWorld(t, registryOf("small", ""))
	require.Equal(t, metav1.ConditionTrue, w.settled().Status)

	w.clock.SetTime(began.Add(time.Minute))
	w.change(func(s *omniav1alpha1.ToolRegistrySpec) { s.Handlers[0].Sandbox.Port = "none" })
	is := w.settled()
	assert.Equal(t, metav1.ConditionFalse, is.Status)
	assert.Equal(t, int64(2), is.ObservedGeneration)
	assert.True(t, is.LastTransitionTime.Time.Equal(began.Add(time.Minute)), is.LastTransitionTime)
	told := w.told()
	require.Len(t, told, 1)
	assert.True(t, strings.HasPrefix(told[0], "Warning UnknownPort handler run: "), told[0])

	w.clock.SetTime(began.Add(2 * time.Minute))
	w.change(func(s *omniav1alpha1.ToolRegistrySpec) { s.Handlers[0].Sandbox.Name = "nowhere" })
	is = w.settled()
	assert.Equal(t, omniav1alpha1.ReasonUnknownSandbox, is.Reason)
	assert.True(t, is.LastTransitionTime.Time.Equal(began.Add(time.Minute)), "it was wrong since then: %s", is.LastTransitionTime)
	assert.Empty(t, w.told(), "it was wrong before")

	w.change(func(s *omniav1alpha1.ToolRegistrySpec) { s.Handlers[0].Sandbox = nil })
	is = w.settled()
	assert.Equal(t, metav1.ConditionTrue, is.Status)
	assert.True(t, is.LastTransitionTime.Time.Equal(began.Add(2*time.Minute)), is.LastTransitionTime)
	assert.Equal(t, []string{"Normal Valid " + is.Message}, w.told())
}

func TestReconcile_NoSandboxesAnyMore_TheConditionGoes_TheirsStay(t *testing.T) {
	w := newWorld(t, registryOf("none", ""))
	w.someoneWrites("Ready")
	require.Equal(t, metav1.ConditionFalse, w.settled().Status)
	w.told()
	w.change(func(s *omniav1alpha1.ToolRegistrySpec) { *s = omniav1alpha1.ToolRegistrySpec{} })
	assert.Nil(t, w.settled())
	assert.NotNil(t, w.condition("Ready"))
	assert.Empty(t, w.told())

	without := registryOf("small", "")
	without.Spec = omniav1alpha1.ToolRegistrySpec{}
	w = newWorld(t, without)
	assert.Nil(t, w.settled())
	assert.Zero(t, w.writes, "a registry that has nothing to do with sandboxes is not written")
}

func TestReconcile_SomebodyWritesMeanwhile_TheirConditionStays(t *testing.T) {
	w := newWorld(t, registryOf("small", ""))
	w.someoneWrites("Ready")
	before := w.condition("Ready")
	w.meanwhile = func() {
		w.meanwhile = func() {}
		w.someoneWrites("Discovered")
	}
	result, err := w.reconcile()
	require.NoError(t, err, "a conflict is nothing that went wrong")
	assert.Positive(t, result.RequeueAfter, "it is looked at again")
	assert.Nil(t, w.condition(omniav1alpha1.ConditionSandboxesValid), "nothing was written over what it had not seen")
	assert.Empty(t, w.told())

	require.NotNil(t, w.settled())
	assert.Equal(t, before, w.condition("Ready"))
	assert.NotNil(t, w.condition("Discovered"))
}

func TestReconcile_ACacheThatLagsBehindTheClass_NoFalseAlarm(t *testing.T) {
	w := newWorld(t, registryOf("small", ""))
	w.hidden = "small"
	assert.Equal(t, metav1.ConditionTrue, w.settled().Status)
	assert.Empty(t, w.told())
}

func TestReconcile_WhatCannotBeRead_IsTriedAgainAndSaysNothing(t *testing.T) {
	w := newWorld(t, registryOf("small", ""))
	w.reading = errors.New("no connection")
	_, err := w.reconcile()
	require.ErrorContains(t, err, "reading SandboxClass agents/small: no connection")
	assert.Nil(t, w.condition(omniav1alpha1.ConditionSandboxesValid), "an error is no missing class")
}

func TestReconcile_ARegistryThatIsGoneOrGoing_IsLeftAlone(t *testing.T) {
	w := newWorld(t)
	_, err := w.reconcile()
	require.NoError(t, err)

	going := registryOf("none", "")
	going.Finalizers, going.DeletionTimestamp = []string{"example.test/keep"}, &metav1.Time{Time: began}
	w = newWorld(t, going)
	assert.Nil(t, w.settled())
}

func TestReconcile_TheEventsNoteIsClipped(t *testing.T) {
	registry := registryOf("small", "")
	registry.Spec.Handlers[0].Sandbox.Port = strings.Repeat("é", longestNote)
	w := newWorld(t, registry)
	require.Greater(t, len(w.settled().Message), longestNote)
	note := strings.TrimPrefix(w.told()[0], "Warning UnknownPort ")
	assert.LessOrEqual(t, len(note), longestNote, "the API server refuses a longer one")
}
