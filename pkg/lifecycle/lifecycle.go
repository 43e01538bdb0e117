// Package lifecycle says what is due for a claim: whether it may be admitted, where its sandbox stands, whether a wait or
// a limit has run out; and of a ToolRegistry, whether its sandboxes can work. Each rule of the specification is one function
// here, over facts that its caller has gathered and a time that it is given. It refuses to read anything, to write anything,
// and to know what time it is.
package lifecycle

import (
	"strings"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Verdict is what a claim's status should say.
type Verdict struct {
	// Phase is the claim's phase.
	Phase v1alpha1.Phase
	// Reason and Message are the Ready condition's.
	Reason, Message string
	// Addresses is where the sandbox answers, only while it is Bound.
	Addresses map[string]string
	// Deployment is the sandbox's Deployment as it stands, only while it is Bound.
	Deployment *v1alpha1.DeploymentRecord
}

// longestMessage keeps what others said, which may quote whole objects, within what a condition may hold and a person reads.
const longestMessage = 2048

func failed(reason, message string) Verdict {
	return Verdict{Phase: v1alpha1.PhaseFailed, Reason: reason, Message: clipped(message)}
}

func pending(reason, message string) Verdict {
	return Verdict{Phase: v1alpha1.PhasePending, Reason: reason, Message: clipped(message)}
}

// creating is said of a sandbox that is made for the first time, and of one whose pod has gone.
func creating() Verdict {
	return pending(v1alpha1.ReasonCreating, "the sandbox's objects, or its pod, are being created")
}

func queued(reason, message string) Verdict {
	return Verdict{Phase: v1alpha1.PhaseQueued, Reason: reason, Message: clipped(message)}
}

func clipped(message string) string { return Clip(message, longestMessage) }

// Clip shortens a text to so many bytes, and ends it with … if anything is missing.
func Clip(text string, longest int) string {
	const missing = "…"
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest-len(missing)], "") + missing
}

// Terminal says whether nothing more becomes of a claim in this phase but its deletion.
func Terminal(phase v1alpha1.Phase) bool {
	return phase == v1alpha1.PhaseFailed || phase == v1alpha1.PhaseCompleted
}

// Admission is what is known when a claim asks to be admitted.
type Admission struct {
	// Claim is the claim.
	Claim *v1alpha1.SandboxClaim
	// Runtime is its AgentRuntime; nil if there is none.
	Runtime *omniav1alpha1.AgentRuntime
	// Class is the class that it names; nil if there is none.
	Class *v1alpha1.SandboxClassSpec
	// Queue is what competes with it: its runtime's claims, this one among them.
	Queue Queue
}
