package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/klog/v2"

	"github.com/altairalabs/omnia-sandboxes/pkg/controller"
)

const (
	// tracedService is what the server calls itself in traces. The generic options would have it be "apiserver", as the host's is.
	tracedService = "sandbox-apiserver"
	// flushTimeout bounds how long the process, when it ends, waits for a collector to take the last spans.
	flushTimeout = 5 * time.Second
)

// traces is what makes the server's spans, in all its parts; nil makes none. Spans are handed on by a goroutine of its own, from
// a queue that drops what does not fit: a collector that is slow, or gone, holds nobody up.
type traces struct{ provider tracing.TracerProvider }

// tracingConfig reads --tracing-config-file; nil where it is not given.
func (o *Options) tracingConfig() (*tracingapi.TracingConfiguration, error) {
	file := o.Generic.Traces.ConfigFile
	if file == "" {
		return nil, nil
	}
	config, err := genericoptions.ReadTracingConfiguration(file)
	if err == nil {
		err = tracingapi.ValidateTracingConfiguration(config, o.Generic.FeatureGate, nil).ToAggregate()
	}
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file %s is no file of a valid TracingConfiguration of apiserver.config.k8s.io/v1: %w", file, err)
	}
	return config, nil
}

// startTraces has spans made, if --tracing-config-file is given.
func (o *Options) startTraces(ctx context.Context) (*traces, error) {
	config, err := o.tracingConfig()
	if err != nil || config == nil {
		return nil, err
	}
	instance, err := os.Hostname() // a pod's is its name
	if err != nil {
		return nil, fmt.Errorf("naming this server in its traces: %w", err)
	}
	provider, err := tracing.NewProvider(ctx, config, nil, []resource.Option{
		resource.WithAttributes(semconv.ServiceName(tracedService), semconv.ServiceInstanceID(instance)),
	})
	if err != nil {
		return nil, fmt.Errorf("making traces as --tracing-config-file says: %w", err)
	}
	log := klog.FromContext(ctx)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Error(err, "Handing on spans") }))
	return &traces{provider}, nil
}

// stop hands on the last spans, and gives up on a collector that does not take them in this time. It comes after all else
// has ended.
func (t *traces) stop(within time.Duration) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		klog.Background().Error(err, "Handing on the last spans")
	}
}

// applyTo has the generic server make spans of requests.
func (t *traces) applyTo(config *genericapiserver.Config) {
	if t != nil {
		config.TracerProvider = outliving{t.provider}
	}
}

// outliving is a provider that the generic server cannot shut down: it would as soon as it has ended itself, with the
// controllers' last spans to come, and would wait for a collector without end.
type outliving struct{ trace.TracerProvider }

var _ tracing.TracerProvider = outliving{}

// Shutdown leaves that to traces.stop.
func (outliving) Shutdown(context.Context) error { return nil }

// applyToControllers has the controllers make spans, and their requests carry the trace in which they are made.
func (t *traces) applyToControllers(config *controller.Config) {
	if t == nil {
		return
	}
	config.Traces = t.provider
	config.Host, config.Loopback = t.within(config.Host), t.within(config.Loopback)
}

// within has a client's requests continue the trace in which they are made, and begin none: the generic server has each
// request to the host be a trace of its own, the renewals of the Lease and the informers' watches as well.
func (t *traces) within(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.WrapTransport = nil // that is the generic server's, and nothing else is
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(tracing.Propagators()),
			otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanFromContext(r.Context()).IsRecording() }))
	})
	return config
}
