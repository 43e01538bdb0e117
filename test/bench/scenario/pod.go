package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

const (
	podFakeTurns, podRealTurns = 20, 3
	evictions                  = 3

	theBarePod = "bare Pod+Service+NetworkPolicy"
)

// playPod measures what a Deployment costs against a pod that nothing looks after, and what it is good for: a pod that was
// evicted comes back.
func playPod(ctx context.Context, b *Bench) (out []report.Section, err error) {
	f, err := b.openField(ctx, unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	section := report.Section{ID: "pod", Title: "A Deployment against a bare Pod",
		About: "The same pod, Service and NetworkPolicy without a claim: once with a Deployment around the pod, once with the pod alone, until it can be dialled and until nothing is left. An eviction is of a Bound claim's pod: from the call until the claim is Bound again. A bare pod that is evicted is gone."}
	for _, p := range b.places() {
		turns := podFakeTurns
		if p.name == onReal {
			turns = podRealTurns
		}
		if err := f.podsInTurns(ctx, p, b.turns(turns), &section); err != nil {
			return nil, err
		}
		back, err := f.evicted(ctx, p)
		if err != nil {
			return nil, err
		}
		section.Rows = append(section.Rows, alone("evicted pod to Bound again, "+p.words, back)...)
	}
	return []report.Section{section}, nil
}

func (f *field) podsInTurns(ctx context.Context, p place, turns int, into *report.Section) error {
	var ended, podEnded measure.Times
	life := func(name string, make, remove func(ctx context.Context, name string) error, ended *measure.Times) measure.Path {
		return measure.Path{Name: name, Take: func(ctx context.Context, turn int) (time.Duration, error) {
			object := fmt.Sprintf("%s-%s-%d", p.name, name, turn)
			began := time.Now()
			if err := make(ctx, object); err != nil {
				return 0, err
			}
			made := time.Now()
			err := remove(ctx, object)
			*ended = append(*ended, time.Since(made))
			return made.Sub(began), err
		}}
	}
	times, err := measure.InTurns(ctx, 1, turns,
		life("deployment", func(ctx context.Context, name string) error { return f.makeBare(ctx, name, p.name) }, f.removeBare, &ended),
		life("pod", func(ctx context.Context, name string) error { return f.makeBarePod(ctx, name, p.name) }, f.removeBarePod, &podEnded))
	if err != nil {
		return err
	}
	into.Rows = append(into.Rows, beside("with a Deployment, to ready, "+p.words, times[0], theBarePod, times[1], targets{})...)
	into.Rows = append(into.Rows, beside("with a Deployment, to all gone, "+p.words, ended, theBarePod, podEnded, targets{})...)
	into.Plots = append(into.Plots, distribution("With a Deployment and without, "+p.words, line{theBare, times[0]}, line{theBarePod, times[1]}))
	return nil
}

// evicted evicts a Bound claim's pod again and again, and gives how long the claim takes to be Bound by the next pod.
func (f *field) evicted(ctx context.Context, p place) (measure.Times, error) {
	const session = "evicted"
	got, err := f.acquire(ctx, f.agent, session, p.name)
	if err != nil {
		return nil, err
	}
	var back measure.Times
	for range f.turns(evictions) {
		pod := f.eyes.look(got.ClaimName).readyPod
		began := time.Now()
		if err := f.builder.PolicyV1().Evictions(f.namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: pod}}); err != nil {
			return nil, err
		}
		if err := f.eyes.await(ctx, got.ClaimName, func(s *seen) bool {
			return s.readyPod != pod && answers(s) && s.claim != nil && s.claim.Status.Phase == v1alpha1.PhaseBound
		}); err != nil {
			return nil, err
		}
		back = append(back, time.Since(began))
	}
	return back, f.end(ctx, session)
}
