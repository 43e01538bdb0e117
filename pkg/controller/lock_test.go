package controller

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const (
	own   = "pod-a_uid"
	other = "pod-b_uid"
	// longest is a Lease that does not run out in a test.
	longest = time.Hour
)

// leased is a host with a Lease, and a term's lock of it.
type leased struct {
	*termLock
	t     *testing.T
	host  *fake.Clientset
	clock *clocktesting.FakeClock
}

func newLeased(t *testing.T, holder string) *leased {
	t.Helper()
	c := clocktesting.NewFakeClock(time.Now())
	l := &leased{t: t, host: fake.NewClientset(leaseOf(holder)), clock: c}
	l.termLock = lockOn(t, l.host, c)
	return l
}

func lockOn(t *testing.T, host *fake.Clientset, c clock.Clock) *termLock {
	t.Helper()
	election := DefaultElection()
	election.Identity = own
	term := newTerm(t.Context(), election, c)
	t.Cleanup(func() { term.finish(errReleased) })
	return (&candidate{Election: election, namespace: "system", leases: host.CoordinationV1()}).lock(term)
}

func leaseOf(holder string) *coordinationv1.Lease {
	now := metav1.NowMicro()
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: leaseName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To(int32(longest / time.Second)), AcquireTime: &now, RenewTime: &now,
		},
	}
}

// give makes the Lease somebody's, as an edit by hand does.
func (l *leased) give(holder string) {
	l.t.Helper()
	_, err := l.host.CoordinationV1().Leases("system").Update(l.t.Context(), leaseOf(holder), metav1.UpdateOptions{})
	require.NoError(l.t, err)
}

func (l *leased) remove() {
	l.t.Helper()
	require.NoError(l.t, l.host.CoordinationV1().Leases("system").Delete(l.t.Context(), leaseName, metav1.DeleteOptions{}))
}

func holderOf(t *testing.T, host *fake.Clientset) string {
	t.Helper()
	lease, err := host.CoordinationV1().Leases("system").Get(t.Context(), leaseName, metav1.GetOptions{})
	require.NoError(t, err)
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func (l *leased) recordOf(holder string) resourcelock.LeaderElectionRecord {
	now := metav1.NewTime(l.clock.Now())
	return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15, AcquireTime: now, RenewTime: now}
}

// read reads the Lease, as the election does before it writes.
func (l *leased) read() {
	l.t.Helper()
	_, _, err := l.Get(l.t.Context())
	require.NoError(l.t, err)
}

func TestLock_GivesUpItsOwnLeaseAndNoOther(t *testing.T) {
	l := newLeased(t, own)
	l.read()
	require.NoError(t, l.Update(t.Context(), l.recordOf(own)))
	require.NoError(t, l.term.mayWrite())
	l.give(other)
	l.read()
	require.ErrorContains(t, l.Update(t.Context(), l.recordOf("")), other)
	assert.Equal(t, other, holderOf(t, l.host))
	assert.Error(t, l.term.mayWrite())

	l = newLeased(t, own)
	l.read()
	require.NoError(t, l.Update(t.Context(), l.recordOf(own)))
	require.NoError(t, l.Update(t.Context(), l.recordOf("")))
	assert.Empty(t, holderOf(t, l.host))
	assert.ErrorIs(t, l.term.mayWrite(), errReleased, "nothing is written once others may hold it")
}

func TestLock_TakenByHand_EndsTheTermThatHeldIt(t *testing.T) {
	for _, holder := range []string{other, ""} {
		l := newLeased(t, own)
		l.read()
		require.NoError(t, l.Update(t.Context(), l.recordOf(own)))
		l.give(holder)
		l.read()
		require.ErrorIs(t, l.term.over(), errLeaseLost)
		require.ErrorIs(t, l.Update(t.Context(), l.recordOf(own)), errLeaseLost, "a term that is over takes no Lease")
		assert.Equal(t, holder, holderOf(t, l.host))
	}
}

func TestLock_RemovedByHand_TheLeaderMakesItAgainAndLeadsOn(t *testing.T) {
	l := newLeased(t, own)
	l.read()
	require.NoError(t, l.Update(t.Context(), l.recordOf(own)))
	l.remove()
	require.Error(t, l.Update(t.Context(), l.recordOf(own)))
	_, _, err := l.Get(t.Context())
	require.True(t, apierrors.IsNotFound(err))
	require.NoError(t, l.Create(t.Context(), l.recordOf(own)))
	assert.NoError(t, l.term.mayWrite())
}

// Its holder writes on until it notices, and would be one of two leaders.
func TestLock_RemovedUnderAnother_ItIsNotMadeBeforeItWouldHaveRunOut(t *testing.T) {
	l := newLeased(t, other)
	l.read()
	l.clock.Step(time.Second)
	l.remove()
	for range 4 {
		_, _, err := l.Get(t.Context())
		require.True(t, apierrors.IsNotFound(err))
		require.ErrorContains(t, l.Create(t.Context(), l.recordOf(own)), "removed under its holder")
		l.clock.Step(defaultLeaseDuration / 4)
	}
	require.NoError(t, l.Create(t.Context(), l.recordOf(own)))
	assert.NoError(t, l.term.mayWrite())
}

