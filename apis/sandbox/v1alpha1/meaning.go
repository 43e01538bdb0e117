package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RuntimeName is the name of the claim's AgentRuntime; empty for an enrolment.
func (c *SandboxClaim) RuntimeName() string {
	if c.Spec.AgentRuntimeRef == nil {
		return ""
	}
	return c.Spec.AgentRuntimeRef.Name
}

// WrittenByAcquire says whether these are the conditions of a claim that acquire wrote.
func WrittenByAcquire(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, ConditionProvenanceVerified)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == ReasonWrittenByOperator
}
