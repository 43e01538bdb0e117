package apiserver

import (
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/utils/clock"

	generatedopenapi "github.com/altairalabs/omnia-sandboxes/generated/openapi"
)

// Config is what a server is built from.
type Config struct {
	Generic    *genericapiserver.RecommendedConfig
	Clock      clock.WithTicker
	MaxWaiters int
}

// Config turns options into a configuration. With an embedded etcd, it must be running and its endpoint be set.
func (o *Options) Config(traces *traces) (*Config, error) {
	if err := o.Generic.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, fmt.Errorf("making a self-signed serving certificate: %w", err)
	}
	generic := genericapiserver.NewRecommendedConfig(Codecs)
	if err := o.ServerRun.ApplyTo(&generic.Config); err != nil {
		return nil, fmt.Errorf("applying the serving options: %w", err)
	}
	namer := openapi.NewDefinitionNamer(Scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "Omnia Sandboxes"
	generic.OpenAPIV3Config.Info.Title = "Omnia Sandboxes"
	// An acquire waits by design; it is bounded by --max-waiters and must not hold a place that other requests need.
	generic.LongRunningFunc = genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString("acquire"))
	generic.BuildHandlerChainFunc = buildHandlerChain
	recommended := *o.Generic
	recommended.Traces = nil
	traces.applyTo(&generic.Config)
	if err := recommended.ApplyTo(generic); err != nil {
		return nil, fmt.Errorf("applying the server's options: %w", err)
	}
	return &Config{Generic: generic, Clock: o.Clock, MaxWaiters: o.MaxWaiters}, nil
}
