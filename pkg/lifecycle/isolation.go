package lifecycle

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Fault is something that a class's egress asks for and that is not allowed.
type Fault struct {
	// Reason is one of the EgressResolved condition's.
	Reason string
	// Message says what is wrong and what to do.
	Message string
}

// Widening is another NetworkPolicy of the sandbox's namespace that allows it more than its own.
type Widening struct {
	// Policy is the NetworkPolicy's name.
	Policy string
	// Ingress and Egress say in which directions.
	Ingress, Egress bool
}

// EgressResolved says whether a sandbox may reach all that its class's egress asks for; false if it asks for nothing, and
// there is nothing to tell but the condition's type. It tells of all faults, with the first one's reason.
func EgressResolved(asks bool, faults []Fault) (metav1.Condition, bool) {
	told := metav1.Condition{Type: v1alpha1.ConditionEgressResolved, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonEgressAllowed, Message: "the sandbox may reach what its class's egress names, and nothing else"}
	if len(faults) > 0 {
		var words []string
		for _, fault := range faults {
			words = append(words, fault.Message)
		}
		told.Status, told.Reason, told.Message = metav1.ConditionFalse, faults[0].Reason, clipped(strings.Join(words, "; "))
	}
	return told, asks
}

// IsolationWeakened names the NetworkPolicies that allow a sandbox more than its own; false if there are none, and there is
// nothing to tell but the condition's type.
func IsolationWeakened(others []Widening) (metav1.Condition, bool) {
	var words []string
	for _, other := range others {
		direction := "ingress and egress"
		switch {
		case !other.Egress:
			direction = "ingress"
		case !other.Ingress:
			direction = "egress"
		}
		words = append(words, fmt.Sprintf("%s (%s)", other.Policy, direction))
	}
	return metav1.Condition{Type: v1alpha1.ConditionIsolationWeakened, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPolicyAllowsMore,
		Message: clipped("NetworkPolicies add up, and others of this namespace allow the sandbox more than its class does: " + strings.Join(words, ", ") +
			": narrow them, or have them select no sandboxes")}, len(others) > 0
}
