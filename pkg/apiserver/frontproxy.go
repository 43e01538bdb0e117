package apiserver

import (
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// buildHandlerChain is the generic server's, behind awaitFrontProxy.
func buildHandlerChain(api http.Handler, c *genericapiserver.Config) http.Handler {
	chain := genericapiserver.DefaultBuildHandlerChain(api, c)
	if c.Authentication.RequestHeaderConfig == nil {
		return chain
	}
	return awaitFrontProxy(chain, c.Authentication.RequestHeaderConfig)
}

// awaitFrontProxy answers 503 to a front proxy that cannot be believed, because the CA that vouches for it was not loaded
// when it connected: a moment after the server has begun to serve. Its callers would otherwise be taken for anonymous and
// be refused for good, where they only have to ask again.
//
// The clients' CA and the proxy's are read by watches of their own. Whoever connects before either is known is not told
// whose certificates are wanted, and shows its own. Whoever connects while the clients' alone is known is told to show one
// of that CA, has none, and goes on using a connection on which it can never be believed: so that one is closed.
func awaitFrontProxy(next http.Handler, proxy *authenticatorfactory.RequestHeaderConfig) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown := r.TLS != nil && len(r.TLS.PeerCertificates) > 0
		_, loaded := proxy.CAContentProvider.VerifyOptions()
		switch {
		case shown && !loaded:
		case !shown && speaksForAnother(r, proxy.UsernameHeaders.Value()):
			w.Header().Set("Connection", "close")
		default:
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		err := apierrors.NewServiceUnavailable("the server has just started and does not know the front proxy yet: ask again")
		responsewriters.ErrorNegotiated(err, Codecs, schema.GroupVersion{}, w, r)
	})
}

// speaksForAnother says whether the request names a user as a front proxy does.
func speaksForAnother(r *http.Request, usernameHeaders []string) bool {
	return slices.ContainsFunc(usernameHeaders, func(header string) bool { return r.Header.Get(header) != "" })
}
