package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	certutil "k8s.io/client-go/util/cert"
)

type fakeCA struct {
	dynamiccertificates.CAContentProvider
	loaded bool
}

func (f fakeCA) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, f.loaded }

func TestAwaitFrontProxy(t *testing.T) {
	shown, none := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, &tls.ConnectionState{}
	tests := map[string]struct {
		tls    *tls.ConnectionState
		user   string // for whom it speaks
		loaded bool
		want   int
		closed bool
	}{
		"a certificate, and nobody to vouch for it yet: asked again":             {shown, "somebody", false, http.StatusServiceUnavailable, false},
		"a certificate, and its CA: served":                                      {shown, "somebody", true, http.StatusOK, false},
		"a front proxy that was not told to show its certificate: connects anew": {none, "somebody", true, http.StatusServiceUnavailable, true},
		"a token: served at any time":                                            {none, "", false, http.StatusOK, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			handler := awaitFrontProxy(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), &authenticatorfactory.RequestHeaderConfig{
				CAContentProvider: fakeCA{loaded: tt.loaded}, UsernameHeaders: headerrequest.StaticStringSlice{"X-Remote-User"},
			})
			request := httptest.NewRequest(http.MethodGet, "/apis", nil)
			request.TLS = tt.tls
			request.Header.Set("X-Remote-User", tt.user)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			assert.Equal(t, tt.want, answer.Code)
			assert.Equal(t, tt.closed, answer.Header().Get("Connection") == "close")
			if tt.want == http.StatusServiceUnavailable {
				assert.Equal(t, "1", answer.Header().Get("Retry-After"))
			}
		})
	}
}

const frontProxy = "a front proxy"

// certificate makes a key and a certificate of it, signed by a CA or by itself.
func certificate(t *testing.T, name string, ca *tls.Certificate) (*tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: ca == nil, BasicConstraintsValid: true,
	}
	parent, signer := template, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// authority is a CA that the server reads from a ConfigMap, once that may be read.
func authority(t *testing.T, bundle []byte, readable <-chan struct{}) *dynamiccertificates.ConfigMapCAController {
	t.Helper()
	set := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cas"}, Data: map[string]string{"ca": string(bundle)}})
	set.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-readable
		return false, nil, nil
	})
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("test", "kube-system", "cas", "ca", set)
	require.NoError(t, err)
	return ca
}

// known lets a CA be read at once.
func known() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// served serves what answers with the name in the caller's certificate, behind awaitFrontProxy, and gives its address.
func served(t *testing.T, clients, proxies *dynamiccertificates.ConfigMapCAController) string {
	t.Helper()
	certPEM, keyPEM, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	serving, err := dynamiccertificates.NewStaticCertKeyContent("serving", certPEM, keyPEM)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	info := &genericapiserver.SecureServingInfo{Listener: listener, Cert: serving, ClientCA: dynamiccertificates.NewUnionCAContentProvider(clients, proxies)}
	whoami := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "anonymous"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, name)
	})
	config := &authenticatorfactory.RequestHeaderConfig{CAContentProvider: proxies, UsernameHeaders: headerrequest.StaticStringSlice{"X-Remote-User"}}
	_, _, err = info.Serve(awaitFrontProxy(whoami, config), time.Second, t.Context().Done())
	require.NoError(t, err)
	return listener.Addr().String()
}

// awaitHints waits until the server asks for certificates of that many CAs.
func awaitHints(t *testing.T, address string, count int) {
	t.Helper()
	require.Eventually(t, func() bool {
		hints := 0
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			hints = len(r.AcceptableCAs)
			return &tls.Certificate{}, nil
		}})
		return err == nil && conn.Close() == nil && hints == count
	}, 5*time.Second, time.Millisecond)
}

// asking asks as an aggregator does: for somebody, with its certificate, on a connection that it keeps.
func asking(t *testing.T, address string, certificate *tls.Certificate) func(user string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate},
	}}}
	t.Cleanup(client.CloseIdleConnections)
	return func(user string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address, nil)
		require.NoError(t, err)
		if user != "" {
			request.Header.Set("X-Remote-User", user)
		}
		answer, err := client.Do(request)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
}

func TestAwaitFrontProxy_ConnectedTooEarly(t *testing.T) {
	_, clientsPEM := certificate(t, "clients-ca", nil)
	proxyCA, proxyPEM := certificate(t, "front-proxy-ca", nil)
	proxy, _ := certificate(t, frontProxy, proxyCA)
	for name, tt := range map[string]struct {
		clientsKnown bool // when the proxy connects
	}{
		"connected before any CA was known: asked to wait, then believed":               {false},
		"connected while the clients' CA alone was known: connects again, and believed": {true},
	} {
		t.Run(name, func(t *testing.T) {
			clientsKnown, proxiesKnown := make(chan struct{}), make(chan struct{})
			address := served(t, authority(t, clientsPEM, clientsKnown), authority(t, proxyPEM, proxiesKnown))
			ask := asking(t, address, proxy)
			if tt.clientsKnown {
				close(clientsKnown)
				awaitHints(t, address, 1)
			}
			code, _ := ask("somebody")
			require.Equal(t, http.StatusServiceUnavailable, code)
			if !tt.clientsKnown {
				close(clientsKnown)
			}
			close(proxiesKnown)
			awaitHints(t, address, 2)
			code, who := ask("somebody")
			require.Equal(t, http.StatusOK, code)
			require.Equal(t, frontProxy, who)
		})
	}
}

func TestAwaitFrontProxy_CallerWithoutCertificate_IsNotSentAway(t *testing.T) {
	_, clientsPEM := certificate(t, "clients-ca", nil)
	_, proxyPEM := certificate(t, "front-proxy-ca", nil)
	address := served(t, authority(t, clientsPEM, known()), authority(t, proxyPEM, known()))
	awaitHints(t, address, 2)
	code, who := asking(t, address, &tls.Certificate{})("")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "anonymous", who, "a token may still say who it is")
}
