// Package neighbours reads Omnia's AgentRuntimes, ToolRegistries and Workspaces in the host cluster: from a cache, with
// a live read to confirm what the cache misses. It refuses to write them, and to decide what follows from them.
package neighbours

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
)

// Reader reads the neighbours.
type Reader struct {
	host cluster.Cluster
}

// New prepares a reader of the cluster that config leads to. It reads nothing until Start.
func New(config *rest.Config) (*Reader, error) {
	scheme := runtime.NewScheme()
	if err := omniav1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("adding the neighbours' kinds to a scheme: %w", err)
	}
	host, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = scheme
		o.Cache = cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	return &Reader{host: host}, nil
}

// Start fills the cache and keeps it, until ctx ends.
func (r *Reader) Start(ctx context.Context) error {
	go r.tellMissing(ctx)
	return r.host.Start(ctx)
}

// AgentRuntime reads a runtime. NotFound is confirmed by a live read.
func (r *Reader) AgentRuntime(ctx context.Context, namespace, name string) (*omniav1alpha1.AgentRuntime, error) {
	out := &omniav1alpha1.AgentRuntime{}
	return out, r.get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, out)
}

// ToolRegistry reads the registry that the runtime refers to. NotFound if it refers to none, is confirmed by a live read
// otherwise. A registry in another namespace is refused.
func (r *Reader) ToolRegistry(ctx context.Context, owner *omniav1alpha1.AgentRuntime) (*omniav1alpha1.ToolRegistry, error) {
	ref := owner.Spec.ToolRegistryRef
	if ref == nil || ref.Name == "" {
		return nil, apierrors.NewNotFound(omniav1alpha1.Resource("toolregistries"), "")
	}
	if ref.Namespace != "" && ref.Namespace != owner.Namespace {
		return nil, apierrors.NewForbidden(omniav1alpha1.Resource("toolregistries"), ref.Name, fmt.Errorf(
			"AgentRuntime %s/%s refers to a ToolRegistry in namespace %s: it must be in the runtime's own", owner.Namespace, owner.Name, ref.Namespace))
	}
	out := &omniav1alpha1.ToolRegistry{}
	return out, r.get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: ref.Name}, out)
}

// ServiceAccount is the name of the ServiceAccount of the runtime's pods: its own choice, else its Workspace's, else
// <runtime>-facade. A namespace with two Workspaces is an error: the caller could not be told from another's.
func (r *Reader) ServiceAccount(ctx context.Context, owner *omniav1alpha1.AgentRuntime) (string, error) {
	if over := owner.Spec.PodOverrides; over != nil && over.ServiceAccountName != "" {
		return over.ServiceAccountName, nil
	}
	workspaces, err := r.workspacesOf(ctx, owner.Namespace)
	if err != nil {
		return "", err
	}
	if len(workspaces) > 1 {
		return "", fmt.Errorf("namespace %s belongs to %d Workspaces (%s, %s): leave it to one",
			owner.Namespace, len(workspaces), workspaces[0].Name, workspaces[1].Name)
	}
	if len(workspaces) == 1 {
		if run := workspaces[0].Spec.Runtime; run != nil && run.ServiceAccountName != "" {
			return run.ServiceAccountName, nil
		}
	}
	return owner.Name + "-facade", nil
}

// workspacesOf finds the Workspaces that own a namespace. It looks at them all, uncopied: a cluster has few.
func (r *Reader) workspacesOf(ctx context.Context, namespace string) ([]omniav1alpha1.Workspace, error) {
	var all omniav1alpha1.WorkspaceList
	if err := r.host.GetClient().List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("finding the Workspace of namespace %s: %w", namespace, plainly(err))
	}
	var owners []omniav1alpha1.Workspace
	for _, w := range all.Items {
		if w.Spec.Namespace.Name == namespace {
			owners = append(owners, w)
		}
	}
	return owners, nil
}

func (r *Reader) get(ctx context.Context, key client.ObjectKey, into client.Object) error {
	err := r.host.GetClient().Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		err = r.host.GetAPIReader().Get(ctx, key, into)
	}
	return plainly(err)
}

// plainly says what to do about a cluster without the neighbours' CRDs.
func plainly(err error) error {
	if meta.IsNoMatchError(err) {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("the cluster has no %s CRDs (%v): install Omnia, or apply manifests/omnia-crds", omniav1alpha1.GroupName, err))
	}
	return err
}
