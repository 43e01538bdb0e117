package apiserver

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/neighbours"
	"github.com/altairalabs/omnia-sandboxes/registry/sandboxclaim"
	"github.com/altairalabs/omnia-sandboxes/registry/sandboxclass"
)

// Server serves the sandbox.omnia group.
type Server struct {
	Generic *genericapiserver.GenericAPIServer

	neighbours *neighbours.Reader
	waiters    *sandboxclaim.Waiters
}

// New builds the server and installs the group. Nothing runs yet.
func (c *Config) New() (*Server, error) {
	reader, err := neighbours.New(c.Generic.ClientConfig)
	if err != nil {
		return nil, err
	}
	completed := c.Generic.Complete()
	generic, err := completed.New("sandbox-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("building the generic server: %w", err)
	}
	claims, err := sandboxclaim.NewStorage(sandboxclaim.Config{
		Scheme: Scheme, RESTOptions: completed.RESTOptionsGetter, Clock: c.Clock, Neighbours: reader,
		Authorizer: completed.Authorization.Authorizer, Admission: completed.AdmissionControl, MaxWaiters: c.MaxWaiters,
	})
	if err != nil {
		return nil, err
	}
	classes, err := sandboxclass.NewNamespacedREST(Scheme, completed.RESTOptionsGetter)
	if err != nil {
		return nil, err
	}
	clusterClasses, err := sandboxclass.NewClusterREST(Scheme, completed.RESTOptionsGetter)
	if err != nil {
		return nil, err
	}
	s := &Server{Generic: generic, neighbours: reader, waiters: claims.Waiters}
	s.serveControllerMetrics()
	return s, s.install(claims, map[string]rest.Storage{
		"sandboxclaims":         claims.Claims,
		"sandboxclaims/status":  claims.Status,
		"sandboxclaims/acquire": claims.Acquire,
		"sandboxclaims/touch":   claims.Touch,
		"sandboxclaims/release": claims.Release,
		"sandboxclasses":        classes,
		"clustersandboxclasses": clusterClasses,
	})
}

func (s *Server) install(claims *sandboxclaim.Storage, resources map[string]rest.Storage) error {
	group := genericapiserver.NewDefaultAPIGroupInfo(sandbox.GroupName, Scheme, metav1.ParameterCodec, Codecs)
	group.NegotiatedSerializer = withoutProtobuf{Codecs}
	group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = resources
	if err := s.Generic.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("installing the group %s: %w", sandbox.GroupName, err)
	}
	converter, err := managedfields.NewTypeConverter(group.StaticOpenAPISpec, false)
	if err != nil {
		return fmt.Errorf("reading the group's OpenAPI: %w", err)
	}
	if err := claims.TrackFields(converter); err != nil {
		return err
	}
	waiting := healthz.NamedCheck("sandboxclaim-waiters", func(*http.Request) error {
		if !s.waiters.Synced() {
			return fmt.Errorf("claims have not been listed yet")
		}
		return nil
	})
	if err := s.Generic.AddReadyzChecks(waiting); err != nil {
		return fmt.Errorf("adding a readiness check: %w", err)
	}
	return nil
}
