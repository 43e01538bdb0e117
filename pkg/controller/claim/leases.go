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
	seen map[types.UID]sighting
}

type sighting struct {
	lease v1alpha1.WaitLease
	at    time.Time
}

// firstSeen is when the claim's lease was first seen as it stands; now if it was not seen before.
func (l *leases) firstSeen(claim *v1alpha1.SandboxClaim, now time.Time) time.Time {
	lease := claim.Status.Wait
	if lease == nil {
		return now
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.seen[claim.UID]; ok && sameLease(s.lease, *lease) {
		return s.at
	}
	if l.seen == nil {
		l.seen = map[types.UID]sighting{}
	}
	l.seen[claim.UID] = sighting{lease: *lease, at: now}
	return now
}

func (l *leases) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, uid)
}

func sameLease(a, b v1alpha1.WaitLease) bool {
	return a.DurationSeconds == b.DurationSeconds && a.RenewTime.Equal(&b.RenewTime)
}
