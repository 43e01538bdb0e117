package interned

import (
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// one says whether two strings are one in memory.
func one(a, b string) bool { return a == b && unsafe.StringData(a) == unsafe.StringData(b) }

func TestText(t *testing.T) {
	p := NewPool(2)
	first := p.Text(strings.Repeat("a", 40))
	assert.True(t, one(first, p.Text(strings.Repeat("a", 40))))
	p.Text("b")
	p.Text("c")
	assert.False(t, one(first, p.Text(strings.Repeat("a", 40))), "no more is remembered than was asked for")
	assert.Equal(t, first, p.Text(strings.Repeat("a", 40)))
}

func TestOf(t *testing.T) {
	type other struct{ Name string }
	p := NewPool(20)
	owner := func(name string) *metav1.OwnerReference { return &metav1.OwnerReference{Name: name} }
	first := Of(p, owner("a"))
	assert.Same(t, first, Of(p, owner("a")))
	assert.NotSame(t, first, Of(p, owner("b")))
	assert.Equal(t, owner("b"), Of(p, owner("b")))
	assert.Nil(t, Of[*metav1.OwnerReference](p, nil))
	assert.Equal(t, struct{ Name string }{"x"}, Of(p, struct{ Name string }{"x"}))
	assert.Equal(t, other{"x"}, Of(p, other{"x"}), "another type's value of the same JSON is another value")
	assert.True(t, math.IsNaN(Of(p, math.NaN())), "what cannot be encoded stays as it is")

	spec := func(image string) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}
	}
	a, again, b := Of(p, spec("a")), Of(p, spec("a")), Of(p, spec("b"))
	assert.Same(t, &a.Containers[0], &again.Containers[0])
	assert.Equal(t, spec("b"), b)
}

func TestKeys(t *testing.T) {
	p := NewPool(10)
	labels := func() map[string]string { return map[string]string{strings.Repeat("k", 40): "v"} }
	given := labels()
	first, second := p.Keys(given), p.Keys(labels())
	assert.Equal(t, labels(), first)
	for key := range first {
		for again := range second {
			assert.True(t, one(key, again))
		}
	}
	first["more"] = ""
	assert.Equal(t, labels(), given)
	assert.Equal(t, labels(), second)
	assert.Nil(t, p.Keys(nil))
}

func TestConditions(t *testing.T) {
	p := NewPool(10)
	conditions := func() []metav1.Condition {
		return []metav1.Condition{
			{Type: strings.Repeat("t", 40), Status: metav1.ConditionTrue, Reason: "r", Message: strings.Repeat("m", 40)},
			{Type: "u", Status: metav1.ConditionFalse, Reason: "s", Message: strings.Repeat("n", 40)},
		}
	}
	first, second := conditions(), conditions()
	p.Conditions(first)
	p.Conditions(second)
	assert.Equal(t, conditions(), first)
	assert.True(t, one(first[0].Type, second[0].Type))
	assert.True(t, one(first[0].Message, second[0].Message))
	assert.False(t, one(first[1].Message, second[1].Message), "what one claim waits for is its own")
}
