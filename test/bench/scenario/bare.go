package scenario

import (
	"context"

	"github.com/google/uuid"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// bareLabel marks the objects of a sandbox that was made without a claim. They lack the label by which the server finds what is
// its own, so that the floor does not burden it.
const bareLabel = "sandbox.omnia/bare"

// bare is a sandbox's three objects without a claim: the floor of whatever makes one.
type bare struct {
	policy     *networkingv1.NetworkPolicy
	service    *corev1.Service
	deployment *appsv1.Deployment
}

// newBare builds the objects that a claim of this name would have.
func (f *field) newBare(name, where string) *bare {
	claim := framework.MakeClaim(name, f.namespace, f.runtime, where).Obj()
	claim.UID = types.UID(uuid.NewString())
	claim.Status.Class, claim.Status.SandboxName = f.classes[where], name
	b := &bare{policy: sandbox.NetworkPolicy(claim, nil), service: sandbox.Service(claim), deployment: sandbox.Deployment(claim)}
	for _, meta := range []*metav1.ObjectMeta{&b.policy.ObjectMeta, &b.service.ObjectMeta, &b.deployment.ObjectMeta, &b.deployment.Spec.Template.ObjectMeta} {
		meta.OwnerReferences = nil
		delete(meta.Labels, v1alpha1.LabelClaim)
		meta.Labels[bareLabel] = name
	}
	return b
}

// pod is the sandbox's pod, as its Deployment would make it.
func (b *bare) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *b.deployment.Spec.Template.ObjectMeta.DeepCopy(), Spec: *b.deployment.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = b.deployment.Namespace, b.deployment.Name
	return pod
}

// makeBare makes the objects, in the controller's order, and waits until the sandbox could be dialled.
func (f *field) makeBare(ctx context.Context, name, where string) error {
	b := f.newBare(name, where)
	return f.makeAround(ctx, b, answers, func() error {
		_, err := f.builder.AppsV1().Deployments(f.namespace).Create(ctx, b.deployment, metav1.CreateOptions{})
		return err
	})
}

// makeBarePod does so with a pod that no Deployment looks after.
func (f *field) makeBarePod(ctx context.Context, name, where string) error {
	b := f.newBare(name, where)
	return f.makeAround(ctx, b, podAnswers, func() error {
		_, err := f.builder.CoreV1().Pods(f.namespace).Create(ctx, b.pod(), metav1.CreateOptions{})
		return err
	})
}

func (f *field) makeAround(ctx context.Context, b *bare, usable func(*seen) bool, what func() error) error {
	if err := f.creating(func() error { return f.createAround(ctx, b, what) }); err != nil {
		return err
	}
	return f.eyes.await(ctx, b.service.Name, usable)
}

func (f *field) createAround(ctx context.Context, b *bare, what func() error) error {
	if _, err := f.builder.NetworkingV1().NetworkPolicies(f.namespace).Create(ctx, b.policy, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := what(); err != nil {
		return err
	}
	_, err := f.builder.CoreV1().Services(f.namespace).Create(ctx, b.service, metav1.CreateOptions{})
	return err
}

// creating does something as one of a few at a time.
func (f *field) creating(do func() error) error {
	f.builders <- struct{}{}
	defer func() { <-f.builders }()
	return do()
}

// removeBare deletes the objects and waits until nothing is left.
func (f *field) removeBare(ctx context.Context, name string) error {
	if err := f.builder.AppsV1().Deployments(f.namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return f.removeRoutes(ctx, name)
}

func (f *field) removeBarePod(ctx context.Context, name string) error {
	if err := f.builder.CoreV1().Pods(f.namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return f.removeRoutes(ctx, name)
}

func (f *field) removeRoutes(ctx context.Context, name string) error {
	if err := f.builder.CoreV1().Services(f.namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := f.builder.NetworkingV1().NetworkPolicies(f.namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return f.eyes.await(ctx, name, allGone)
}
