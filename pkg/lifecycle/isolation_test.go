package lifecycle

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestEgressResolved(t *testing.T) {
	_, tells := EgressResolved(false, nil)
	assert.False(t, tells, "a class that asks for nothing")
	told, tells := EgressResolved(true, nil)
	assert.True(t, tells)
	assert.Equal(t, metav1.ConditionTrue, told.Status)
	assert.Equal(t, v1alpha1.ReasonEgressAllowed, told.Reason)
	told, tells = EgressResolved(true, []Fault{{v1alpha1.ReasonServiceHasNoSelector, "a has none"}, {v1alpha1.ReasonServiceNotFound, "there is no b"}})
	assert.True(t, tells)
	assert.Equal(t, metav1.ConditionFalse, told.Status)
	assert.Equal(t, v1alpha1.ReasonServiceHasNoSelector, told.Reason)
	assert.Equal(t, "a has none; there is no b", told.Message)
}

func TestIsolationWeakened(t *testing.T) {
	_, tells := IsolationWeakened(nil)
	assert.False(t, tells)
	told, tells := IsolationWeakened([]Widening{{"a", true, false}, {"b", false, true}, {"c", true, true}})
	assert.True(t, tells)
	assert.Equal(t, metav1.ConditionTrue, told.Status)
	assert.Equal(t, v1alpha1.ReasonPolicyAllowsMore, told.Reason)
	assert.Contains(t, told.Message, "a (ingress), b (egress), c (ingress and egress): narrow them")

	var many []Widening
	for i := range 1000 {
		many = append(many, Widening{Policy: fmt.Sprintf("policy-%d", i), Egress: true})
	}
	told, _ = IsolationWeakened(many)
	assert.LessOrEqual(t, len(told.Message), longestMessage+len("…"))
}
