package store

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"
)

// openMany starts servers at once, and gives the one id that they agree on.
func (w *world) openMany(change ...func(*Config)) string {
	w.t.Helper()
	const replicas = 5
	keepers, errs := make([]*Keeper, replicas), make([]error, replicas)
	var all sync.WaitGroup
	for i := range replicas {
		all.Go(func() { keepers[i], errs[i] = w.tryOpen(change...) })
	}
	all.Wait()
	stored, recorded := w.marks()
	assert.Equal(w.t, stored, recorded)
	for i, k := range keepers {
		require.NoError(w.t, errs[i])
		assert.Equal(w.t, stored.ID, k.known().ID)
	}
	return stored.ID
}

func TestOpen_FreshStore_SeveralReplicasAtOnceAgree(t *testing.T) {
	w := newWorld(t)
	id := w.openMany()
	assert.Equal(t, id, w.open().known().ID, "and it is found again")
	assert.Empty(t, w.events())
}

func TestOpen_ConfigMapGone_IsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	id := w.open().known().ID
	w.forget()
	w.open()
	assert.Equal(t, id, w.recorded().ID)
}

func TestOpen_AnotherStore_IsRefused_UntilAccepted(t *testing.T) {
	tests := map[Reason]func(*world){
		ReasonEmpty:   (*world).empty,
		ReasonForeign: func(w *world) { w.store(encode(Mark{ID: "other", Generation: 99})) },
		ReasonOlder: func(w *world) {
			earlier := w.stored()
			k := w.open()
			require.NoError(w.t, k.look(w.t.Context()))
			w.store(encode(earlier))
		},
	}
	for reason, lose := range tests {
		t.Run(string(reason), func(t *testing.T) {
			w := newWorld(t)
			before := w.open().known()
			lose(w)
			w.refused(reason)

			id := w.openMany(accepting)
			assert.NotEqual(t, before.ID, id, "whoever still serves the old one is to notice")
			accepted := 0
			for _, event := range w.events() {
				if strings.HasPrefix(event, "Normal StoreAccepted: ") {
					accepted++
				}
			}
			assert.Equal(t, 1, accepted)
			assert.Equal(t, id, w.open(accepting).known().ID, "accepted twice is accepted once")
			assert.Equal(t, id, w.open().known().ID)
		})
	}
}

func TestOpen_AcceptedByOneThatDiedHalfway_TheNextFinishes(t *testing.T) {
	w := newWorld(t)
	before := w.open().known()
	accepted := Mark{ID: "new", Generation: 1, Replaces: before.ID}
	w.store(encode(accepted))
	w.open()
	assert.Equal(t, accepted, w.recorded())
}

func TestOpen_TwoInstallationsInOneEtcd_AreIndependent(t *testing.T) {
	one, other := newWorld(t), newWorld(t)
	a, b := one.open(), other.open()
	assert.NotEqual(t, a.known().ID, b.known().ID)
	other.empty()
	require.NoError(t, a.look(t.Context()))
	isLost(t, b.look(t.Context()), ReasonEmpty)
	// Each refuses the other's.
	one.config.Prefix = other.config.Prefix
	other.store(encode(b.known()))
	one.refused(ReasonForeign)
}

func TestOpen_SomethingElseStandsWhereAMarkShould_SaysWhereAndWhatToDo(t *testing.T) {
	w := newWorld(t)
	good := w.open().known()
	w.store("{}")
	_, err := Open(t.Context(), w.config)
	require.ErrorContains(t, err, w.key)
	require.ErrorContains(t, err, "delete the key")
	w.store(encode(good))
	w.record("{}")
	_, err = Open(t.Context(), w.config)
	require.ErrorContains(t, err, "ConfigMap sandbox-system/sandbox-apiserver-store of the store: data.mark")
	require.ErrorContains(t, err, "delete the ConfigMap")
}

// waits says whether the server that starts waits for its next try.
func (w *world) waits() bool { return w.clock.HasWaiters() }

func TestOpen_HostDoesNotAnswer_IsTriedAgain_AndGivenUpInTheEnd(t *testing.T) {
	w := newWorld(t)
	start := func() <-chan error {
		done := make(chan error, 1)
		go func() {
			k, err := Open(t.Context(), w.config)
			if err == nil {
				err = k.etcd.client.Close()
			}
			done <- err
		}()
		return done
	}
	w.hostFails.Store(2)
	done := start()
	for range 2 {
		require.Eventually(t, w.waits, patience, time.Millisecond)
		w.clock.Step(startDelay)
	}
	require.NoError(t, <-done)

	w.hostFails.Store(-1)
	done = start()
	for range startTries - 1 {
		require.Eventually(t, w.waits, patience, time.Millisecond)
		w.clock.Step(startDelay)
	}
	require.ErrorContains(t, <-done, "reading ConfigMap sandbox-system/sandbox-apiserver-store of the store: the host does not answer")
}

func TestOpen_ToldToEndWhileItWaits_Ends(t *testing.T) {
	w := newWorld(t)
	w.hostFails.Store(-1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := Open(ctx, w.config)
		done <- err
	}()
	require.Eventually(t, w.waits, patience, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestOpen_MayNotReadTheConfigMap_SaysSoAtOnce(t *testing.T) {
	w := newWorld(t)
	w.host.PrependReactor("get", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, ConfigMapName, nil)
	})
	_, err := Open(t.Context(), w.config)
	require.ErrorContains(t, err, "forbidden")
}

func TestOpen_CertificatesThatAreNotThere_SaysWhich(t *testing.T) {
	w := newWorld(t)
	w.config.Etcd.TrustedCAFile = "/nowhere/ca.crt"
	_, err := Open(t.Context(), w.config)
	require.ErrorContains(t, err, "reading etcd's certificates: open /nowhere/ca.crt")
}
