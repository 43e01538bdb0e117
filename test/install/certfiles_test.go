package install

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// secretTimeout is for the kubelet to bring a changed Secret into a pod, which takes it up to its sync period and a half.
const secretTimeout = 3 * time.Minute

// What cert-manager leads to is played here: a TLS Secret that is mounted, and the caBundle of its CA.
func TestCertManagersFiles_RenewedWhileAcquiresRun_NoneFails(t *testing.T) {
	c := framework.Get(t)
	ca := framework.NewCA(t, "sandbox-apiserver-ca")
	secret := tlsSecret(t, ca)
	w := install(t, "test/install/certfiles", func(ctx context.Context) error {
		// The APIService is there before the overlay's, with the caBundle that the overlay leaves alone.
		return errors.Join(c.Apply(ctx, "manifests/base/prerequisites"), c.Client.Create(ctx, secret), c.CreateAPIService(ctx, ca.PEM))
	})
	w.acquire("s")
	servers := w.servers()
	require.Len(t, servers, 1)
	address := net.JoinHostPort(servers[0].Status.PodIP, "8443")
	before, err := framework.ServedCertificate(t.Context(), address)
	require.NoError(t, err)

	stop := framework.AllTheTime(t, 2, func(ctx context.Context) error {
		_, err := w.claims.Acquire(ctx, v1alpha1.AnyClaim, framework.MakeAcquire(runtimeName, "s", handle), metav1.CreateOptions{})
		return err
	})
	renewed := tlsSecret(t, ca)
	renewed.ResourceVersion = secret.ResourceVersion
	require.NoError(t, c.Client.Update(t.Context(), renewed))
	// A changed pod is looked at by the kubelet at once, and its Secrets with it; else within a minute and a half.
	_, err = w.Kube.CoreV1().Pods(servers[0].Namespace).Patch(t.Context(), servers[0].Name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"sandbox.omnia/looked-at":"true"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	framework.Eventually(t, secretTimeout, "the renewed certificate is served", func(ctx context.Context) (*x509.Certificate, error) {
		return framework.ServedCertificate(ctx, address)
	}, func(served *x509.Certificate) bool { return !served.Equal(before) })
	require.NoError(t, framework.Handshake(t.Context(), address, ca.PEM), "the connections that stand do not show what is served now")
	acquires, failures := stop()
	assert.Empty(t, failures)
	assert.NotZero(t, acquires)
	assert.Equal(t, servers[0].UID, w.servers()[0].UID, "without a restart")
}

// tlsSecret is the Secret of a newly issued certificate, as the component's cert-manager objects would have it.
func tlsSecret(t *testing.T, ca *framework.CA) *corev1.Secret {
	t.Helper()
	certPEM, keyPEM := ca.Issue(t, x509.Certificate{
		DNSNames:    []string{framework.ServerHost},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: framework.SystemNamespace, Name: "sandbox-apiserver-tls"},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{"ca.crt": ca.PEM, corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM},
	}
}
