package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	// callers is how many acquires wait while others are measured.
	callers = 100
	// perTurn is how often a thing is done while they wait, and then while none does, after some that are left out: a
	// hundred calls that begin or end at once are busy with themselves for a moment.
	perTurn, settling = 25, 10

	nowhere = "nowhere/default" // a handle whose sandbox no node takes
)

// waiting measures what a hundred acquires that wait cost those who do not: somebody else who looks, and the waiting
// runtime's own touches. The floor is the same while nobody waits.
func (b *bench) waiting(ctx context.Context, rounds int, claim string) error {
	viewer, err := b.viewer(ctx)
	if err != nil {
		return err
	}
	look := func(ctx context.Context) error {
		_, err := viewer.SandboxV1alpha1().SandboxClaims(b.namespace).List(ctx, metav1.ListOptions{})
		return err
	}
	touch := func(ctx context.Context) error {
		_, err := b.agent.SandboxV1alpha1().SandboxClaims(b.namespace).Touch(ctx, claim, &v1alpha1.SandboxTouch{}, metav1.CreateOptions{})
		return err
	}
	var lookBusy, lookIdle, touchBusy, touchIdle []time.Duration
	for range max(rounds/perTurn, 1) {
		leave, err := b.wait(ctx)
		if err == nil {
			err = timed(ctx, &lookBusy, look, &touchBusy, touch)
		}
		leave()
		if err != nil {
			return fmt.Errorf("while %d acquires wait: %w", callers, err)
		}
		if err := timed(ctx, &lookIdle, look, &touchIdle, touch); err != nil {
			return err
		}
	}
	busy, idle := fmt.Sprintf("while %d acquires wait", callers), "while none waits"
	show("a person with view lists claims", measured{busy, lookBusy}, measured{idle, lookIdle})
	show("a touch by the runtime whose acquires wait", measured{busy, touchBusy}, measured{idle, touchIdle})
	return nil
}

// timed takes the times of two things, in turns.
func timed(ctx context.Context, first *[]time.Duration, one func(context.Context) error, second *[]time.Duration, other func(context.Context) error) error {
	for i := range settling + perTurn {
		for _, turn := range []struct {
			into *[]time.Duration
			do   func(context.Context) error
		}{{first, one}, {second, other}} {
			began := time.Now()
			if err := turn.do(ctx); err != nil {
				return err
			}
			if took := time.Since(began); i >= settling {
				*turn.into = append(*turn.into, took)
			}
		}
	}
	return nil
}

// wait lets many acquires wait for a sandbox that never comes, until the function that it gives is called. It gives an
// error if one of them does not wait.
func (b *bench) wait(ctx context.Context) (leave func(), err error) {
	waiting, hangUp := context.WithCancel(ctx)
	var all sync.WaitGroup
	ended := make(chan error, callers)
	for range callers {
		all.Go(func() {
			_, err := b.agent.SandboxV1alpha1().SandboxClaims(b.namespace).Acquire(waiting, v1alpha1.AnyClaim,
				framework.MakeAcquire(runtimeName, "waiting", nowhere), metav1.CreateOptions{})
			ended <- err
		})
	}
	leave = func() {
		hangUp()
		all.Wait()
	}
	for {
		seats, err := b.Seats(ctx)
		if err != nil || seats["sandbox-acquire"] >= callers {
			return leave, err
		}
		select {
		case err := <-ended:
			return leave, fmt.Errorf("an acquire ended before all waited: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// viewer is a person who has Kubernetes' own role view in the namespace. An administrator's requests are exempt from
// Priority and Fairness and would prove nothing.
func (b *bench) viewer(ctx context.Context) (versioned.Interface, error) {
	const name = "viewer"
	meta := metav1.ObjectMeta{Namespace: b.namespace, Name: name}
	for _, object := range []framework.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.RoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: name}}},
	} {
		if err := b.Client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("making %T: %w", object, err)
		}
	}
	config, err := b.AsServiceAccount(ctx, b.namespace, name)
	if err != nil {
		return nil, err
	}
	return versioned.NewForConfig(config)
}
