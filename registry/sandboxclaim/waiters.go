package sandboxclaim

import (
	"context"
	"fmt"
	"sync"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// Waiters wakes the acquires that wait on a claim when the claim changes, in whichever replica it was changed. It keeps
// no objects: an event is only a hint to read again, so one can be early, late or doubled without harm. A waiting
// acquire costs one map entry and one channel.
type Waiters struct {
	reflector *cache.Reflector
	most      int

	mu      sync.Mutex
	waiting map[types.NamespacedName]map[*waiter]struct{}
	count   int
	synced  bool
	closed  bool
	closing chan struct{}
	idle    *sync.Cond
}

// waiter is one acquire that waits.
type waiter struct {
	wake chan struct{} // holds one event at most: more would say the same
	key  types.NamespacedName
}

// claimSource is where claims are listed and watched: the store itself, through its watch cache.
type claimSource interface {
	rest.Lister
	rest.Watcher
}

// NewWaiters makes a hub for at most this many waiters at once. It wakes nobody until Run.
func NewWaiters(source claimSource, most int) *Waiters {
	w := &Waiters{most: most, waiting: map[types.NamespacedName]map[*waiter]struct{}{}, closing: make(chan struct{})}
	w.idle = sync.NewCond(&w.mu)
	w.reflector = cache.NewReflectorWithOptions(listWatch(source), &sandbox.SandboxClaim{}, (*wakeUps)(w), cache.ReflectorOptions{
		Name: "sandboxclaim-waiters", TypeDescription: "SandboxClaim",
	})
	return w
}

func listWatch(source claimSource) *cache.ListWatch {
	convert := func(in metav1.ListOptions) (*metainternalversion.ListOptions, error) {
		out := &metainternalversion.ListOptions{}
		err := metainternalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&in, out, nil)
		return out, err
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, in metav1.ListOptions) (runtime.Object, error) {
			options, err := convert(in)
			if err != nil {
				return nil, fmt.Errorf("converting list options: %w", err)
			}
			return source.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, in metav1.ListOptions) (watch.Interface, error) {
			options, err := convert(in)
			if err != nil {
				return nil, fmt.Errorf("converting watch options: %w", err)
			}
			events, err := source.Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, unwrapped), nil
		},
	}
}

// unwrapped takes an object out of the wrapper in which the watch cache shares its encodings among watchers.
func unwrapped(event watch.Event) (watch.Event, bool) {
	if wrapper, ok := event.Object.(runtime.CacheableObject); ok {
		event.Object = wrapper.GetObject()
	}
	return event, true
}

// Run watches claims until ctx ends.
func (w *Waiters) Run(ctx context.Context) { w.reflector.RunWithContext(ctx) }

// Synced says whether the hub has seen the claims once, so that it will not miss a change.
func (w *Waiters) Synced() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.synced
}

// join starts to wait on a claim; nil when as many wait as may, or the server is stopping.
func (w *Waiters) join(key types.NamespacedName) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.count >= w.most {
		return nil
	}
	one := &waiter{wake: make(chan struct{}, 1), key: key}
	if w.waiting[key] == nil {
		w.waiting[key] = map[*waiter]struct{}{}
	}
	w.waiting[key][one] = struct{}{}
	w.count++
	waitingAcquires.Inc()
	return one
}

func (w *Waiters) leave(one *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting[one.key], one)
	if len(w.waiting[one.key]) == 0 {
		delete(w.waiting, one.key)
	}
	w.count--
	waitingAcquires.Dec()
	w.idle.Broadcast()
}

// Close ends every wait, so that its caller is told to ask again elsewhere, and returns when the last has left.
func (w *Waiters) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.closing)
	}
	for w.count > 0 {
		w.idle.Wait()
	}
}

func (w *Waiters) wakeOne(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.waiting[key] {
		one.hint()
	}
}

func (w *Waiters) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.synced = true
	for _, ones := range w.waiting {
		for one := range ones {
			one.hint()
		}
	}
}

func (one *waiter) hint() {
	select {
	case one.wake <- struct{}{}:
	default:
	}
}

// wakeUps is the reflector's store: it stores nothing.
type wakeUps Waiters

var _ cache.ReflectorStore = &wakeUps{}

func (s *wakeUps) event(obj any) error {
	claim, ok := obj.(*sandbox.SandboxClaim)
	if !ok {
		return fmt.Errorf("waking waiters: got a %T", obj)
	}
	(*Waiters)(s).wakeOne(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
	return nil
}

func (s *wakeUps) Add(obj any) error    { return s.event(obj) }
func (s *wakeUps) Update(obj any) error { return s.event(obj) }
func (s *wakeUps) Delete(obj any) error { return s.event(obj) }
func (s *wakeUps) Resync() error        { return nil }

func (s *wakeUps) Replace([]any, string) error {
	(*Waiters)(s).wakeAll()
	return nil
}
