package lifecycle

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// fullQueue is a runtime's claims, half of them Bound, as many as it may have, and half Queued.
func fullQueue(claims int) Queue {
	q := Queue{Runtime: ceilings(int32(claims/2), 3), Standing: sets.New[types.UID]()}
	for n := range claims {
		uid := types.UID(fmt.Sprintf("6f6ad0a5-2d5a-4ce8-9f6f-%012d", n))
		claim := waiter(uid, n, in(v1alpha1.PhaseQueued))
		if n < claims/2 {
			claim = holder(uid)
			q.Standing.Insert(uid)
		}
		q.Claims = append(q.Claims, claim)
	}
	return q
}

func BenchmarkQueue(b *testing.B) {
	for _, claims := range []int{1000, 5000} {
		q := fullQueue(claims)
		last := q.Claims[claims-1]
		b.Run(fmt.Sprintf("Place/%d claims", claims), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q.Place(last)
			}
		})
		b.Run(fmt.Sprintf("Again/%d claims", claims), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q.Again()
			}
		})
	}
}