func TestLock_RemovedAndMadeByAnother_ItsEndIsWaitedForAnew(t *testing.T) {
	l := newLeased(t, other)
	l.read()
	l.remove()
	_, _, err := l.Get(t.Context())
	require.True(t, apierrors.IsNotFound(err))
	l.clock.Step(10 * time.Second)
	_, err = l.host.CoordinationV1().Leases("system").Create(t.Context(), leaseOf("a third"), metav1.CreateOptions{})
	require.NoError(t, err)
	l.read()
	l.remove()
	_, _, err = l.Get(t.Context())
	require.True(t, apierrors.IsNotFound(err))
	l.clock.Step(10 * time.Second)
	require.Error(t, l.Create(t.Context(), l.recordOf(own)))
}

func TestLock_NoLease_ItIsMadeAtOnce(t *testing.T) {
	l := newLeased(t, other)
	l.remove()
	require.NoError(t, l.Create(t.Context(), l.recordOf(own)))
	assert.NoError(t, l.term.mayWrite())
}

func TestLock_RenewalThatFails_RenewsNothing(t *testing.T) {
	l := newLeased(t, own)
	l.read()
	require.NoError(t, l.Update(t.Context(), l.recordOf(own)))
	l.host.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	l.clock.Step(defaultRenewDeadline - 1)
	require.Error(t, l.Update(t.Context(), l.recordOf(own)))
	require.NoError(t, l.term.mayWrite())
	l.clock.Step(1)
	assert.ErrorIs(t, l.term.mayWrite(), errLeaseLost)
}

// inElection marks what the election asks while it runs. It gives the Lease up in a context of its own.
type inElection struct{}

// elect runs client-go's election on the lock until the test ends or stop is called, which waits for its end.
func elect(t *testing.T, lock *termLock, election Election) (leads, ended <-chan struct{}, stop func()) {
	t.Helper()
	started, over := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: election.LeaseDuration, RenewDeadline: election.RenewDeadline, RetryPeriod: election.RetryPeriod,
		ReleaseOnCancel: true, Name: t.Name(),
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(started) }, OnStoppedLeading: func() {}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), inElection{}, true))
	go func() {
		defer close(over)
		elector.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-over
	}
	t.Cleanup(stop)
	return started, over, stop
}

func await(t *testing.T, what string, happens <-chan struct{}) {
	t.Helper()
	select {
	case <-happens:
	case <-time.After(patience):
		t.Fatal(what)
	}
}

func TestElection_OwnLeaseOfAProcessThatIsGone_TakenUpAtOnce(t *testing.T) {
	host := fake.NewClientset(leaseOf(own))
	leads, _, stop := elect(t, lockOn(t, host, clock.RealClock{}), DefaultElection())
	await(t, "it waits for its own Lease to run out", leads)
	assert.Equal(t, own, holderOf(t, host))
	stop()
	assert.Empty(t, holderOf(t, host), "a clean stop hands it over")
}

func TestElection_LeaseOfAnother_NotTakenBeforeItRunsOut(t *testing.T) {
	host := fake.NewClientset(leaseOf(other))
	looked := make(chan struct{}, 100)
	host.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		looked <- struct{}{}
		return false, nil, nil
	})
	quick := Election{Identity: own, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 10 * time.Millisecond}
	_, _, stop := elect(t, lockOn(t, host, clock.RealClock{}), quick)
	for range 10 {
		await(t, "it looks at the Lease again and again", looked)
	}
	stop()
	assert.Equal(t, other, holderOf(t, host))
}

// away is a Lease on a host that does not answer the election while it is gone.
type away struct {
	resourcelock.Interface
	mu   sync.RWMutex
	gone bool
}

// goes has the host be gone, once it has answered what it was asked before.
func (a *away) goes() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = true
}

// ask asks the host, if it is there.
func (a *away) ask(ctx context.Context, what func() error) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.gone && ctx.Value(inElection{}) != nil {
		return errors.New("connection refused")
	}
	return what()
}

func (a *away) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = a.ask(ctx, func() (err error) {
		record, raw, err = a.Interface.Get(ctx)
		return err
	})
	return record, raw, err
}

func (a *away) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return a.ask(ctx, func() error { return a.Interface.Update(ctx, record) })
}

// The host answers again just when the leader gives up. Another holds the Lease by then, and client-go would give it up.
func TestElection_LostWhileTheHostWasGone_AnothersLeaseIsNotGivenUp(t *testing.T) {
	host := fake.NewClientset()
	lock := lockOn(t, host, clock.RealClock{})
	lease := &away{Interface: lock.lease}
	lock.lease = lease
	quick := Election{Identity: own, LeaseDuration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 100 * time.Millisecond}
	leads, ended, _ := elect(t, lock, quick)
	await(t, "it leads", leads)
	lease.goes()
	require.NoError(t, host.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), leaseOf(other), "system"))
	await(t, "the election ends", ended)
	assert.Equal(t, other, holderOf(t, host))
	assert.Error(t, lock.term.mayWrite())
}
