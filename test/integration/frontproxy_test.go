package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// reloadTimeout is for kube-apiserver to take up a changed file, which it looks at once a minute at least.
const reloadTimeout = 100 * time.Second

const (
	frontProxyCAFile  = "front-proxy-ca.crt"
	frontProxyCert    = "front-proxy-client.crt"
	frontProxyKey     = "front-proxy-client.key"
	authenticationMap = "extension-apiserver-authentication"
	requestHeaderCA   = "requestheader-client-ca-file"
)

// The front proxy's CA is replaced as an administrator does it: the new one beside the old, then the aggregator's
// certificate, then the old one away.
func TestFrontProxyCA_RotatedWhileAcquiresRun_NoneFails(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.bound("s")
	old := w.frontProxyFiles()
	t.Cleanup(func() { w.restoreFrontProxy(t, old) })
	recorded := w.recordFrontProxy()
	next := newFrontProxy(t)

	require.False(t, w.believes(next), "a front proxy of an unknown CA is nobody")
	require.True(t, w.believes(old))
	stop := w.acquireAllTheTime()

	w.writePKI(frontProxyCAFile, append(bytes.Clone(old.ca), next.ca...))
	framework.Eventually(t, reloadTimeout, "all servers believe the new CA", func(context.Context) (bool, error) {
		return w.believes(next), nil
	}, func(yes bool) bool { return yes })
	require.True(t, w.believes(old), "and the old one")

	w.writePKI(frontProxyKey, next.key)
	w.writePKI(frontProxyCert, next.cert)
	issuer := parse(t, next.ca)[0]
	framework.Eventually(t, reloadTimeout, "the aggregator shows its new certificate", func(ctx context.Context) (bool, error) {
		_, err := w.Kube.Discovery().RESTClient().Get().AbsPath("/apis/" + recorderGroup + "/v1").DoRaw(ctx)
		shown := recorded.Load()
		return err == nil && shown != nil && shown.CheckSignatureFrom(issuer) == nil, err
	}, func(yes bool) bool { return yes })

	w.writePKI(frontProxyCAFile, next.ca)
	w.forgetCA(next.ca) // kube-apiserver only ever adds to what it publishes
	framework.Eventually(t, reloadTimeout, "no server believes the old CA", func(context.Context) (bool, error) {
		return w.believes(old), nil
	}, func(yes bool) bool { return !yes })

	acquires, failures := stop()
	assert.Empty(t, failures)
	assert.NotZero(t, acquires)
	t.Logf("%d acquires while the front proxy's CA was replaced", acquires)
}

// frontProxy is a front proxy's certificate, and the CA that vouches for it.
type frontProxy struct{ ca, cert, key []byte }

func (w *world) frontProxyFiles() frontProxy {
	w.t.Helper()
	var out frontProxy
	for name, into := range map[string]*[]byte{frontProxyCAFile: &out.ca, frontProxyCert: &out.cert, frontProxyKey: &out.key} {
		content, err := os.ReadFile(w.Info.PKI(name))
		require.NoError(w.t, err)
		*into = content
	}
	return out
}

func newFrontProxy(t *testing.T) frontProxy {
	t.Helper()
	ca := framework.NewCA(t, "another-front-proxy-ca")
	certPEM, key := ca.Issue(t, x509.Certificate{
		Subject:     pkix.Name{CommonName: "front-proxy-client"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return frontProxy{ca: ca.PEM, cert: certPEM, key: key}
}

// writePKI replaces a file that kube-apiserver watches, as a whole.
func (w *world) writePKI(name string, content []byte) {
	w.t.Helper()
	next := w.Info.PKI(name) + ".next"
	require.NoError(w.t, os.WriteFile(next, content, 0o600))
	require.NoError(w.t, os.Rename(next, w.Info.PKI(name)))
}

// forgetCA leaves only this CA in what kube-apiserver has published.
func (w *world) forgetCA(keep []byte) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{requestHeaderCA: string(keep)}})
	require.NoError(w.t, err)
	_, err = w.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Patch(context.Background(), authenticationMap, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// restoreFrontProxy brings the cluster's own back by the same steps.
func (w *world) restoreFrontProxy(t *testing.T, old frontProxy) {
	t.Helper()
	now := w.frontProxyFiles()
	w.writePKI(frontProxyCAFile, append(bytes.Clone(old.ca), now.ca...))
	framework.EventuallyIn(context.Background(), t, reloadTimeout, "all servers believe the cluster's own front proxy again", func(context.Context) (bool, error) {
		return w.believes(old), nil
	}, func(yes bool) bool { return yes })
	w.writePKI(frontProxyKey, old.key)
	w.writePKI(frontProxyCert, old.cert)
	w.writePKI(frontProxyCAFile, old.ca)
	framework.EventuallyIn(context.Background(), t, reloadTimeout, "the aggregator is served again", func(ctx context.Context) (bool, error) {
		_, err := w.Sandbox.SandboxV1alpha1().ClusterSandboxClasses().List(ctx, metav1.ListOptions{})
		return err == nil, err
	}, func(yes bool) bool { return yes })
}

// believes says whether every server takes the front proxy's word for who somebody is.
func (w *world) believes(proxy frontProxy) bool {
	w.t.Helper()
	for _, server := range w.servers.List {
		config := server.Direct(rest.AnonymousClientConfig(w.Config))
		config.CertData, config.KeyData = proxy.cert, proxy.key
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				r.Header.Set("X-Remote-User", "somebody")
				r.Header.Set("X-Remote-Group", "system:masters")
				return next.RoundTrip(r)
			})
		})
		client, err := rest.HTTPClientFor(config)
		require.NoError(w.t, err)
		answer, err := client.Get(server.URL() + "/apis/sandbox.omnia/v1alpha1/clustersandboxclasses")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		client.CloseIdleConnections()
		if answer.StatusCode != http.StatusOK {
			return false
		}
	}
	return true
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const recorderGroup = "recorder.sandbox.omnia.test"

// recordFrontProxy serves a group of its own behind the aggregator, to remember with which certificate it came last.
func (w *world) recordFrontProxy() *atomic.Pointer[x509.Certificate] {
	w.t.Helper()
	recorded := &atomic.Pointer[x509.Certificate]{}
	address, _ := w.ServeTLS(w.t, http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			recorded.Store(r.TLS.PeerCertificates[0])
		}
		answer.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(answer, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/v1","resources":[]}`, recorderGroup)
	}), tls.RequestClientCert)
	at, err := url.Parse(address)
	require.NoError(w.t, err)
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	require.NoError(w.t, err)

	const name = "recorder"
	w.Create(w.t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Port: ptr.To(int32(port)), Name: ptr.To("")}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{w.Info.NodeIP}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
	})
	services := w.Aggregator.ApiregistrationV1().APIServices()
	_, err = services.Create(w.t.Context(), &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1." + recorderGroup},
		Spec: apiregistrationv1.APIServiceSpec{
			Service: &apiregistrationv1.ServiceReference{Namespace: w.namespace, Name: name, Port: ptr.To[int32](443)},
			Group:   recorderGroup, Version: "v1", InsecureSkipTLSVerify: true, GroupPriorityMinimum: 100, VersionPriority: 1,
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		assert.NoError(w.t, services.Delete(context.Background(), "v1."+recorderGroup, metav1.DeleteOptions{}))
	})
	return recorded
}
