package property

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	// callTimeout ends a call that is never answered.
	callTimeout = 60 * time.Second
	// mostWaiting is how many acquires wait at once.
	mostWaiting = 4
)

// actions are what happens at random, the frequent ones more than once. A promise is checked after each, and now and
// then everything is left to come to rest, since what comes one upon the other is where mistakes are.
func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":                    w.afterEach,
		"acquire":             alone(w.acquireOne),
		"acquire at once":     w.acquireAtOnce,
		"acquire again":       alone(w.acquireFailed),
		"all at once":         w.allAtOnce,
		"acquire and wait":    w.acquireAndWait,
		"delete its pods":     w.deletePods,
		"delete its sandbox":  w.deleteSandbox,
		"hang up":             w.hangUp,
		"touch":               alone(w.touch),
		"release the session": alone(w.releaseSession),
		"release a claim":     alone(w.releaseClaim),
		"resume":              alone(w.resume),
		"delete":              alone(w.delete),
		"write by hand":       w.writeByHand,
		"set maxConcurrent":   w.setMaxConcurrent,
		"set maxPerSession":   w.setMaxPerSession,
		"leap":                w.leap,
		"leap, too":           w.leap,
		"stop a server":       w.stop,
		"start a server":      w.start,
	}
}

func (w *world) afterEach(rt *rapid.T) {
	if rapid.IntRange(0, 2).Draw(rt, "settle") == 0 {
		w.settle(rt, "after this")
	}
	w.kept(rt)
}

func (w *world) server(rt *rapid.T) int {
	return rapid.SampledFrom(w.running()).Draw(rt, "server").Index
}

func (w *world) runtime(rt *rapid.T) string {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(w.runtimes))).Draw(rt, "runtime")
}

func (w *world) key(rt *rapid.T) key {
	return key{Runtime: w.runtime(rt), Session: rapid.SampledFrom(sessions).Draw(rt, "session"), Handle: rapid.SampledFrom(handles).Draw(rt, "handle")}
}

// claim is one of the claims that there are.
func (w *world) claim(rt *rapid.T) *seen {
	claims, _ := w.events.Now()
	if len(claims) == 0 {
		rt.Skip("there is no claim")
	}
	return claims[rapid.SampledFrom(slices.Sorted(maps.Keys(claims))).Draw(rt, "claim")]
}

// begin begins a call, whose context ends it when its caller hangs up.
func (w *world) begin(one *call) context.Context {
	ctx, cancel := context.WithTimeout(w.ctx, callTimeout)
	one.cancel = cancel
	w.calls.begin(one, w.clock.Now())
	w.events.Change(w.events.checkCalls)
	return ctx
}

// alone makes an action of one call.
func alone(draw func(*rapid.T) func()) func(*rapid.T) {
	return func(rt *rapid.T) { draw(rt)() }
}

// together makes several calls at the same moment.
func together(rt *rapid.T, draw func(*rapid.T) func()) {
	var calls []func()
	for range rapid.IntRange(2, 5).Draw(rt, "calls") {
		calls = append(calls, draw(rt))
	}
	var under sync.WaitGroup
	for _, one := range calls {
		under.Go(one)
	}
	under.Wait()
}

func (w *world) acquireAtOnce(rt *rapid.T) { together(rt, w.acquireOne) }

func (w *world) allAtOnce(rt *rapid.T) {
	draws := []func(*rapid.T) func(){w.acquireOne, w.releaseSession, w.releaseClaim, w.touch, w.delete}
	together(rt, func(rt *rapid.T) func() { return rapid.SampledFrom(draws).Draw(rt, "call")(rt) })
}

func (w *world) acquireOne(rt *rapid.T) func() {
	one := &call{verb: acquire, key: w.key(rt), server: w.server(rt), must: rapid.IntRange(0, 9).Draw(rt, "mustExist") == 9}
	return func() { w.acquire(w.begin(one), one) }
}

// acquireFailed acquires what has failed.
func (w *world) acquireFailed(rt *rapid.T) func() {
	claims, _ := w.events.Now()
	maps.DeleteFunc(claims, func(_ string, s *seen) bool {
		return s.Status.Phase != v1alpha1.PhaseFailed || !s.ByAcquire()
	})
	if len(claims) == 0 {
		rt.Skip("none has failed")
	}
	failed := claims[rapid.SampledFrom(slices.Sorted(maps.Keys(claims))).Draw(rt, "claim")]
	one := &call{verb: acquire, key: failed.Key(), server: w.server(rt)}
	return func() { w.acquire(w.begin(one), one) }
}

