package judge

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Left says what stands in a namespace of the host cluster without its claim, each as its kind and name. A NetworkPolicy
// may stand for as long as its claim is there, and outlasts its sandbox.
func Left(ctx context.Context, kube kubernetes.Interface, namespace string, claims map[string]*Claim) ([]string, error) {
	present, live := sets.New[types.UID](), sets.New[types.UID]()
	for _, c := range claims {
		present.Insert(c.UID)
		if c.Live() && c.Admitted() {
			live.Insert(c.UID)
		}
	}
	only := metav1.ListOptions{LabelSelector: v1alpha1.LabelClaimUID}
	deployments, err := kube.AppsV1().Deployments(namespace).List(ctx, only)
	if err != nil {
		return nil, fmt.Errorf("listing Deployments: %w", err)
	}
	services, err := kube.CoreV1().Services(namespace).List(ctx, only)
	if err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	policies, err := kube.NetworkingV1().NetworkPolicies(namespace).List(ctx, only)
	if err != nil {
		return nil, fmt.Errorf("listing NetworkPolicies: %w", err)
	}
	var left []string
	left = append(left, orphans("Deployment", pointers(deployments.Items), live)...)
	left = append(left, orphans("Service", pointers(services.Items), live)...)
	return append(left, orphans("NetworkPolicy", pointers(policies.Items), present)...), nil
}

// LeftBehind is Left, with what the cluster's own controllers take away some time after a Deployment.
func LeftBehind(ctx context.Context, kube kubernetes.Interface, namespace string, claims map[string]*Claim) ([]string, error) {
	left, err := Left(ctx, kube, namespace, claims)
	if err != nil {
		return nil, err
	}
	present := sets.New[types.UID]()
	for _, c := range claims {
		present.Insert(c.UID)
	}
	only := metav1.ListOptions{LabelSelector: v1alpha1.LabelClaimUID}
	replicaSets, err := kube.AppsV1().ReplicaSets(namespace).List(ctx, only)
	if err != nil {
		return nil, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	pods, err := kube.CoreV1().Pods(namespace).List(ctx, only)
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	left = append(left, orphans("ReplicaSet", pointers(replicaSets.Items), present)...)
	return append(left, orphans("Pod", pointers(pods.Items), present)...), nil
}

// orphans are those of the objects whose claim is none of these.
func orphans[O metav1.Object](kind string, objects []O, claims sets.Set[types.UID]) []string {
	var out []string
	for _, object := range objects {
		if !claims.Has(types.UID(object.GetLabels()[v1alpha1.LabelClaimUID])) {
			out = append(out, kind+" "+object.GetName())
		}
	}
	return out
}
