package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Wait is what a lease becomes when somebody waits for seconds from now on: no shorter than it stands, so that two who
// wait never cut each other short. False means that the lease that stands is long enough.
func Wait(stands *v1alpha1.WaitLease, seconds int32, now time.Time) (v1alpha1.WaitLease, bool) {
	// What is stored has microseconds, and whoever wrote a lease knows it again by its time.
	next := v1alpha1.WaitLease{RenewTime: metav1.NewMicroTime(now.Truncate(time.Microsecond)), DurationSeconds: seconds + v1alpha1.WaitLeaseSlackSeconds}
	if stands != nil && !waitEnds(*stands).Before(waitEnds(next)) {
		return *stands, false
	}
	return next, true
}

// RunsOut says whether a lease ends so soon that whoever asks again and again, without waiting, had better renew it.
func RunsOut(stands *v1alpha1.WaitLease, now time.Time) bool {
	return stands == nil || !now.Before(waitEnds(*stands).Add(-v1alpha1.WaitLeaseSlackSeconds*time.Second))
}

// waitEnds is when a lease runs out, by the clock of whoever wrote it.
func waitEnds(lease v1alpha1.WaitLease) time.Time {
	return lease.RenewTime.Add(waitLasts(lease))
}

func waitLasts(lease v1alpha1.WaitLease) time.Duration {
	return time.Duration(lease.DurationSeconds) * time.Second
}

// Withdraw says whether a claim is to be deleted because nobody waits for it any longer, and if not, after how long to
// ask again; zero means that it need not be asked. seen is when the asker first saw the lease as it stands: clocks
// differ between replicas, so its renewTime is never compared with ours.
func Withdraw(claim *v1alpha1.SandboxClaim, seen, now time.Time) (due bool, after time.Duration) {
	if claim.Status.Wait == nil || !Withdrawable(claim) {
		return false, 0
	}
	left := seen.Add(waitLasts(*claim.Status.Wait)).Sub(now)
	return left <= 0, max(left, 0)
}

// Withdrawable says whether a claim may be deleted because nobody waits for it any longer: it was never admitted and
// mounts nothing. An admitted one may be an image pull from ready, and a mounting one is acquired with mustExist
// (spec/sandboxclaim.md, "How agents get a claim").
func Withdrawable(claim *v1alpha1.SandboxClaim) bool {
	waiting := claim.Status.Phase == "" || claim.Status.Phase == v1alpha1.PhaseQueued
	return waiting && claim.DeletionTimestamp == nil && !MountsAnything(&claim.Spec)
}

// MountsAnything says whether a claim mounts anything but its own scratch directory.
func MountsAnything(spec *v1alpha1.SandboxClaimSpec) bool {
	scratch := func(m v1alpha1.SandboxMount) bool { return m.Role == "" || m.Role == v1alpha1.MountRoleScratch }
	for _, m := range spec.Mounts {
		if !scratch(m) {
			return true
		}
	}
	return spec.Mount != nil && !scratch(*spec.Mount)
}
