// Package kept says what the controllers' caches hold of an object. A claim that stands has six objects there for as
// long as it lives; most of each is read by nobody, or the same for all claims of a class. It refuses to drop what
// pkg/controller/claim reads, and anything of what that package may write back: who reads another field there keeps it here.
package kept

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/interned"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
)

// remembered is how many values that objects have in common a Keeper remembers: some for each class and AgentRuntime. A
// value takes a few kilobytes at most, so where no two sandboxes are alike they take some 15 MB for nothing.
const remembered = 4096

// Keeper makes objects small before a cache takes them. What equals another object's is then a part of both, so an object
// of such a cache is never changed; a copy of it may be.
type Keeper struct{ pool *interned.Pool }

// NewKeeper gives a Keeper that remembers nothing yet.
func NewKeeper() *Keeper { return &Keeper{pool: interned.NewPool(remembered)} }

var stripManagedFields = cache.TransformStripManagedFields()

// Keep is a cache's transform. It changes the object that it is given, which nobody else has yet. Informers may give it
// what it made already, and that stays as it is.
func (k *Keeper) Keep(object any) (any, error) {
	switch o := object.(type) {
	case *v1alpha1.SandboxClaim:
		k.claim(o)
	case *networkingv1.NetworkPolicy:
		k.policy(o)
	case *corev1.Service:
		k.service(o)
	case *appsv1.Deployment:
		k.deployment(o)
	case *corev1.Pod:
		k.pod(o)
	case *discoveryv1.EndpointSlice:
		k.slice(o)
	default:
		return stripManagedFields(object)
	}
	return object, nil
}

// claim drops what others alone read. The status and the finalizers are written as a patch between two copies of what is
// kept, so what is missing from both is left as it is stored.
func (k *Keeper) claim(claim *v1alpha1.SandboxClaim) {
	finalizers, traceparent := claim.Finalizers, claim.Annotations[v1alpha1.AnnotationTraceparent]
	claim.ObjectMeta = k.identity(&claim.ObjectMeta)
	claim.Finalizers = finalizers                                        // all of them: a patch of a list writes all of it
	if claim.Status.BoundAt == nil && spans.IsTraceparent(traceparent) { // anybody may have written it, and at any length
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, v1alpha1.AnnotationTraceparent, traceparent)
	}
	spec, status := &claim.Spec, &claim.Status
	spec.AgentRuntimeRef = interned.Of(k.pool, spec.AgentRuntimeRef)
	spec.ClassRef = interned.Of(k.pool, spec.ClassRef)
	spec.RequestedBy = nil
	status.Class = interned.Of(k.pool, status.Class)
	k.pool.Conditions(status.Conditions)
}

// policy keeps all, because it may be written back.
func (k *Keeper) policy(policy *networkingv1.NetworkPolicy) {
	k.meta(&policy.ObjectMeta)
	selector := policy.Spec.PodSelector
	policy.Spec.PodSelector = metav1.LabelSelector{}
	policy.Spec = interned.Of(k.pool, policy.Spec)
	policy.Spec.PodSelector = k.selector(selector)
}

// service keeps of a sandbox's all but its status, because it may be written back, and the status is not written with it. Of
// another it keeps where it leads.
func (k *Keeper) service(service *corev1.Service) {
	if sandbox.ClaimOf(service) == "" {
		service.ObjectMeta = k.identity(&service.ObjectMeta)
		spec := service.Spec
		service.Spec = corev1.ServiceSpec{Type: spec.Type, Selector: k.pool.Keys(spec.Selector), Ports: spec.Ports}
		service.Status = corev1.ServiceStatus{}
		return
	}
	k.meta(&service.ObjectMeta)
	own, spec := service.Spec, &service.Spec
	spec.Selector, spec.ClusterIP, spec.ClusterIPs = nil, "", nil
	*spec = interned.Of(k.pool, *spec)
	spec.Selector, spec.ClusterIP, spec.ClusterIPs = k.pool.Keys(own.Selector), own.ClusterIP, own.ClusterIPs
	service.Status = corev1.ServiceStatus{}
}

