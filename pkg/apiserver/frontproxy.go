package apiserver

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// buildHandlerChain is the generic server's, behind awaitFrontProxy.
func buildHandlerChain(api http.Handler, c *genericapiserver.Config) http.Handler {
	chain := genericapiserver.DefaultBuildHandlerChain(api, c)
	if c.Authentication.RequestHeaderConfig == nil {
		return chain
	}
	return awaitFrontProxy(chain, c.Authentication.RequestHeaderConfig.CAContentProvider)
}

// awaitFrontProxy answers 503 to whoever shows a client certificate before the CA that vouches for it is loaded, which
// is a moment after the server has begun to serve. Its caller would otherwise be taken for anonymous and be refused for
// good, where it only has to ask again.
func awaitFrontProxy(next http.Handler, ca dynamiccertificates.CAContentProvider) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			if _, loaded := ca.VerifyOptions(); !loaded {
				w.Header().Set("Retry-After", "1")
				err := apierrors.NewServiceUnavailable("the server has just started and does not know the front proxy yet: ask again")
				responsewriters.ErrorNegotiated(err, Codecs, schema.GroupVersion{}, w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
