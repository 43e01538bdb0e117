package sandboxclaim

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/metrics"
)

// withdrawalTimeout bounds what is done for a caller who has gone.
const withdrawalTimeout = 5 * time.Second

// note writes on a claim that is not Bound what this call means for it, once and in one write: that somebody waits, if
// this call does, and that the claim is in use, which withdraws a release. A release that comes later stands: its
// conversation ended after this call began. It gives nil if the claim went or ended meanwhile.
func (a *acquisition) note(ctx context.Context, claim *sandbox.SandboxClaim) (*sandbox.SandboxClaim, error) {
	if a.dryRun || a.noted == claim.UID {
		return claim, nil
	}
	now := a.clock.Now()
	waits := a.waits || a.waitSeconds > 0 && lifecycle.RunsOut(versionedLease(claim.Status.Wait), now) // it asks again and again
	_, longer := lifecycle.Wait(versionedLease(claim.Status.Wait), a.waitSeconds, now)
	if waits && longer || claim.Status.ReleaseAt != nil {
		cancelled := false
		updated, err := a.claims.updateStatus(ctx, claim, func(fresh *sandbox.SandboxClaim) (bool, error) {
			if err := usable(fresh); err != nil {
				return false, err
			}
			lease, longer := lifecycle.Wait(versionedLease(fresh.Status.Wait), a.waitSeconds, now)
			longer = longer && waits
			if longer {
				fresh.Status.Wait, a.lease = hubLease(lease), &lease
			}
			if cancelled = fresh.Status.ReleaseAt != nil; cancelled {
				markUsed(fresh, now)
			}
			return longer || cancelled, nil
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if cancelled {
			releases.WithLabelValues(causeCancelled).Inc()
		}
		claim = updated
	}
	a.noted = claim.UID
	return claim, nil
}

// withdraw deletes the claim for a caller who has hung up, if nobody else waits for it and it was never admitted. Whose
// wait stands on the claim is known by its lease's time.
func (a *acquisition) withdraw(ctx context.Context) {
	if a.lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawalTimeout)
	defer cancel()
	log := klog.FromContext(ctx).WithValues("claim", klog.KRef(request.NamespaceValue(ctx), a.name))
	claim, err := a.claims.get(ctx, a.name)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			log.Error(err, "Reading a claim whose caller hung up")
		}
		return
	}
	lease := claim.Status.Wait
	if lease == nil || !lease.RenewTime.Equal(&a.lease.RenewTime) || !lifecycle.Withdrawable(versionedClaim(claim)) {
		return
	}
	switch err := a.claims.delete(ctx, claim); {
	case err == nil:
		metrics.Withdrawals.WithLabelValues(causeHungUp).Inc()
	case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
		log.Error(err, "Withdrawing a claim whose caller hung up")
	}
}

func hubLease(lease v1alpha1.WaitLease) *sandbox.WaitLease {
	return &sandbox.WaitLease{RenewTime: lease.RenewTime, DurationSeconds: lease.DurationSeconds}
}

func versionedLease(lease *sandbox.WaitLease) *v1alpha1.WaitLease {
	if lease == nil {
		return nil
	}
	return &v1alpha1.WaitLease{RenewTime: lease.RenewTime, DurationSeconds: lease.DurationSeconds}
}
