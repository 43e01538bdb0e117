package claim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// building knows for which claims a Deployment may be under way, or made and not in the cache yet. A claim may be deleted
// meanwhile, and its slot is held all the same: neither the claims nor the Deployments tell of it. The zero value is ready.
type building struct {
	mu     sync.Mutex
	claims map[types.UID]*underWay
}

// underWay is what may become of one claim's Deployment.
type underWay struct {
	runtime    types.NamespacedName
	deployment types.NamespacedName
	working    bool      // a reconcile of the claim goes on
	asked      bool      // the Deployment was asked for, and the cache has not shown it since
	since      time.Time // when the reconcile that asked has ended
}

// begin notes that a reconcile may make the claim's Deployment.
func (b *building) begin(claim *v1alpha1.SandboxClaim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.claims == nil {
		b.claims = map[types.UID]*underWay{}
	}
	one := b.claims[claim.UID]
	if one == nil {
		one = &underWay{runtime: runtimeOf(claim)}
		b.claims[claim.UID] = one
	}
	one.deployment = types.NamespacedName{Namespace: claim.Namespace, Name: claim.Status.SandboxName}
	one.working = true
}

// ask notes that the Deployment is asked for now; whether it is made is known later.
func (b *building) ask(claim types.UID) { b.note(claim, true) }

// known notes that the Deployment was not made, or that the cache has shown it.
func (b *building) known(claim types.UID) { b.note(claim, false) }

func (b *building) note(claim types.UID, asked bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.claims[claim]
	if one == nil {
		return
	}
	if one.asked = asked; !one.asked && !one.working {
		delete(b.claims, claim)
	}
}

// end notes that a reconcile of the claim has ended, and says whether it held a slot by that alone.
func (b *building) end(claim *v1alpha1.SandboxClaim, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.claims[claim.UID]
	switch {
	case one == nil:
		return false
	case one.asked:
		one.working, one.since = false, now
		return false
	}
	delete(b.claims, claim.UID)
	return true
}

// of gives the claims of a runtime.
func (b *building) of(runtime types.NamespacedName) sets.Set[types.UID] {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := sets.New[types.UID]()
	for uid, one := range b.claims {
		if one.runtime == runtime {
			out.Insert(uid)
		}
	}
	return out
}

// overdue gives the Deployments of a runtime that were asked for so long ago that the cache should have shown them.
func (b *building) overdue(runtime types.NamespacedName, before time.Time) map[types.UID]types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[types.UID]types.NamespacedName{}
	for uid, one := range b.claims {
		if one.runtime == runtime && !one.working && one.since.Before(before) {
			out[uid] = one.deployment
		}
	}
	return out
}