func (w *world) acquireAndWait(rt *rapid.T) {
	if len(w.calls.underWay()) >= mostWaiting {
		rt.Skip("enough wait")
	}
	one := &call{verb: acquire, key: w.key(rt), server: w.server(rt)}
	one.wait = time.Duration(rapid.SampledFrom([]int{5, 25}).Draw(rt, "waitSeconds")) * time.Second
	w.say("acquire %v at %d begins to wait for %s", one.key, one.server, one.wait)
	ctx := w.begin(one)
	w.callers.Go(func() { w.acquire(ctx, one) })
}

func (w *world) acquire(ctx context.Context, one *call) {
	body := framework.MakeAcquire(one.key.Runtime, one.key.Session, one.key.Handle)
	body.Spec.WaitSeconds, body.Spec.MustExist = ptr.To(int32(one.wait/time.Second)), one.must
	answer, err := w.agents[one.server][one.key.Runtime].SandboxV1alpha1().SandboxClaims(w.namespace).
		Acquire(ctx, v1alpha1.AnyClaim, body, metav1.CreateOptions{})
	w.judgeAcquire(one, answer, err)
}

func (w *world) hangUp(rt *rapid.T) {
	waiting := w.calls.underWay()
	if len(waiting) == 0 {
		rt.Skip("nobody waits")
	}
	one := waiting[rapid.IntRange(0, len(waiting)-1).Draw(rt, "caller")]
	w.say("the caller of %v hangs up", one.key)
	w.calls.hangUp(one)
}

func (w *world) touch(rt *rapid.T) func() {
	return w.touchOne(w.claim(rt), w.server(rt))
}

func (w *world) touchOne(s *seen, server int) func() {
	one := &call{verb: touch, key: s.Key(), name: s.Name, uid: s.UID, server: server}
	body := &v1alpha1.SandboxTouch{Spec: v1alpha1.SandboxTouchSpec{UID: s.UID}}
	return func() {
		answer, err := w.agents[one.server][s.RuntimeName()].SandboxV1alpha1().SandboxClaims(w.namespace).
			Touch(w.begin(one), s.Name, body, metav1.CreateOptions{})
		w.judgeTouch(one, answer, err)
	}
}

// resume uses what is to be released, in one of the ways that withdraw it.
func (w *world) resume(rt *rapid.T) func() {
	claims, _ := w.events.Now()
	maps.DeleteFunc(claims, func(_ string, s *seen) bool {
		return s.Status.ReleaseAt == nil || !s.Live() || !s.ByAcquire() || s.Status.Phase != v1alpha1.PhaseBound
	})
	if len(claims) == 0 {
		rt.Skip("none is to be released")
	}
	s := claims[rapid.SampledFrom(slices.Sorted(maps.Keys(claims))).Draw(rt, "claim")]
	server := w.server(rt)
	switch rapid.IntRange(0, 2).Draw(rt, "how") {
	case 0:
		one := &call{verb: acquire, key: s.Key(), server: server}
		return func() { w.acquire(w.begin(one), one) }
	case 1:
		return w.touchOne(s, server)
	}
	one := &call{key: key{Runtime: s.RuntimeName(), Session: s.Spec.SessionID}, verb: cancel, server: server}
	return w.releaseOne(one, v1alpha1.AnyClaim, v1alpha1.SandboxReleaseSpec{AgentRuntime: s.RuntimeName(), SessionID: s.Spec.SessionID, Cancel: true})
}

func (w *world) releaseSession(rt *rapid.T) func() {
	runtime := w.runtime(rt)
	one := &call{key: key{Runtime: runtime, Session: rapid.SampledFrom(sessions).Draw(rt, "session")}}
	return w.release(rt, one, v1alpha1.AnyClaim, v1alpha1.SandboxReleaseSpec{AgentRuntime: runtime, SessionID: one.key.Session})
}

func (w *world) releaseClaim(rt *rapid.T) func() {
	s := w.claim(rt)
	return w.release(rt, &call{key: s.Key(), name: s.Name, uid: s.UID}, s.Name, v1alpha1.SandboxReleaseSpec{UID: s.UID})
}

// release releases, or cancels a release.
func (w *world) release(rt *rapid.T, one *call, name string, spec v1alpha1.SandboxReleaseSpec) func() {
	one.verb, one.server = release, w.server(rt)
	if rapid.IntRange(0, 2).Draw(rt, "cancel") == 2 {
		one.verb, spec.Cancel = cancel, true
	}
	return w.releaseOne(one, name, spec)
}

func (w *world) releaseOne(one *call, name string, spec v1alpha1.SandboxReleaseSpec) func() {
	return func() {
		before := w.about(one)
		_, err := w.agents[one.server][one.key.Runtime].SandboxV1alpha1().SandboxClaims(w.namespace).
			Release(w.begin(one), name, &v1alpha1.SandboxRelease{Spec: spec}, metav1.CreateOptions{})
		w.judgeRelease(one, before, err)
	}
}

