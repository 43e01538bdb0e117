package claim

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

const (
	// podsByClaim indexes pods by the UID of their claim.
	podsByClaim = "claim-uid"
	// slicesByService indexes EndpointSlices by their Service.
	slicesByService = "service"
	// byRuntime indexes claims by their AgentRuntime, and sandboxes' Deployments likewise.
	byRuntime = "runtime"
	// byClaim indexes a sandbox's objects by the name of the claim whose they are, be that still there or not.
	byClaim = "claim"
	// queuedByRuntime indexes the Queued claims among them.
	queuedByRuntime = "queued-by-runtime"
	// byAllowedService indexes claims by the Services that their sandboxes may reach.
	byAllowedService = "allowed-service"
	// byReach indexes NetworkPolicies by whom they may concern.
	byReach = "reach"
	// anyFloor is where the floors of all namespaces are found by it. No namespace is called so.
	anyFloor = "/floor"
)

// index gives a cache's objects as they lie there, which therefore are only read. A client's list would copy each of a
// runtime's claims and Deployments, for each decision on one of them.
type index interface {
	GetByKey(key string) (item any, exists bool, err error)
	ByIndex(name, value string) ([]any, error)
	ListIndexFuncValues(name string) []string
}

var _ index = toolscache.Indexer(nil)

// How each kind is found.
var (
	claimIndexes = toolscache.Indexers{
		byRuntime: indexedBy(runtimeOfClaim), queuedByRuntime: indexedBy(runtimeOfQueued), byAllowedService: allowedServices,
	}
	deploymentIndexes = toolscache.Indexers{byRuntime: indexedBy(runtimeOfDeployment), byClaim: indexedBy(claimOf)}
	serviceIndexes    = toolscache.Indexers{byClaim: indexedBy(claimOf)}
	policyIndexes     = toolscache.Indexers{byReach: policyReach, byClaim: indexedBy(claimOf)}
)

// indexedBy has an object found by the name of another in its namespace; one that names none is not found.
func indexedBy(nameOf func(client.Object) string) toolscache.IndexFunc {
	return func(o any) ([]string, error) {
		object, ok := o.(client.Object)
		if !ok {
			return nil, fmt.Errorf("a cache holds a %T, which is no object", o)
		}
		name := nameOf(object)
		if name == "" {
			return nil, nil
		}
		return []string{types.NamespacedName{Namespace: object.GetNamespace(), Name: name}.String()}, nil
	}
}

// claimOf is the claim whose an object is.
func claimOf(o client.Object) string { return sandbox.ClaimOf(o) }

// keyOf is the AgentRuntime, or the claim, of which an index's value speaks.
func keyOf(value string) types.NamespacedName {
	namespace, name, _ := strings.Cut(value, string(types.Separator))
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// runtimeOf names a claim's AgentRuntime; without a name if the claim is of none.
func runtimeOf(claim *v1alpha1.SandboxClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.RuntimeName()}
}

func runtimeOfClaim(o client.Object) string {
	if claim, ok := o.(*v1alpha1.SandboxClaim); ok {
		return claim.RuntimeName()
	}
	return ""
}

func runtimeOfQueued(o client.Object) string {
	if claim, ok := o.(*v1alpha1.SandboxClaim); ok && claim.Status.Phase == v1alpha1.PhaseQueued {
		return claim.RuntimeName()
	}
	return ""
}

// runtimeOfDeployment is the runtime of what a claim controls, and none of what only bears the label.
func runtimeOfDeployment(o client.Object) string {
	if sandbox.ClaimUIDOf(o) == "" {
		return ""
	}
	return o.GetLabels()[v1alpha1.LabelAgentRuntime]
}

// found gives what an index has of an AgentRuntime.
func found[T client.Object](in index, runtime types.NamespacedName) ([]T, error) {
	return foundBy[T](in, byRuntime, runtime.String())
}

func foundBy[T client.Object](in index, name, value string) ([]T, error) {
	held, err := in.ByIndex(name, value)
	if err != nil {
		return nil, err
	}
	out := make([]T, 0, len(held))
	for _, one := range held {
		object, ok := one.(T)
		if !ok {
			return nil, fmt.Errorf("the cache holds a %T among them", one)
		}
		out = append(out, object)
	}
	return out, nil
}

// indexed adds indexes to a cache's objects of one kind, and gives them.
func indexed(ctx context.Context, in cache.Cache, object client.Object, by toolscache.Indexers) (index, error) {
	informer, err := in.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("indexing %T: %w", object, err)
	}
	if err := informer.AddIndexers(by); err != nil {
		return nil, fmt.Errorf("indexing %T: %w", object, err)
	}
	holder, ok := informer.(interface{ GetIndexer() toolscache.Indexer })
	if !ok {
		return nil, fmt.Errorf("indexing %T: the cache's informer, a %T, does not give its objects", object, informer)
	}
	return holder.GetIndexer(), nil
}

// addIndexes has the reconciler find what it looks for in the caches.
func (r *Reconciler) addIndexes(ctx context.Context, host, claims cache.Cache) error {
	for _, by := range []struct {
		object client.Object
		field  string
		label  string
	}{
		{&corev1.Pod{}, podsByClaim, v1alpha1.LabelClaimUID},
		{&discoveryv1.EndpointSlice{}, slicesByService, discoveryv1.LabelServiceName},
	} {
		if err := host.IndexField(ctx, by.object, by.field, labelIndex(by.label)); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", by.object, by.field, err)
		}
	}
	var err error
	if r.claims, err = indexed(ctx, claims, &v1alpha1.SandboxClaim{}, claimIndexes); err != nil {
		return err
	}
	if r.deployments, err = indexed(ctx, host, &appsv1.Deployment{}, deploymentIndexes); err != nil {
		return err
	}
	if r.services, err = indexed(ctx, host, &corev1.Service{}, serviceIndexes); err != nil {
		return err
	}
	r.policies, err = indexed(ctx, host, &networkingv1.NetworkPolicy{}, policyIndexes)
	return err
}

func labelIndex(label string) client.IndexerFunc {
	return func(o client.Object) []string { return []string{o.GetLabels()[label]} }
}
