package framework

import (
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Sighting is one claim as a watch showed it.
type Sighting struct {
	// At is when it was seen, by this process' clock.
	At time.Time
	// Claim is the claim; where it is gone, as it last stood.
	Claim *v1alpha1.SandboxClaim
	// Gone says that it was deleted.
	Gone bool
}

// History is what became of a namespace's claims, for what must never have been, and for how long things took. A server
// that is killed may leave a gap in it.
type History struct {
	mu      sync.Mutex
	seen    []Sighting
	changed chan struct{} // closed, and made anew, with each sighting
}

// Record watches a namespace's claims until the test ends.
func (c *Cluster) Record(t testing.TB, namespace string) *History {
	t.Helper()
	h := &History{changed: make(chan struct{})}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: listWatch(c.Sandbox, namespace, ""),
		ObjectType:    &v1alpha1.SandboxClaim{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { h.add(o, false) },
			UpdateFunc: func(_, o any) { h.add(o, false) },
			DeleteFunc: func(o any) { h.add(o, true) },
		},
	})
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the claims could not be watched")
	}
	return h
}

func (h *History) add(object any, gone bool) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	claim, ok := object.(*v1alpha1.SandboxClaim)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, Sighting{At: time.Now(), Claim: claim, Gone: gone})
	close(h.changed)
	h.changed = make(chan struct{})
}

// All is everything that was seen, in its order.
func (h *History) All() []Sighting {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clip(h.seen)
}

// Of is what was seen of one claim.
func (h *History) Of(name string) []Sighting {
	var of []Sighting
	for _, s := range h.All() {
		if s.Claim.Name == name {
			of = append(of, s)
		}
	}
	return of
}

// Now is the last sighting of each claim, by name.
func (h *History) Now() map[string]Sighting {
	now := map[string]Sighting{}
	for _, s := range h.All() {
		now[s.Claim.Name] = s
	}
	return now
}

// Wait waits until what was seen is as wanted. The test fails after the timeout, and shows the claims as they stand.
func (h *History) Wait(t testing.TB, timeout time.Duration, what string, wanted func(*History) bool) {
	t.Helper()
	late := time.NewTimer(timeout)
	defer late.Stop()
	for {
		h.mu.Lock()
		changed := h.changed
		h.mu.Unlock()
		if wanted(h) {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("%s: not within %s; last seen:\n%s", what, timeout, Show(h.Now()))
		}
	}
}

// First waits for a claim to be as wanted for the first time, and gives that sighting.
func (h *History) First(t testing.TB, timeout time.Duration, name, what string, wanted func(*v1alpha1.SandboxClaim) bool) Sighting {
	t.Helper()
	var first Sighting
	h.Wait(t, timeout, "claim "+name+" "+what, func(h *History) bool {
		for _, first = range h.Of(name) {
			if !first.Gone && wanted(first.Claim) {
				return true
			}
		}
		return false
	})
	return first
}

// WaitGone waits for a claim to be deleted, and says when it was.
func (h *History) WaitGone(t testing.TB, name string) time.Time {
	t.Helper()
	h.Wait(t, GoneTimeout, "claim "+name+" is gone", func(h *History) bool { return h.Now()[name].Gone })
	return h.Now()[name].At
}
