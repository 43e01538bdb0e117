package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestFirstSeen(t *testing.T) {
	claim := newClaim()
	claim.Status.Wait = &v1alpha1.WaitLease{RenewTime: metav1.NewMicroTime(began), DurationSeconds: 35}
	var l leases
	later := began.Add(10 * time.Second)
	assert.Equal(t, began, l.firstSeen(claim, began))
	assert.Equal(t, began, l.firstSeen(claim, later), "the same lease: still when it was first seen")

	renewed := claim.DeepCopy()
	renewed.Status.Wait.RenewTime = metav1.NewMicroTime(began.Add(time.Second))
	assert.Equal(t, later, l.firstSeen(renewed, later), "a renewed lease: from now on")

	next := renewed.DeepCopy()
	next.UID = "uid-2"
	latest := later.Add(time.Second)
	assert.Equal(t, latest, l.firstSeen(next, latest), "the name's next claim: another lease")
}
