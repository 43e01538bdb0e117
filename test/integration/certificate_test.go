package integration

import (
	"bytes"
	"context"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func TestServingCertificate_RotatedWhileAcquiresRun_NoneFails(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.bound("s")
	stop, stopConnecting := w.acquireAllTheTime(), w.connectAllTheTime()

	before, bundle := w.servedByAll(nil), w.caBundle()
	w.patchSecret(`{"data":{"tls.crt":null}}`)
	renewed := w.servedByAll(before)
	require.NoError(t, renewed.CheckSignatureFrom(bundle[0]), "the CA is the same")
	assert.Equal(t, bundle, w.caBundle())

	w.patchSecret(`{"data":null}`)
	reissued := w.servedByAll(renewed)
	bundle = w.caBundle()
	require.GreaterOrEqual(t, len(bundle), 2, "the CA before is trusted too, for whoever still serves its certificate")
	require.NoError(t, reissued.CheckSignatureFrom(bundle[0]), "the latest CA comes first")
	require.NoError(t, renewed.CheckSignatureFrom(bundle[1]))

	for what, stop := range map[string]func() (int, []string){"acquires": stop, "connections": stopConnecting} {
		count, failures := stop()
		assert.Empty(t, failures, what)
		assert.NotZero(t, count, what)
		t.Logf("%d %s while the certificate was renewed and the CA replaced", count, what)
	}
}

// connectAllTheTime opens connections to every server as a kube-apiserver would that hears of a new caBundle a while late.
// Those that acquires use stand, and do not show what is served now.
func (w *world) connectAllTheTime() (stop func() (int, []string)) {
	w.t.Helper()
	const late, pause = 3 * time.Second, 50 * time.Millisecond
	return framework.AllTheTime(w.t, 1, func(ctx context.Context) error {
		service, err := w.Aggregator.ApiregistrationV1().APIServices().Get(ctx, framework.APIServiceName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for heard := time.Now(); time.Since(heard) < late; time.Sleep(pause) {
			for _, server := range w.servers.List {
				if err := framework.Handshake(ctx, server.Address(), service.Spec.CABundle); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestCABundle_EditedAway_ComesBack(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	_, err := w.Aggregator.ApiregistrationV1().APIServices().Patch(t.Context(), framework.APIServiceName, types.MergePatchType,
		[]byte(`{"spec":{"caBundle":null,"insecureSkipTLSVerify":true}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	framework.Eventually(t, framework.Shortly, "the caBundle is there again", func(ctx context.Context) (*apiregistrationv1.APIService, error) {
		return w.Aggregator.ApiregistrationV1().APIServices().Get(ctx, framework.APIServiceName, metav1.GetOptions{})
	}, func(s *apiregistrationv1.APIService) bool {
		return len(s.Spec.CABundle) > 0 && !s.Spec.InsecureSkipTLSVerify
	})
}

// acquireAllTheTime acquires a Bound claim through the aggregator, from several callers.
func (w *world) acquireAllTheTime() (stop func() (int, []string)) {
	w.t.Helper()
	return framework.AllTheTime(w.t, 4, func(context.Context) error {
		_, err := w.acquire(w.agent, "s")
		return err
	})
}

func (w *world) patchSecret(patch string) {
	w.t.Helper()
	_, err := w.Kube.CoreV1().Secrets(framework.SystemNamespace).Patch(w.t.Context(), framework.ServingCertSecret,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// servedByAll waits until all servers serve one certificate, other than the one before, and gives it.
func (w *world) servedByAll(before *x509.Certificate) *x509.Certificate {
	w.t.Helper()
	served := framework.Eventually(w.t, 2*time.Minute, "all servers serve the new certificate", func(ctx context.Context) ([]*x509.Certificate, error) {
		var out []*x509.Certificate
		for _, server := range w.servers.List {
			one, err := framework.ServedCertificate(ctx, server.Address())
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, nil
	}, func(all []*x509.Certificate) bool {
		for _, one := range all {
			if !one.Equal(all[0]) || one.Equal(before) {
				return false
			}
		}
		return true
	})
	secret, err := w.Kube.CoreV1().Secrets(framework.SystemNamespace).Get(w.t.Context(), framework.ServingCertSecret, metav1.GetOptions{})
	require.NoError(w.t, err)
	require.Equal(w.t, parse(w.t, secret.Data[corev1.TLSCertKey])[0].Raw, served[0].Raw, "it is the Secret's")
	return served[0]
}

// caBundle is the APIService's.
func (w *world) caBundle() []*x509.Certificate {
	w.t.Helper()
	service, err := w.Aggregator.ApiregistrationV1().APIServices().Get(w.t.Context(), framework.APIServiceName, metav1.GetOptions{})
	require.NoError(w.t, err)
	return parse(w.t, service.Spec.CABundle)
}

func parse(t *testing.T, pem []byte) []*x509.Certificate {
	t.Helper()
	all, err := cert.ParseCertsPEM(bytes.TrimSpace(pem))
	require.NoError(t, err)
	return all
}
