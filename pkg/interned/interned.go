// Package interned has equal values be one value in memory, where many objects are held that differ in little: the claims
// of one class, the labels' keys of all objects. It refuses to know which values are worth it. What it gave is part of many
// objects, so whoever changes one copies it first, as everybody does with what a cache gave.
package interned

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
)

// Pool remembers the values that it met last. It is safe for concurrent use. A value that it has forgotten is held twice
// when it is met again, and nothing else comes of it.
type Pool struct{ met *lru.Cache }

// NewPool makes a pool that remembers this many values, strings among them.
func NewPool(most int) *Pool { return &Pool{met: lru.New(most)} }

// Text gives a string as it was first met. It is for strings of which there are few, such as the names of kinds.
func (p *Pool) Text(s string) string {
	if known, ok := p.met.Get(s); ok {
		return known.(string)
	}
	s = strings.Clone(s) // it may be a part of a longer one
	p.met.Add(s, s)
	return s
}

// form is the encoding of a value of one type, hashed.
type form[T any] struct{ sum [sha256.Size]byte }

// Of gives a value as one of the same encoding was first met. It is for what is no more than its encoding says, as all that
// an API serves. What encoding leaves in a value, such as a quantity's text, is there before anybody shares it.
func Of[T any](p *Pool, value T) T {
	encoded, err := encode(&value)
	if err != nil {
		return value // it cannot be told from others, so it stays by itself
	}
	key := form[T]{sha256.Sum256(encoded)}
	if known, ok := p.met.Get(key); ok {
		return known.(T)
	}
	p.met.Add(key, value)
	return value
}

// encode encodes as protobuf what has that, which is faster, and as JSON what has not.
func encode(value any) ([]byte, error) {
	if message, ok := value.(interface{ Marshal() ([]byte, error) }); ok {
		return message.Marshal()
	}
	return json.Marshal(value)
}

// Keys gives the same labels, in a map of its own, with keys that it shares. Their values may be one object's alone.
func (p *Pool) Keys(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	out := make(map[string]string, len(labels))
	for key, value := range labels {
		out[p.Text(key)] = value
	}
	return out
}

// Conditions has conditions share their words, and those that are true, and say the same of all, their message.
func (p *Pool) Conditions(conditions []metav1.Condition) {
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Status, c.Reason = p.Text(c.Type), metav1.ConditionStatus(p.Text(string(c.Status))), p.Text(c.Reason)
		if c.Status == metav1.ConditionTrue {
			c.Message = p.Text(c.Message)
		}
	}
}
