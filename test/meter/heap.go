package meter

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
)

const heapProfilePath = "/debug/pprof/heap"

// CollectGarbage has a server collect its garbage, so that the next reading's heap is what is alive. It does so twice: what
// pools keep for later use survives the first.
func CollectGarbage(ctx context.Context, client rest.Interface) error {
	for range 2 {
		if _, err := client.Get().AbsPath(heapProfilePath).Param("gc", "1").DoRaw(ctx); err != nil {
			return fmt.Errorf("asking for a garbage collection: %w", withRemedy(err, heapProfilePath))
		}
	}
	return nil
}
