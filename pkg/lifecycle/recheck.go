package lifecycle

import "github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"

// Recheck gives the Queued claims of which Admit would now say something else than they do, oldest first: those that may
// be admitted, those that wait for another limit, and those that fail, because their runtime or their class no longer lets
// them wait. It asks for all of them at the cost of little more than one. classOf gives the class that a claim names; nil
// if there is none.
func (q Queue) Recheck(classOf func(*v1alpha1.SandboxClaim) *v1alpha1.SandboxClassSpec) []*v1alpha1.SandboxClaim {
	var again []*v1alpha1.SandboxClaim
	for claim, limit := range q.waiting() {
		if claim.Status.Phase != v1alpha1.PhaseQueued {
			continue // nothing was said of it yet
		}
		now := admit(Admission{Claim: claim, Runtime: q.Runtime, Class: classOf(claim), Queue: q}, func() Limit { return limit })
		said := v1alpha1.ReadyCondition(claim.Status.Conditions)
		if now.Phase != v1alpha1.PhaseQueued || now.Reason != said.Reason || now.Message != said.Message {
			again = append(again, claim)
		}
	}
	return again
}
