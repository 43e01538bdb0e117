package isolation

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

const (
	// windows is how many pods' starts are measured, and holders how many of those that keep a connection.
	windows, holders = 10, 3
	// sending is how long a process sends; what is still heard at its end was never shut out.
	sending = 30 * time.Second
	// shutIn is how long after a process' start the window must have ended to be told from the sender's own end.
	shutIn = 20 * time.Second
	// long is how long a connection must be used after the window to say that it is not cut.
	long = 8 * time.Second
	// starts is how many pods are started with an init container, and how many without.
	starts = 5
)

func sends(token string, every time.Duration) []string {
	return []string{"serve", "-http", "8080", "-token", token,
		"-send", framework.OutsideHost + ":" + outsideUDP, "-every", every.String(), "-send-for", sending.String()}
}

// A pod's process may start before the network plugin knows the pod. How long that lasts is the plugin's: it is measured,
// beside nothing else that runs, and only that it ends is judged.
func TestWindow_BetweenAPodsStartAndItsPolicy_Ends(t *testing.T) {
	told, burst, held := token(), token(), token()
	w := newWorld(t, map[string]change{
		"sending":  func(s *v1alpha1.SandboxClassSpec) { s.Args = sends(told, 5*time.Millisecond) },
		"bursting": func(s *v1alpha1.SandboxClassSpec) { s.Args = sends(burst, 20*time.Millisecond) },
		"holding": func(s *v1alpha1.SandboxClassSpec) {
			s.Args = []string{"serve", "-http", "8080", "-hold", shared.outside.Address, "-token", held}
		},
	})
	p := prove(t, "window: a pod that starts before the network plugin knows it is shut in")
	w.start(w.namespace, "bare", nil, sends(told, 100*time.Millisecond)...)
	history := w.Record(t, w.namespace)
	var alone, together []window
	for i := range windows {
		alone = append(alone, w.windowOf(history, w.bound("sending", fmt.Sprintf("alone-%d", i)), told))
	}
	var names []string
	for i := range windows {
		names = append(names, w.waits("bursting", fmt.Sprintf("together-%d", i)))
	}
	for _, name := range names {
		claim := w.Claim(t, w.namespace, name, framework.Bound)
		together = append(together, w.windowOf(history, &sandbox{world: w, claim: claim, pod: w.podOf(claim)}, burst))
	}
	for how, seen := range map[string][]window{"one after the other": alone, "all at once": together} {
		worst := slices.MaxFunc(seen, func(a, b window) int { return cmp.Compare(a.ended, b.ended) })
		p.attempted(worst.ended < shutIn, "of %d sandboxes, started %s, the last is heard for %s after its process' start", windows, how, worst.ended.Round(time.Millisecond))
		shared.rows.measured("window, %d sandboxes, started %s: %s", windows, how, figures(seen))
	}
	p.controlled(lasted(w.heardFrom(told, "bare")) > shutIn, "a bare pod of the same image is heard for longer than %s", shutIn)
	w.measureHolders(held)
}

// window is how long after its process' start a sandbox was still heard, and when it was Bound.
type window struct{ ended, bound time.Duration }

// windowOf measures the window of a sandbox that was just started, and deletes it.
func (w *world) windowOf(history *framework.History, s *sandbox, token string) window {
	w.t.Helper()
	var seen window
	if heard := w.untilSilent(token, hostname(s.pod.Name)); len(heard) > 0 {
		seen = window{lasted(heard), firstBound(history, s.claim.Name).Sub(heard[0].Started)}
	}
	require.NoError(w.t, w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).Delete(w.t.Context(), s.claim.Name, metav1.DeleteOptions{}))
	return seen
}

// figures are what was seen in a line. Whoever was never heard had no window.
func figures(seen []window) string {
	var ended, bound []time.Duration
	beyond := 0
	for _, one := range seen {
		ended = append(ended, one.ended)
		if one.ended > 0 {
			bound = append(bound, one.bound)
		}
		if one.ended > one.bound {
			beyond++
		}
	}
	return fmt.Sprintf("heard outside until %s after the process' start; Bound %s after it; %d of them were heard after Bound", spread(ended), spread(bound), beyond)
}

// heardFrom is what arrived outside with a token and a pod's host name.
func (w *world) heardFrom(token, host string) []report.Heard {
	w.t.Helper()
	return w.heardOf(url.Values{"token": {token}, "host": {host}})
}

// untilSilent waits until a process that sends all the time is not heard any more, be it that it was shut in, and gives
// what was heard of it.
func (w *world) untilSilent(token, host string) []report.Heard {
	w.t.Helper()
	began := time.Now()
	return framework.Eventually(w.t, sending+framework.Shortly, host+" is not heard any more", func(context.Context) ([]report.Heard, error) {
		return w.heardFrom(token, host), nil
	}, func(heard []report.Heard) bool {
		at := last(heard)
		if at.Before(began) {
			at = began
		}
		return time.Since(at) > silence
	})
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
		for _, host := range hosts {
			of := w.heardFrom(token, host)
			switch {
			case len(of) == 0 && time.Since(began) > silence:
				now.Unheard++
			case len(of) > 0 && last(of).Sub(of[0].At) > long:
				now.Kept++
			case len(of) > 0 && time.Since(last(of)) > silence:
				now.Cut++
			}
		}
		return now, nil
	}, func(now fates) bool { return now.Unheard+now.Cut+now.Kept == holders })
	shared.rows.measured("window, connections: %d of %d sandboxes opened one before they were shut in; %d of those were still used %s later",
		counted.Cut+counted.Kept, holders, counted.Kept, long)
}

// hostname is what a pod's name is to its process.
func hostname(pod string) string { return strings.TrimRight(pod[:min(len(pod), 63)], "-.") }

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
		return w.heardFrom(token, name), nil
	}, func(heard []report.Heard) bool { return len(heard) > 0 })
	return heard[0].Started.Sub(created)
}
