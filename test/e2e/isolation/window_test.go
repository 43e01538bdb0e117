package isolation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

const (
	// windows is how many pods' starts are measured, and holders how many of those that keep a connection.
	windows, holders = 10, 3
	// sending is how long a process sends; what is still heard at its end was never shut out.
	sending = 10 * time.Second
	// open is how long after a process' start the window must have ended to be told from the sender's own end.
	open = 8 * time.Second
	// starts is how many pods are started with an init container, and how many without.
	starts = 5
)

func sends(token string) []string {
	return []string{"serve", "-http", "8080", "-send", framework.OutsideHost + ":" + outsideUDP, "-every", "5ms", "-send-for", sending.String(), "-token", token}
}

// A pod's process may start before the network plugin knows the pod. How long that lasts is the plugin's: it is measured,
// beside nothing else that runs, and only that it ends is judged.
func TestWindow_BetweenAPodsStartAndItsPolicy_Ends(t *testing.T) {
	told, held := token(), token()
	w := newWorld(t, map[string]change{
		"sending": func(s *v1alpha1.SandboxClassSpec) { s.Args = sends(told) },
		"holding": func(s *v1alpha1.SandboxClassSpec) {
			s.Args = []string{"serve", "-http", "8080", "-hold", shared.outside.Address, "-token", held}
		},
	})
	history := w.Record(t, w.namespace)
	p := prove(t, "window: a pod that starts before the network plugin knows it is shut in")
	var sandboxes []*sandbox
	for i := range windows {
		sandboxes = append(sandboxes, w.bound("sending", fmt.Sprintf("window-%d", i)))
	}
	bare := attackerPod(w.namespace, "bare", nil, sends(told)...)
	bare.Spec.ServiceAccountName = account
	w.ServiceAccount(t, w.namespace, account)
	w.StartPod(t, bare)
	framework.Eventually(t, 2*sending, "the bare pod, which nothing shuts in, is heard until it sends no more", func(context.Context) (time.Duration, error) {
		heard := ofHost(w.heard(told), bare.Name)
		return lasted(heard), nil
	}, func(d time.Duration) bool { return d > open })
	p.controlled(true, "a bare pod of the same image is heard for all of %s", open)

	var ended, bound []time.Duration
	beyond := 0
	heard := w.heard(told)
	for _, s := range sandboxes {
		of := ofHost(heard, hostname(s.pod.Name))
		if len(of) == 0 {
			ended = append(ended, 0)
			continue
		}
		at := firstBound(history, s.claim.Name).Sub(of[0].Started)
		ended, bound = append(ended, lasted(of)), append(bound, at)
		if lasted(of) > at {
			beyond++
		}
	}
	worst := slices.Max(ended)
	p.attempted(worst < open, "of %d sandboxes the last is heard for %s after its process' start", windows, worst.Round(time.Millisecond))
	shared.rows.measured("window, %d sandboxes: heard outside for %s after the process' start; Bound %s after it; %d of them were heard after Bound",
		windows, spread(ended), spread(bound), beyond)
	w.measureHolders(held)
}

// measureHolders says what becomes of a connection that was opened within the window.
func (w *world) measureHolders(token string) {
	w.t.Helper()
	var hosts []string
	for i := range holders {
		hosts = append(hosts, hostname(w.bound("holding", fmt.Sprintf("holding-%d", i)).pod.Name))
	}
	// Each was never heard, or is heard no more, or is still heard a long time after it was first.
	type fates struct{ Unheard, Cut, Kept int }
	began := time.Now()
	counted := framework.Eventually(w.t, framework.BoundTimeout, "it shows what becomes of the connections", func(context.Context) (fates, error) {
		var now fates
		heard := w.heard(token)
		for _, host := range hosts {
			of := ofHost(heard, host)
			switch {
			case len(of) == 0 && time.Since(began) > silence:
				now.Unheard++
			case len(of) > 0 && last(of).Sub(of[0].At) > open:
				now.Kept++
			case len(of) > 0 && time.Since(last(of)) > silence:
				now.Cut++
			}
		}
		return now, nil
	}, func(now fates) bool { return now.Unheard+now.Cut+now.Kept == holders })
	shared.rows.measured("window, connections: %d of %d sandboxes opened one before they were shut in; %d of those were still used %s later",
		counted.Cut+counted.Kept, holders, counted.Kept, open)
}

// hostname is what a pod's name is to its process.
func hostname(pod string) string { return strings.TrimRight(pod[:min(len(pod), 63)], "-.") }

func ofHost(heard []report.Heard, host string) []report.Heard {
	return slices.DeleteFunc(slices.Clone(heard), func(h report.Heard) bool { return h.Host != host })
}

// lasted is how long after the start of the process that sent them the last of the packets arrived.
func lasted(heard []report.Heard) time.Duration {
	if len(heard) == 0 {
		return 0
	}
	return last(heard).Sub(heard[0].Started)
}

func firstBound(history *framework.History, claim string) time.Time {
	for _, seen := range history.Of(claim) {
		if framework.Bound(seen.Claim) {
			return seen.At
		}
	}
	return time.Time{}
}

// spread is the least, the middle and the most of some times.
func spread(times []time.Duration) string {
	if len(times) == 0 {
		return "-"
	}
	slices.Sort(times)
	return fmt.Sprintf("%s / %s / %s (least / median / most)", times[0].Round(time.Millisecond),
		times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
}

// An init container could wait until the plugin has shut the pod in. What one costs by itself is measured here.
func TestInitContainer_WhatItCosts(t *testing.T) {
	told := token()
	w := newWorld(t, nil)
	w.ServiceAccount(t, w.namespace, account)
	var without, with []time.Duration
	for i := range starts {
		without = append(without, w.startOf(fmt.Sprintf("without-%d", i), told, false))
		with = append(with, w.startOf(fmt.Sprintf("with-%d", i), told, true))
	}
	shared.rows.measured("pod start, %d each, from its creation to its process: %s; with an init container that ends at once: %s", starts, spread(without), spread(with))
}

// startOf is how long it takes from a bare pod's creation until its process has started.
func (w *world) startOf(name, token string, first bool) time.Duration {
	w.t.Helper()
	pod := attackerPod(w.namespace, name, nil, "serve", "-http", "", "-send", framework.OutsideHost+":"+outsideUDP, "-send-for", "1s", "-token", token)
	pod.Spec.ServiceAccountName = account
	if first {
		init := *pod.Spec.Containers[0].DeepCopy()
		init.Name, init.Args = "first", []string{"noop"}
		pod.Spec.InitContainers = []corev1.Container{init}
	}
	created := time.Now()
	w.Create(w.t, pod)
	heard := framework.Eventually(w.t, framework.PodTimeout, "pod "+name+" is heard", func(context.Context) ([]report.Heard, error) {
		return ofHost(w.heard(token), name), nil
	}, func(heard []report.Heard) bool { return len(heard) > 0 })
	return heard[0].Started.Sub(created)
}