// deployment keeps all but most of its status, because it may be written back, and the status is not written with it.
func (k *Keeper) deployment(deployment *appsv1.Deployment) {
	k.meta(&deployment.ObjectMeta)
	spec := &deployment.Spec
	selector, template := spec.Selector, spec.Template.ObjectMeta
	spec.Selector, spec.Template.ObjectMeta = nil, metav1.ObjectMeta{}
	*spec = interned.Of(k.pool, *spec)
	if selector != nil {
		*selector = k.selector(*selector)
	}
	if k.meta(&template); maps.Equal(template.Labels, deployment.Labels) {
		template.Labels = deployment.Labels
	}
	spec.Selector, spec.Template.ObjectMeta = selector, template

	was := deployment.Status
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: was.ObservedGeneration, UpdatedReplicas: was.UpdatedReplicas, ReadyReplicas: was.ReadyReplicas}
	for _, c := range was.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure {
			deployment.Status.Conditions = append(deployment.Status.Conditions, c)
		}
	}
}

// pod keeps whose it is, whether it may still become the sandbox, and what it waits for: nothing, once it is ready. Of its labels
// it keeps besides what a claim does not tell.
func (k *Keeper) pod(pod *corev1.Pod) {
	was, labels := pod.Status, slices.Collect(maps.Keys(pod.Labels))
	labels = slices.DeleteFunc(labels, func(key string) bool {
		return sandbox.IsBuiltLabel(key) && key != v1alpha1.LabelClaim && key != v1alpha1.LabelClaimUID
	})
	pod.ObjectMeta, pod.Spec = k.identity(&pod.ObjectMeta, labels...), corev1.PodSpec{}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPhase(k.pool.Text(string(was.Phase)))}
	for _, c := range was.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			pod.Status.Conditions = append(pod.Status.Conditions, c)
		}
	}
	for _, c := range was.ContainerStatuses {
		if !c.Ready {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{State: c.State, LastTerminationState: c.LastTerminationState})
		}
	}
}

// answering are the endpoints of a slice that has a ready one.
var answering = []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}}

// slice keeps whose it is, and whether it has a ready endpoint.
func (k *Keeper) slice(slice *discoveryv1.EndpointSlice) {
	owner := metav1.GetControllerOfNoCopy(slice)
	slice.ObjectMeta = k.identity(&slice.ObjectMeta, v1alpha1.LabelClaim, discoveryv1.LabelServiceName)
	if owner != nil {
		slice.OwnerReferences = []metav1.OwnerReference{{UID: owner.UID, Controller: owner.Controller}}
	}
	ready := sandbox.Answering(slice)
	slice.Endpoints, slice.Ports = nil, nil
	if ready {
		slice.Endpoints = answering
	}
}

// identity is what is kept of the metadata of an object that is never written back, with these of its labels.
func (k *Keeper) identity(m *metav1.ObjectMeta, labels ...string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: k.pool.Text(m.Namespace), Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
	for _, key := range labels {
		if value, ok := m.Labels[key]; ok {
			metav1.SetMetaDataLabel(&out, k.pool.Text(key), value)
		}
	}
	return out
}

// meta keeps all but managedFields: what is written back without them leaves them as they are stored.
func (k *Keeper) meta(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	m.Namespace = k.pool.Text(m.Namespace)
	m.Labels = k.pool.Keys(m.Labels)
	m.Annotations = interned.Of(k.pool, m.Annotations)
	for i := range m.OwnerReferences {
		owner := &m.OwnerReferences[i]
		owner.APIVersion, owner.Kind = k.pool.Text(owner.APIVersion), k.pool.Text(owner.Kind)
	}
}

func (k *Keeper) selector(s metav1.LabelSelector) metav1.LabelSelector {
	s.MatchLabels = k.pool.Keys(s.MatchLabels)
	return s
}
