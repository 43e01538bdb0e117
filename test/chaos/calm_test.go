package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

// calmTimeout is for all that a fault left undone to be done, on a busy machine: kube-apiserver's informers, the garbage
// collector's, KWOK's, and the leader's own look at what it may have missed.
const calmTimeout = 3 * time.Minute

// trouble is what is not as it should be, and what it costs if it stays so.
type trouble struct {
	kind          judge.Kind
	subject, told string
}

// calm waits until nothing is left of a fault; what stays for too long is broken.
func (w *world) calm(ctx context.Context) {
	w.settle()
	end := time.Now().Add(calmTimeout)
	for quiet := 0; quiet < 2; {
		_, moved := w.Now()
		found := w.troubles(ctx)
		if len(found) == 0 {
			quiet++
		} else {
			quiet = 0
		}
		if time.Now().After(end) || ctx.Err() != nil {
			for _, one := range found {
				w.Broke(one.kind, one.subject, "%s after the fault: %s", calmTimeout, one.told)
			}
			return
		}
		select {
		case <-moved:
		case <-time.After(judge.Look):
		}
	}
}

// troubles are what is still to become as it was: each standing claim Bound, with its one pod, and nothing else there.
func (w *world) troubles(ctx context.Context) []trouble {
	ctx, cancel := context.WithTimeout(ctx, atOnce)
	defer cancel()
	if behind, err := w.Behind(ctx); err != nil || behind {
		return []trouble{{judge.Lost, "etcd", fmt.Sprintf("etcd does not hold what its watch had shown (%v)", err)}}
	}
	claims, _ := w.Now()
	found := w.ofStanding(claims)
	standing := w.standing()
	for _, claim := range claims {
		if standing[claim.UID] == nil {
			found = append(found, trouble{judge.Leaked, string(claim.UID), fmt.Sprintf("claim %s is still there: %s", claim.Name, claim)})
		}
	}
	left, err := judge.LeftBehind(ctx, w.Kube, w.namespace, claims)
	if err != nil {
		return append(found, trouble{judge.Wrong, "host", err.Error()})
	}
	for _, object := range left {
		found = append(found, trouble{judge.Leaked, object, object + " is left"})
	}
	return found
}

// ofStanding are the troubles of the claims that stay.
func (w *world) ofStanding(claims map[string]*judge.Claim) []trouble {
	var found []trouble
	pods := w.sandboxes.Pods()
	for uid, k := range w.standing() {
		claim := claims[k.claim.ClaimName]
		lost := func(format string, args ...any) {
			found = append(found, trouble{judge.Lost, string(uid), fmt.Sprintf("%v: %s", k.key, fmt.Sprintf(format, args...))})
		}
		switch {
		case claim == nil || claim.UID != uid:
			lost("its claim is gone")
		case claim.Status.Phase != v1alpha1.PhaseBound:
			lost("it is not Bound: %s", claim)
		case len(pods[uid]) != 1:
			lost("it has %d pods", len(pods[uid]))
		case !k.bound.Load():
			lost("acquire does not say that it is Bound")
		}
	}
	return found
}

// standingPods are the pods of the claims that stay.
func (w *world) standingPods() map[types.UID]types.UID {
	out := map[types.UID]types.UID{}
	pods := w.sandboxes.Pods()
	for uid := range w.standing() {
		if len(pods[uid]) == 1 {
			out[uid] = pods[uid][0]
		}
	}
	return out
}

// spared: a sandbox that stood before a fault, which did not end it, stands after it, and not another in its place.
func (w *world) spared(before map[types.UID]types.UID) {
	now := w.standingPods()
	for claim, pod := range before {
		if now[claim] != pod {
			w.Broke(judge.Lost, string(pod), "%v lost its pod %s, and has %s", w.standing()[claim].key, pod, now[claim])
		}
	}
}

// releaseAll gives everything back, and waits until nothing is left of it.
func (w *world) releaseAll(ctx context.Context) {
	keepers := w.keepers
	w.keepers = nil
	for _, k := range keepers {
		if err := w.giveBack(ctx, k.caller, k.key); err != nil {
			w.Broke(judge.Wrong, k.key.Session, "releasing %v: %v", k.key, err)
		}
	}
	w.calm(ctx)
	end := time.Now().Add(calmTimeout)
	for {
		policies, err := w.Kube.NetworkingV1().NetworkPolicies(w.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(policies.Items) == 0 {
			return
		}
		if time.Now().After(end) || ctx.Err() != nil {
			w.Broke(judge.Leaked, sandbox.FloorName, "NetworkPolicies are left in a namespace without sandboxes: %v", err)
			return
		}
		w.pause(judge.Look)
	}
}

// brokenSince counts what was broken since there was so much, by its kind.
func (w *world) brokenSince(before int) map[judge.Kind]int {
	counts := map[judge.Kind]int{}
	for _, one := range slices.Clone(w.Broken())[before:] {
		counts[one.Kind]++
	}
	return counts
}
