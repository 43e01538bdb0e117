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

// ReadyCondition is the Ready condition among a claim's; empty if it has none yet.
func ReadyCondition(conditions []metav1.Condition) metav1.Condition {
	if ready := meta.FindStatusCondition(conditions, ConditionReady); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

// WrittenByAcquire says whether these are the conditions of a claim that acquire wrote.
func WrittenByAcquire(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, ConditionProvenanceVerified)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == ReasonWrittenByOperator
}
