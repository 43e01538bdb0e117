package controller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// termLock is the Lease as client-go's election asks for it, which tells a term what it is told. It keeps the election from
// three things: from going on in a term that is over, from giving up a Lease that is another's by now, and from making a new
// Lease in the place of one whose holder may still be at work. The election calls it from one goroutine.
type termLock struct {
	term  *term
	lease resourcelock.Interface

	lasts  time.Duration // how long a Lease is waited for
	holder string        // who held the Lease when it was last read
	known  bool          // that there is a Lease was seen in this term
	gone   time.Time     // when it was first seen to be gone; zero while it is there
}

var _ resourcelock.Interface = &termLock{}

// Get reads the Lease.
func (l *termLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	sent := l.term.clock.Now()
	record, raw, err := l.lease.Get(ctx)
	if answered(err) {
		l.term.heard(sent)
	}
	if apierrors.IsNotFound(err) && l.gone.IsZero() {
		l.gone = l.term.clock.Now()
	}
	if err != nil {
		return nil, nil, err
	}
	l.holder, l.known, l.gone = record.HolderIdentity, true, time.Time{}
	if l.holder != l.Identity() {
		l.term.heldBy(l.holder)
	}
	return record, raw, nil
}

// Create makes the Lease. Where another may have held the one that was removed, that one is waited for as if it still stood:
// who removes a Lease does not end its holder's controllers, and who held it last may never have been seen.
func (l *termLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.known && l.term.mayWrite() != nil {
		if left := l.lasts - elapsed(l.gone, l.term.clock.Now()); left > 0 {
			return fmt.Errorf("the Lease was removed under its holder, who may go on: it is made again in %s", left)
		}
	}
	return l.hold(func() error { return l.lease.Create(ctx, record) })
}

// Update takes the Lease, renews it or, for nobody, gives it up.
func (l *termLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != "" {
		return l.hold(func() error { return l.lease.Update(ctx, record) })
	}
	l.term.finish(errReleased)
	// The election goes by what it knew last. It has just read the Lease, and does not look whose it is.
	if l.holder != l.Identity() {
		return fmt.Errorf("the Lease is held by %q: it is not ours to give up", l.holder)
	}
	return l.lease.Update(ctx, record)
}

// hold makes a write after which the Lease is ours, for as long as from before it was sent.
func (l *termLock) hold(write func() error) error {
	if err := l.term.over(); err != nil {
		return err
	}
	sent := l.term.clock.Now()
	err := write()
	if answered(err) {
		l.term.heard(sent)
	}
	if err != nil {
		return err
	}
	l.term.renewed(sent)
	return nil
}

// answered says whether the host's API is there, whatever it said.
func answered(err error) bool {
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// RecordEvent tells people of a change.
func (l *termLock) RecordEvent(what string) { l.lease.RecordEvent(what) }

// Identity is what this replica calls itself.
func (l *termLock) Identity() string { return l.lease.Identity() }

// Describe names the Lease.
func (l *termLock) Describe() string { return l.lease.Describe() }
