package install

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	sandboxclient "github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	// perSecond is how many acquires are made while something happens to the replicas.
	perSecond = 20
	// newEvery is after how many of them one asks for a new claim, which takes a leader and a pod.
	newEvery = 3 * perSecond
	// unharmed is for how long acquires are made before, and after, what happens.
	unharmed = 2 * time.Second
)

// standing are the sessions whose claims the other acquires find Bound.
var standing = []string{"standing-0", "standing-1", "standing-2", "standing-3"}

// acquires are calls of the client helper at a rate.
type acquires struct {
	h        *ha
	stop     func() framework.Tally
	requests *framework.Requests
	found    map[string]types.UID
}

// mayHaveMany lets new claims come and go beside those that stand.
func (h *ha) mayHaveMany() {
	h.t.Helper()
	runtime := &omniav1alpha1.AgentRuntime{}
	require.NoError(h.t, h.Client.Get(h.t.Context(), types.NamespacedName{Namespace: h.namespace, Name: runtimeName}, runtime))
	limits := framework.MakeRuntime(runtimeName, h.namespace).MaxConcurrent(100).ReleaseGrace(time.Second)
	runtime.Spec.Sandbox = limits.Spec.Sandbox
	require.NoError(h.t, h.Client.Update(h.t.Context(), runtime))
}

// startAcquires begins to acquire, open loop, as one process of a runtime does: no limit of the client's own, and every
// failed request of its helper's is counted.
func (h *ha) startAcquires() *acquires {
	h.t.Helper()
	a := &acquires{h: h, requests: &framework.Requests{}, found: map[string]types.UID{}}
	for _, session := range standing {
		a.found[session] = h.acquire(session).UID
	}
	config := h.asRuntime()
	config.QPS = -1
	config.Wrap(a.requests.Count)
	client := sandboxclient.New(h.clients(config).SandboxV1alpha1(), h.namespace)
	client.DialTimeout = 0
	a.stop = framework.Steadily(h.t, perSecond, func(ctx context.Context, before int) error {
		if before%newEvery == newEvery/2 {
			return a.comeAndGo(ctx, client, before)
		}
		session := standing[before%len(standing)]
		sandbox, err := client.Acquire(ctx, spec(session))
		if err != nil {
			return err
		}
		if sandbox.UID != a.found[session] {
			return fmt.Errorf("session %s has another sandbox: %s, not %s", session, sandbox.UID, a.found[session])
		}
		return nil
	})
	a.wait()
	return a
}

// comeAndGo acquires a new claim, and releases it. To ask for a release again is the caller's.
func (a *acquires) comeAndGo(ctx context.Context, client *sandboxclient.Client, before int) error {
	sandbox, err := client.Acquire(ctx, spec(fmt.Sprintf("new-%d-%d", time.Now().UnixNano(), before)))
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, time.Second, framework.FailoverTimeout, true, func(ctx context.Context) (bool, error) {
		last = sandbox.Release(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("releasing %s: %w (last: %w)", sandbox.Name, err, last)
	}
	return nil
}

// wait lets acquires be made for a while: there is no state that would say that enough were.
func (a *acquires) wait() {
	select {
	case <-time.After(unharmed):
	case <-a.h.t.Context().Done():
	}
}

// noneFails ends the acquires and says how they went: none failed, whatever became of single requests, and the claims are
// those of before, with their pods.
func (a *acquires) noneFails() {
	a.h.t.Helper()
	a.wait()
	tally := a.stop()
	a.h.t.Logf("%d acquires, the longest took %s, %d failed; %s", tally.Count, tally.Longest.Round(time.Millisecond), len(tally.Failures), a.requests)
	assert.Empty(a.h.t, tally.Failures)
	assert.Greater(a.h.t, tally.Count, newEvery, "new claims among them")
	claims, err := a.h.Sandbox.SandboxV1alpha1().SandboxClaims(a.h.namespace).List(a.h.t.Context(), metav1.ListOptions{})
	require.NoError(a.h.t, err)
	sessions := []string{}
	for _, claim := range claims.Items {
		if uid, ok := a.found[claim.Spec.SessionID]; ok {
			assert.Equal(a.h.t, uid, claim.UID, claim.Name)
			sessions = append(sessions, claim.Spec.SessionID)
		}
	}
	slices.Sort(sessions)
	assert.Equal(a.h.t, standing, sessions, "one claim each")
}
