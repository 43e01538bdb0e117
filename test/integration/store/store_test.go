package store

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/altairalabs/omnia-sandboxes/pkg/store"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestStore_EmptiedUnderServers_TheyEnd_SandboxesStay_UntilAccepted(t *testing.T) {
	w := newWorld(t, attentive(t))
	w.AwaitCollector(t)
	lost := w.acquire("lost")

	w.put(nil)
	w.end(store.ReasonEmpty)
	for _, server := range w.servers.List {
		require.ErrorContains(t, server.Start(t.Context()), "StoreEmpty: ", "nor do they start again")
	}
	w.stays(lost)

	w.start(accept)
	w.told(corev1.EventTypeNormal, store.ReasonAccepted)
	w.goes(lost)
	w.CreateClasses(t, w.class)
	found := w.acquire("lost")
	assert.NotEqual(t, lost.claim.UID, found.claim.UID)
	w.start()
	assert.Equal(t, found.claim.UID, w.acquire("lost").claim.UID)
}

func TestStore_SetBack_ServersEnd_SandboxesStay_UntilAccepted(t *testing.T) {
	w := newWorld(t, attentive(t))
	first := w.acquire("first")
	copied := w.keys()
	then, err := w.known(t.Context())
	require.NoError(t, err)
	second := w.acquire("second")
	framework.Eventually(t, framework.FailoverTimeout, "the servers have served on", w.known, func(now store.Mark) bool {
		return now.ID == then.ID && now.Generation > then.Generation+1
	})

	w.put(copied)
	w.end(store.ReasonOlder)
	for _, server := range w.servers.List {
		require.ErrorContains(t, server.Start(t.Context()), "StoreOlder: ", "nor do they start again")
	}
	w.stays(first, second)

	w.start(accept)
	w.told(corev1.EventTypeNormal, store.ReasonAccepted)
	w.goes(second)
	assert.Equal(t, first.claim.UID, w.acquire("first").claim.UID)
	w.stays(first)
}

// A server as people run it: a process of its own, which looks as often as it does.
func TestStore_Anothers_ServerDoesNotStart_AndSaysWhyLast_UntilAccepted(t *testing.T) {
	w := newWorld(t, framework.ServerOptions{})
	held := w.acquire("s")
	server := w.servers.List[0]
	require.NoError(t, server.Stop())
	keys := w.keys()
	mark := store.Mark{ID: "another", Generation: 1 << 40}
	text, err := json.Marshal(mark)
	require.NoError(t, err)
	require.Contains(t, keys, w.markKey())
	keys[w.markKey()] = string(text)
	w.put(keys)

	require.ErrorContains(t, server.Start(t.Context()), "the process ended: exit status 1")
	w.end(store.ReasonForeign)
	w.stays(held)

	w.start(accept)
	assert.Equal(t, held.claim.UID, w.acquire("s").claim.UID)
	now, err := w.known(t.Context())
	require.NoError(t, err)
	assert.NotEqual(t, mark.ID, now.ID, "the other server, if there is one, is to notice")
	w.start()
	w.stays(held)
}
