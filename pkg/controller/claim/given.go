package claim

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// given are the decisions that this process made and that the cache may not show yet. Whoever is decided on next goes by
// them, so that no slot is given twice, and none has to wait until the last decision was written and has come back. The zero
// value is ready.
type given struct {
	mu     sync.Mutex
	claims map[types.NamespacedName]*v1alpha1.SandboxClaim // as they were decided on; without a resourceVersion until that is stored
}

// add notes what was decided of a claim, before it is written.
func (g *given) add(claim *v1alpha1.SandboxClaim) {
	claim = claim.DeepCopy()
	claim.ResourceVersion = ""
	g.put(claim)
}

// wrote notes a decision as it is stored.
func (g *given) wrote(claim *v1alpha1.SandboxClaim) { g.put(claim.DeepCopy()) }

func (g *given) put(claim *v1alpha1.SandboxClaim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.claims == nil {
		g.claims = map[types.NamespacedName]*v1alpha1.SandboxClaim{}
	}
	g.claims[client.ObjectKeyFromObject(claim)] = claim
}

// drop forgets a decision: it came to nothing, or the cache has it.
func (g *given) drop(claim types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.claims, claim)
}

// over gives a runtime's claims as the cache has them, with those in their place that were decided on since. They are only read.
func (g *given) over(cached []*v1alpha1.SandboxClaim) ([]*v1alpha1.SandboxClaim, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.claims) == 0 {
		return cached, nil
	}
	for i, claim := range cached {
		key := client.ObjectKeyFromObject(claim)
		decided := g.claims[key]
		if decided == nil {
			continue
		}
		later, err := isLater(decided, claim)
		switch {
		case err != nil:
			return nil, fmt.Errorf("holding claim %s against what was decided of it: %w", key, err)
		case later:
			cached[i] = decided
		default:
			delete(g.claims, key)
		}
	}
	return cached, nil
}

// isLater says whether a decision is later than what the cache has of its claim.
func isLater(decided, cached *v1alpha1.SandboxClaim) (bool, error) {
	if decided.UID != cached.UID {
		return false, nil
	}
	if decided.ResourceVersion == "" {
		return true, nil
	}
	order, err := resourceversion.CompareResourceVersion(decided.ResourceVersion, cached.ResourceVersion)
	return order > 0, err
}