// about are the live claims that a release is about.
func (w *world) about(one *call) []*seen {
	claims, _ := w.events.Now()
	var out []*seen
	for _, s := range claims {
		if one.about(s) && s.Live() {
			out = append(out, s)
		}
	}
	return out
}

func (w *world) delete(rt *rapid.T) func() {
	s := w.claim(rt)
	one := &call{verb: remove, key: s.Key(), name: s.Name, uid: s.UID, server: w.server(rt)}
	how := rapid.SampledFrom([]metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}).Draw(rt, "propagation")
	return func() {
		err := w.admin[one.server].SandboxV1alpha1().SandboxClaims(w.namespace).
			Delete(w.begin(one), s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(s.UID)}, PropagationPolicy: &how})
		w.say("delete %s (%s) at %d: %v", s.Name, how, one.server, err)
		if err != nil && w.stands(s.UID) {
			w.blame(one, "deleting %s: %v", s.Name, err)
		}
		w.calls.end(one)
	}
}

func (w *world) writeByHand(rt *rapid.T) {
	w.byHand++
	k := w.key(rt)
	class := rapid.SampledFrom([]string{usualClass, usualClass, stuckClass, missingClass}).Draw(rt, "class")
	claim := framework.MakeClaim(fmt.Sprintf("by-hand-%d", w.byHand), w.namespace, k.Runtime, "").Session(k.Session).Handle(k.Handle).Obj()
	claim.Spec.ClassRef = v1alpha1.ClassReference{Kind: v1alpha1.SandboxClassKind, Name: class}
	w.say("write claim %s by hand: %v of class %s", claim.Name, k, class)
	server := w.server(rt)
	if _, err := w.admin[server].SandboxV1alpha1().SandboxClaims(w.namespace).Create(w.ctx, claim, metav1.CreateOptions{}); err != nil {
		rt.Fatalf("writing a claim by hand: %v", err)
	}
}

// deletePods deletes the pods of a sandbox, which then gets another.
func (w *world) deletePods(rt *rapid.T) {
	s := w.claim(rt)
	w.say("delete the pods of %s", s.Name)
	err := w.Kube.CoreV1().Pods(w.namespace).DeleteCollection(w.ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)},
		framework.OfClaim(s.UID))
	if err != nil {
		rt.Fatalf("deleting pods: %v", err)
	}
}

// deleteSandbox deletes the Deployment of a claim, which then gets another.
func (w *world) deleteSandbox(rt *rapid.T) {
	s := w.claim(rt)
	if !s.Admitted() {
		rt.Skip("it has none")
	}
	w.say("delete the Deployment of %s", s.Name)
	w.stood.DeletedByHand(s.UID)
	err := w.Kube.AppsV1().Deployments(w.namespace).Delete(w.ctx, s.Status.SandboxName, metav1.DeleteOptions{})
	if client.IgnoreNotFound(err) != nil {
		rt.Fatalf("deleting a Deployment: %v", err)
	}
}

func (w *world) setMaxConcurrent(rt *rapid.T) {
	name := w.runtime(rt)
	value := rapid.IntRange(1, 3).Draw(rt, "maxConcurrent")
	w.say("set maxConcurrent of %s to %d", name, value)
	w.runtimes[name].concurrent.set(value)
	w.setRuntime(rt, name, func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxConcurrent = ptr.To(int32(value)) })
}

func (w *world) setMaxPerSession(rt *rapid.T) {
	name := w.runtime(rt)
	value := rapid.IntRange(1, 3).Draw(rt, "maxPerSession")
	w.say("set maxPerSession of %s to %d", name, value)
	w.runtimes[name].perSession.set(value)
	w.setRuntime(rt, name, func(s *omniav1alpha1.AgentRuntimeSandbox) { s.MaxPerSession = ptr.To(int32(value)) })
}

func (w *world) setRuntime(rt *rapid.T, name string, change func(*omniav1alpha1.AgentRuntimeSandbox)) {
	runtime := &omniav1alpha1.AgentRuntime{}
	err := w.Client.Get(w.ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, runtime)
	if err == nil {
		before := runtime.DeepCopy()
		change(runtime.Spec.Sandbox)
		err = w.Client.Patch(w.ctx, runtime, client.MergeFrom(before))
	}
	if err != nil {
		rt.Fatalf("changing runtime %s: %v", name, err)
	}
}

// leap lets time go by at a stroke, from rest to rest.
func (w *world) leap(rt *rapid.T) {
	by := rapid.SampledFrom(leaps).Draw(rt, "by")
	w.settle(rt, "before a leap")
	w.say("%s go by", by)
	w.clock.Step(by)
	w.settle(rt, "after a leap")
}
