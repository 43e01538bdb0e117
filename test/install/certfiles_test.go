package install

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// secretTimeout is for the kubelet to bring a changed Secret into a pod, which takes it up to its sync period and a half.
const secretTimeout = 3 * time.Minute

// What cert-manager leads to is played here: a TLS Secret that is mounted, and the caBundle of its CA.
func TestCertManagersFiles_RenewedWhileAcquiresRun_NoneFails(t *testing.T) {
	c := framework.Get(t)
	ca := newIssuer(t)
	secret := ca.secret(t)
	w := install(t, "test/install/certfiles", func(ctx context.Context) error {
		return errors.Join(c.Apply(ctx, "manifests/base/prerequisites"), c.Client.Create(ctx, secret), announce(ctx, c, ca.pem))
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
	renewed := ca.secret(t)
	renewed.ResourceVersion = secret.ResourceVersion
	require.NoError(t, c.Client.Update(t.Context(), renewed))
	// A changed pod is looked at by the kubelet at once, and its Secrets with it; else within a minute and a half.
	_, err = w.Kube.CoreV1().Pods(servers[0].Namespace).Patch(t.Context(), servers[0].Name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"sandbox.omnia/looked-at":"true"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	framework.Eventually(t, secretTimeout, "the renewed certificate is served", func(ctx context.Context) (*x509.Certificate, error) {
		return framework.ServedCertificate(ctx, address)
	}, func(served *x509.Certificate) bool { return !served.Equal(before) })
	acquires, failures := stop()
	assert.Empty(t, failures)
	assert.NotZero(t, acquires)
	assert.Equal(t, servers[0].UID, w.servers()[0].UID, "without a restart")
}

// announce makes the APIService before the overlay does, with the caBundle that the overlay leaves alone.
func announce(ctx context.Context, c *framework.Cluster, caBundle []byte) error {
	_, err := c.Aggregator.ApiregistrationV1().APIServices().Create(ctx, &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SchemeGroupVersion.Version + "." + v1alpha1.GroupName},
		Spec: apiregistrationv1.APIServiceSpec{
			Service: &apiregistrationv1.ServiceReference{Namespace: framework.SystemNamespace, Name: framework.ServerName, Port: ptr.To[int32](443)},
			Group:   v1alpha1.GroupName, Version: v1alpha1.SchemeGroupVersion.Version, CABundle: caBundle,
			GroupPriorityMinimum: 2000, VersionPriority: 15,
		},
	}, metav1.CreateOptions{})
	return err
}

// issuer issues certificates as the component's cert-manager objects would.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "sandbox-apiserver-ca"}, key)
	require.NoError(t, err)
	pem, err := cert.EncodeCertificates(ca)
	require.NoError(t, err)
	return &issuer{cert: ca, key: key, pem: pem}
}

// secret is the Secret of a newly issued certificate.
func (i *issuer) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		DNSNames:     []string{framework.ServerName + "." + framework.SystemNamespace + ".svc"},
		NotBefore:    time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, i.cert, key.Public(), i.key)
	require.NoError(t, err)
	issued, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	certPEM, err := cert.EncodeCertificates(issued)
	require.NoError(t, err)
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	require.NoError(t, err)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: framework.SystemNamespace, Name: "sandbox-apiserver-tls"},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{"ca.crt": i.pem, corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM},
	}
}
