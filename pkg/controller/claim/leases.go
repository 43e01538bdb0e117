package claim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// leases remembers when this process first saw each wait lease as it stands. Replicas' clocks differ, so a lease is
// counted from when it was seen, by one clock, and not from the time that is written in it. A new leader begins anew,
// which makes a wait longer and never shorter. The zero value is ready.
type leases struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]sighting
}

// sighting is a lease as it stood. The UID is of the claim that bore it: a name's next claim is another one.
type sighting struct {
	uid   types.UID
	lease v1alpha1.WaitLease
	at    time.Time
}

// firstSeen is when the claim's lease was first seen as it stands; now if it was not seen before.
func (l *leases) firstSeen(claim *v1alpha1.SandboxClaim, now time.Time) time.Time {
	lease := claim.Status.Wait
	if lease == nil {
		return now
	}
	key := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.seen[key]; ok && s.uid == claim.UID && sameLease(s.lease, *lease) {
		return s.at
	}
	if l.seen == nil {
		l.seen = map[types.NamespacedName]sighting{}
	}
	l.seen[key] = sighting{uid: claim.UID, lease: *lease, at: now}
	return now
}

// forget drops what is remembered of a claim that is gone or whose lease no longer matters.
func (l *leases) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, key)
}

func sameLease(a, b v1alpha1.WaitLease) bool {
	return a.DurationSeconds == b.DurationSeconds && a.RenewTime.Equal(&b.RenewTime)
}
