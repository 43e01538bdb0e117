package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const handle = "shell/default"

func (b *bench) acquire(ctx context.Context, session string) (*v1alpha1.SandboxAcquireStatus, error) {
	claims := b.agent.SandboxV1alpha1().SandboxClaims(b.namespace)
	for {
		got, err := claims.Acquire(ctx, v1alpha1.AnyClaim, framework.MakeAcquire(runtimeName, session, handle), metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if got.Status.Phase == v1alpha1.PhaseBound {
			return &got.Status, nil
		}
	}
}

// acquireNew measures from the call to a Bound answer, and removes the sandbox again.
func (b *bench) acquireNew(ctx context.Context, round int) (time.Duration, error) {
	began := time.Now()
	got, err := b.acquire(ctx, fmt.Sprintf("s%d", round))
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	if err := b.Sandbox.SandboxV1alpha1().SandboxClaims(b.namespace).Delete(ctx, got.ClaimName, metav1.DeleteOptions{}); err != nil {
		return 0, err
	}
	return took, b.gone(ctx)
}

// bare makes the same three objects without a claim, and measures until the Deployment is ready and its Service routed.
func (b *bench) bare(ctx context.Context, round int) (time.Duration, error) {
	claim := framework.MakeClaim(fmt.Sprintf("bare-%d", round), b.namespace, runtimeName, b.namespace).Obj()
	claim.UID = "00000000-0000-4000-8000-000000000000"
	claim.Status.Class, claim.Status.SandboxName = b.class, claim.Name+"-sandbox"
	policy, service, deployment := sandbox.NetworkPolicy(claim), sandbox.Service(claim), sandbox.Deployment(claim)
	for _, object := range []metav1.Object{policy, service, deployment} {
		object.SetOwnerReferences(nil)
	}
	began := time.Now()
	if _, err := b.Kube.NetworkingV1().NetworkPolicies(b.namespace).Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	if _, err := b.Kube.CoreV1().Services(b.namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	if _, err := b.Kube.AppsV1().Deployments(b.namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	if err := b.ready(ctx, deployment.Name); err != nil {
		return 0, err
	}
	took := time.Since(began)
	for _, remove := range []func() error{
		func() error {
			return b.Kube.AppsV1().Deployments(b.namespace).Delete(ctx, deployment.Name, metav1.DeleteOptions{})
		},
		func() error {
			return b.Kube.CoreV1().Services(b.namespace).Delete(ctx, service.Name, metav1.DeleteOptions{})
		},
		func() error {
			return b.Kube.NetworkingV1().NetworkPolicies(b.namespace).Delete(ctx, policy.Name, metav1.DeleteOptions{})
		},
	} {
		if err := remove(); err != nil {
			return 0, err
		}
	}
	return took, b.gone(ctx)
}

// ready waits, on watches, until the Deployment has a ready pod and the Service an endpoint for it.
func (b *bench) ready(ctx context.Context, name string) error {
	deployments := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = "metadata.name=" + name
			return b.Kube.AppsV1().Deployments(b.namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = "metadata.name=" + name
			return b.Kube.AppsV1().Deployments(b.namespace).Watch(ctx, o)
		},
	}
	if _, err := watchtools.UntilWithSync(ctx, deployments, &appsv1.Deployment{}, nil, func(e watch.Event) (bool, error) {
		d, ok := e.Object.(*appsv1.Deployment)
		return ok && d.Status.ReadyReplicas > 0, nil
	}); err != nil {
		return err
	}
	slices := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = discoveryv1.LabelServiceName + "=" + name
			return b.Kube.DiscoveryV1().EndpointSlices(b.namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = discoveryv1.LabelServiceName + "=" + name
			return b.Kube.DiscoveryV1().EndpointSlices(b.namespace).Watch(ctx, o)
		},
	}
	_, err := watchtools.UntilWithSync(ctx, slices, &discoveryv1.EndpointSlice{}, nil, func(e watch.Event) (bool, error) {
		s, ok := e.Object.(*discoveryv1.EndpointSlice)
		return ok && len(s.Endpoints) > 0 && s.Endpoints[0].Conditions.Ready != nil && *s.Endpoints[0].Conditions.Ready, nil
	})
	return err
}

// gone waits until no pod is left, so that one round does not burden the next.
func (b *bench) gone(ctx context.Context) error {
	for {
		pods, err := b.Kube.CoreV1().Pods(b.namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// standing acquires the sandbox that is then acquired again and again.
func (b *bench) standing(ctx context.Context) (string, error) {
	got, err := b.acquire(ctx, "standing")
	if err != nil {
		return "", err
	}
	return got.ClaimName, nil
}

func (b *bench) acquireBound(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	_, err := b.acquire(ctx, "standing")
	return time.Since(began), err
}

func (b *bench) getClaim(ctx context.Context, name string) (time.Duration, error) {
	began := time.Now()
	_, err := b.Sandbox.SandboxV1alpha1().SandboxClaims(b.namespace).Get(ctx, name, metav1.GetOptions{})
	return time.Since(began), err
}
