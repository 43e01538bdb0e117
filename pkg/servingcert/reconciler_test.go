package servingcert

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// replica is one replica's reconciler over a fake client: what the real objects do is tested behind a real aggregator.
type replica struct {
	*reconciler
	t       *testing.T
	clock   *clocktesting.FakeClock
	written int
}

func newReplica(t *testing.T, objects ...client.Object) *replica {
	t.Helper()
	kinds, err := kinds()
	require.NoError(t, err)
	r := &replica{t: t, clock: clocktesting.NewFakeClock(start)}
	r.reconciler = &reconciler{
		client: fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).Build(), clock: r.clock,
		secret: types.NamespacedName{Namespace: "sandbox-system", Name: "cert"}, apiService: "v1alpha1.sandbox.omnia",
		dir: Files(t.TempDir() + "/certs"), onWritten: func() { r.written++ },
	}
	return r
}

func secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "sandbox-system", Name: "cert"}}
}

func apiService() *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.sandbox.omnia"}}
}

// issue puts a CA and a pair into the Secret, as cert-controller does.
func (r *replica) issue(ca *rotator.KeyPairArtifacts, p pair) {
	r.t.Helper()
	held := secret()
	require.NoError(r.t, r.client.Get(r.t.Context(), r.secret, held))
	held.Data = map[string][]byte{caKey: ca.CertPEM, "ca.key": ca.KeyPEM, corev1.TLSCertKey: p.cert, corev1.TLSPrivateKeyKey: p.key}
	require.NoError(r.t, r.client.Update(r.t.Context(), held))
}

// reconcile does it once and gives when it wants to be asked again.
func (r *replica) reconcile() time.Duration {
	r.t.Helper()
	result, err := r.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: r.secret})
	require.NoError(r.t, err)
	return result.RequeueAfter
}

func (r *replica) served() pair {
	r.t.Helper()
	p, err := r.dir.read()
	require.NoError(r.t, err)
	return p
}

func (r *replica) caBundle() string {
	r.t.Helper()
	service := apiService()
	require.NoError(r.t, r.client.Get(r.t.Context(), client.ObjectKeyFromObject(service), service))
	return string(service.Spec.CABundle)
}

func TestReconcile_FirstPair_TrustedAndServedAtOnce(t *testing.T) {
	r := newReplica(t, secret(), apiService())
	assert.Equal(t, recheck, r.reconcile())
	assert.False(t, r.served().usable(), "an empty Secret is waited for")
	assert.Zero(t, r.written)

	ca := newCA(t, start)
	first := newPair(t, ca, start)
	r.issue(ca, first)
	assert.Zero(t, r.reconcile())
	assert.True(t, r.served().equal(first))
	assert.Equal(t, string(ca.CertPEM), r.caBundle())
	assert.Equal(t, 1, r.written)
	info, err := os.Stat(r.dir.KeyFile())
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "nobody else reads the key")
}

func TestReconcile_NewCA_BothAreTrustedWhileTheOldCertificateIsServed(t *testing.T) {
	r := newReplica(t, secret(), apiService())
	before, after := newCA(t, start.Add(-48*time.Hour)), newCA(t, start)
	first, second := newPair(t, before, start.Add(-48*time.Hour)), newPair(t, after, start)
	r.issue(before, first)
	r.reconcile()
	require.True(t, r.served().equal(first))

	r.issue(after, second)
	assert.Equal(t, settle, r.reconcile())
	both := string(bytes.Join([][]byte{after.CertPEM, before.CertPEM}, nil))
	assert.Equal(t, both, r.caBundle())
	assert.True(t, r.served().equal(first), "the aggregator may not know the new CA yet")

	r.clock.Step(settle - time.Second)
	assert.Equal(t, time.Second, r.reconcile(), "an event in between does not begin the wait anew")
	r.clock.Step(time.Second)
	assert.Equal(t, overlap-settle, r.reconcile())
	assert.True(t, r.served().equal(second))
	assert.Equal(t, both, r.caBundle(), "another replica may serve the old certificate yet")

	r.clock.Step(overlap - settle)
	assert.Zero(t, r.reconcile())
	assert.Equal(t, string(after.CertPEM), r.caBundle())
}

func TestReconcile_NewCertificateOfTheSameCA_ServedAtOnce(t *testing.T) {
	r := newReplica(t, secret(), apiService())
	ca := newCA(t, start)
	r.issue(ca, newPair(t, ca, start))
	r.reconcile()
	renewed := newPair(t, ca, start)
	r.issue(ca, renewed)
	assert.Zero(t, r.reconcile())
	assert.True(t, r.served().equal(renewed), "whoever trusts the one trusts the other")
}

