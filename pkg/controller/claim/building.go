package claim

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// building knows for which claims a Deployment may be under way at this moment. A claim may be deleted meanwhile, and its
// slot is held all the same: neither the claims nor the Deployments tell of it. The zero value is ready.
type building struct {
	mu     sync.Mutex
	claims map[types.UID]types.NamespacedName // the AgentRuntime by the claim's UID
}

func (b *building) add(claim *v1alpha1.SandboxClaim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.claims == nil {
		b.claims = map[types.UID]types.NamespacedName{}
	}
	b.claims[claim.UID] = runtimeOf(claim)
}

func (b *building) remove(claim *v1alpha1.SandboxClaim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.claims, claim.UID)
}

// of gives the UIDs of a runtime's claims.
func (b *building) of(runtime types.NamespacedName) []types.UID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []types.UID
	for uid, of := range b.claims {
		if of == runtime {
			out = append(out, uid)
		}
	}
	return out
}
