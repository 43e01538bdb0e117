package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

type fakeCA struct {
	dynamiccertificates.CAContentProvider
	loaded bool
}

func (f fakeCA) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, f.loaded }

func TestAwaitFrontProxy(t *testing.T) {
	withCertificate := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
	tests := map[string]struct {
		tls    *tls.ConnectionState
		loaded bool
		want   int
	}{
		"a certificate, and nobody to vouch for it yet: asked again": {withCertificate, false, http.StatusServiceUnavailable},
		"a certificate, and its CA: served":                          {withCertificate, true, http.StatusOK},
		"a token: served at any time":                                {&tls.ConnectionState{}, false, http.StatusOK},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			handler := awaitFrontProxy(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), fakeCA{loaded: tt.loaded})
			request := httptest.NewRequest(http.MethodGet, "/apis", nil)
			request.TLS = tt.tls
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			assert.Equal(t, tt.want, answer.Code)
			if tt.want == http.StatusServiceUnavailable {
				assert.Equal(t, "1", answer.Header().Get("Retry-After"))
			}
		})
	}
}
