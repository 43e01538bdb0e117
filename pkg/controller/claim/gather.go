package claim

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/controller/classes"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
)

// gather reads what an admission is decided on, but for the queue. What the cache misses is confirmed by a live read, since
// a refusal is for good and a cache may lag behind whoever created the class a moment ago.
func (r *Reconciler) gather(ctx context.Context, w *work) (_ lifecycle.Admission, err error) {
	ctx, span := spans.Start(ctx, spans.Gather)
	defer func() { span.End(err) }()
	if w.runtime == nil || !w.runtime.SandboxesEnabled() {
		if w.runtime, err = r.runtime(ctx, r.HostLive, runtimeOf(w.claim)); err != nil {
			return lifecycle.Admission{}, err
		}
	}
	class, err := r.class(ctx, w.claim)
	return lifecycle.Admission{Claim: w.claim, Runtime: w.runtime, Class: class}, err
}

// runtime reads an AgentRuntime; nil if there is none, or none is named.
func (r *Reconciler) runtime(ctx context.Context, reader client.Reader, key types.NamespacedName) (*omniav1alpha1.AgentRuntime, error) {
	if key.Name == "" {
		return nil, nil
	}
	runtime := &omniav1alpha1.AgentRuntime{}
	err := reader.Get(ctx, key, runtime)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apimeta.IsNoMatchError(err):
		return nil, fmt.Errorf("the cluster has no AgentRuntime CRD (install Omnia, or apply manifests/omnia-crds): %w", err)
	case err != nil:
		return nil, fmt.Errorf("reading AgentRuntime %s: %w", key, err)
	}
	return runtime, nil
}

// class reads the class that the claim names; nil if there is none.
func (r *Reconciler) class(ctx context.Context, claim *v1alpha1.SandboxClaim) (*v1alpha1.SandboxClassSpec, error) {
	return classes.Read(ctx, r.Claims, r.ClaimsLive, claim.Namespace, claim.Spec.ClassRef)
}
