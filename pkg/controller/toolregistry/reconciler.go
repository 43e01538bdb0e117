// Package toolregistry reports on ToolRegistries whether their sandboxes can work, by the condition SandboxesValid: it reads
// the classes that a registry names, asks pkg/lifecycle, and writes the condition where it changed. It refuses to write
// anything else of a ToolRegistry, which is Omnia's, and to keep anybody from a sandbox: acquire decides for itself.
package toolregistry

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/controller/classes"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
)

const (
	// soon is when to look again at a registry that changed under a write.
	soon = time.Second
	// longestNote is what an Event may hold of a message.
	longestNote = 1024
	// actionReconcile is what the controller did, in an Event's words.
	actionReconcile = "Reconcile"
)

// Reconciler keeps the condition of ToolRegistries true to their classes.
type Reconciler struct {
	// Host reads ToolRegistries from a cache and writes their status.
	Host client.Client
	// Own reads our own group from a cache, OwnLive uncached.
	Own, OwnLive client.Reader
	// Events tells people what they must know.
	Events events.EventRecorder
	Clock  clock.PassiveClock

	// listed says whether the cache of Host has the cluster's ToolRegistries.
	listed func() bool
}

var _ reconcile.Reconciler = &Reconciler{}

// Reconcile looks at one registry.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	registry := &omniav1alpha1.ToolRegistry{}
	err := r.Host.Get(ctx, request.NamespacedName, registry)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading a ToolRegistry: %w", err)
	case registry.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	}
	classes, err := r.classes(ctx, registry)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := registry.DeepCopy()
	if !r.report(registry, classes) {
		return reconcile.Result{}, nil
	}
	// The patch replaces the whole list of conditions. That it is made on the registry as it stands keeps everybody else's.
	err = r.Host.Status().Patch(ctx, registry, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: soon}, nil // and sooner, by the event of whoever changed it
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("writing the status of ToolRegistry %s: %w", request, err)
	}
	r.tell(before, registry)
	return reconcile.Result{}, nil
}

// report puts the condition into the registry's status, or takes it away, and says whether that changes anything.
func (r *Reconciler) report(registry *omniav1alpha1.ToolRegistry, classes map[v1alpha1.ClassReference]*v1alpha1.SandboxClassSpec) bool {
	conditions := &registry.Status.Conditions
	condition, told := lifecycle.SandboxesValid(lifecycle.Registry{ToolRegistry: registry, Classes: classes})
	if !told {
		return apimeta.RemoveStatusCondition(conditions, omniav1alpha1.ConditionSandboxesValid)
	}
	condition.LastTransitionTime = metav1.Time{Time: r.Clock.Now()} // as far as its status changes
	return apimeta.SetStatusCondition(conditions, condition)
}

// classes reads what the registry's sandboxes name.
func (r *Reconciler) classes(ctx context.Context, registry *omniav1alpha1.ToolRegistry) (map[v1alpha1.ClassReference]*v1alpha1.SandboxClassSpec, error) {
	read := map[v1alpha1.ClassReference]*v1alpha1.SandboxClassSpec{}
	for _, sandbox := range registry.Spec.Sandboxes {
		ref := lifecycle.ClassOf(sandbox)
		if _, known := read[ref]; known {
			continue
		}
		class, err := classes.Read(ctx, r.Own, r.OwnLive, registry.Namespace, ref)
		if err != nil {
			return nil, err
		}
		read[ref] = class
	}
	return read, nil
}

// tell tells people that a registry's sandboxes cannot work, and that they can again.
func (r *Reconciler) tell(before, after *omniav1alpha1.ToolRegistry) {
	wrong := func(registry *omniav1alpha1.ToolRegistry) bool {
		return apimeta.IsStatusConditionFalse(registry.Status.Conditions, omniav1alpha1.ConditionSandboxesValid)
	}
	is := apimeta.FindStatusCondition(after.Status.Conditions, omniav1alpha1.ConditionSandboxesValid)
	if is == nil || wrong(before) == wrong(after) {
		return
	}
	kind := corev1.EventTypeNormal
	if wrong(after) {
		kind = corev1.EventTypeWarning
	}
	r.Events.Eventf(after, nil, kind, is.Reason, actionReconcile, "%s", lifecycle.Clip(is.Message, longestNote))
}