// A Secret may be restored from a backup: its CA is then older than what stands, and counts from now all the same.
func TestReconcile_OlderCARestored_BothAreTrustedWhileTheOtherIsServed(t *testing.T) {
	r := newReplica(t, secret(), apiService())
	older, newer := newCA(t, start.Add(-48*time.Hour)), newCA(t, start.Add(-24*time.Hour))
	served, restored := newPair(t, newer, start.Add(-24*time.Hour)), newPair(t, older, start.Add(-48*time.Hour))
	r.issue(newer, served)
	r.reconcile()
	r.issue(older, restored)
	assert.Equal(t, settle, r.reconcile())
	assert.Equal(t, string(older.CertPEM)+string(newer.CertPEM), r.caBundle())
	assert.True(t, r.served().equal(served))
	r.clock.Step(settle)
	r.reconcile()
	assert.True(t, r.served().equal(restored))
}

// A container may be killed between the two files, and its folder outlives it.
func TestReconcile_FilesThatDoNotFit_ReplacedAtOnce(t *testing.T) {
	r := newReplica(t, secret(), apiService())
	ca := newCA(t, start)
	half, next := newPair(t, ca, start), newPair(t, ca, start)
	require.NoError(t, r.dir.write(pair{cert: half.cert, key: next.key}))
	r.issue(ca, next)
	assert.Zero(t, r.reconcile())
	assert.True(t, r.served().equal(next))
}

func TestReconcile_SecretOfTwoHalves_IsNotServed(t *testing.T) {
	r := newReplica(t, secret(), apiService())
	ca := newCA(t, start)
	first := newPair(t, ca, start)
	r.issue(ca, first)
	r.reconcile()
	r.issue(ca, pair{cert: newPair(t, ca, start).cert, key: first.key})
	assert.Equal(t, recheck, r.reconcile())
	assert.True(t, r.served().equal(first))
}

func TestReconcile_ReplicaThatWasAwayForTheRotation_ServesTheNewPairAtOnce(t *testing.T) {
	r := newReplica(t, secret(), apiService())
	forgotten, current := newCA(t, start.Add(-48*time.Hour)), newCA(t, start.Add(-24*time.Hour))
	require.NoError(t, r.dir.write(newPair(t, forgotten, start.Add(-48*time.Hour))))
	next := newPair(t, current, start.Add(-24*time.Hour))
	r.issue(current, next)
	assert.Zero(t, r.reconcile())
	assert.True(t, r.served().equal(next), "what it served is trusted by nobody any more")
}

func TestReconcile_NoAPIService_Served(t *testing.T) {
	r := newReplica(t, secret())
	ca := newCA(t, start)
	r.issue(ca, newPair(t, ca, start))
	assert.Zero(t, r.reconcile())
	assert.True(t, r.served().usable())
}

func TestReconcile_PairOfAnotherCA_IsNotServed(t *testing.T) {
	r := newReplica(t, secret(), apiService())
	ca := newCA(t, start)
	first := newPair(t, ca, start)
	r.issue(ca, first)
	r.reconcile()
	r.issue(newCA(t, start), first)
	r.reconcile()
	assert.True(t, r.served().equal(first))
	assert.Equal(t, string(ca.CertPEM), r.caBundle(), "the issuer will mend the Secret first")
}

func TestReconcile_NoSecret_WhatIsServedStays(t *testing.T) {
	r := newReplica(t, apiService())
	served := newPair(t, newCA(t, start), start)
	require.NoError(t, r.dir.write(served))
	assert.Zero(t, r.reconcile())
	assert.True(t, r.served().equal(served))
}

func TestReconcile_CABundleEditedAway_ComesBack(t *testing.T) {
	r := newReplica(t, secret(), apiService())
	ca := newCA(t, start)
	r.issue(ca, newPair(t, ca, start))
	r.reconcile()
	service := apiService()
	require.NoError(t, r.client.Get(t.Context(), client.ObjectKeyFromObject(service), service))
	service.Spec.CABundle, service.Spec.InsecureSkipTLSVerify = nil, true
	require.NoError(t, r.client.Update(t.Context(), service))
	r.reconcile()
	assert.Equal(t, string(ca.CertPEM), r.caBundle())
}
