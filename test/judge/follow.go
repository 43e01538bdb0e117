package judge

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// source lists and watches the objects of one kind in a namespace, as a clientset does.
type source[L any] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// follower tells of objects in the order of what becomes of them, also when kube-apiserver comes and goes: after a gap,
// what went in it is told before what came. An informer tells it the other way round, and two objects that followed on one
// another would seem to have been there at once.
type follower[O metav1.Object, L metav1.ListInterface] struct {
	client  source[L]
	items   func(L) []O
	present func(O)
	gone    func(O)
	synced  chan struct{} // closed with the first list

	known map[types.UID]O
}

func (f *follower[O, L]) follow(ctx context.Context) {
	f.known = map[types.UID]O{}
	for first := true; ctx.Err() == nil; {
		list, err := f.client.List(ctx, metav1.ListOptions{})
		if err == nil {
			f.replace(f.items(list))
			if first {
				close(f.synced)
				first = false
			}
			f.watch(ctx, list.GetResourceVersion())
		}
		select {
		case <-ctx.Done():
		case <-time.After(rewatch):
		}
	}
}

// watch watches until it is cut off.
func (f *follower[O, L]) watch(ctx context.Context, from string) {
	events, err := f.client.Watch(ctx, metav1.ListOptions{ResourceVersion: from})
	if err != nil {
		return // The next list finds out.
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		object, ok := event.Object.(O)
		switch {
		case !ok: // an error, or a bookmark of nothing
			return
		case event.Type == watch.Deleted:
			delete(f.known, object.GetUID())
			f.gone(object)
		default:
			f.known[object.GetUID()] = object
			f.present(object)
		}
	}
}

// replace tells of what was missed.
func (f *follower[O, L]) replace(now []O) {
	there := map[types.UID]O{}
	for _, object := range now {
		there[object.GetUID()] = object
	}
	for uid, object := range f.known {
		if _, stands := there[uid]; !stands {
			f.gone(object)
		}
	}
	f.known = there
	for _, object := range now {
		f.present(object)
	}
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
