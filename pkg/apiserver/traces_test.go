package apiserver

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"

	"github.com/altairalabs/omnia-sandboxes/pkg/controller"
	"github.com/altairalabs/omnia-sandboxes/test/otlp"
)

func TestTracingConfig_OfAFileThatIsWrong_IsRefusedByTheFlagsName(t *testing.T) {
	for name, content := range map[string]string{
		"not there":           "",
		"no YAML":             "endpoint: collector: 4317",
		"another kind":        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration",
		"an unknown field":    "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsampleRate: 1",
		"a rate that is none": "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsamplingRatePerMillion: 1000001",
		"no endpoint's form":  "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: http://collector:4317",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tracing.yaml")
			if content != "" {
				require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			}
			o := parsed(t, "--embedded-etcd-dir=/data", "--tracing-config-file="+file)
			require.NoError(t, o.Complete())
			require.ErrorContains(t, o.Validate(), "--tracing-config-file "+file)
			_, err := o.startTraces(t.Context())
			require.ErrorContains(t, err, "--tracing-config-file "+file, "and by Run as well")
		})
	}
}

func TestTraces_WithoutTheFlag_AreOff(t *testing.T) {
	o := parsed(t, "--embedded-etcd-dir=/data")
	traces, err := o.startTraces(t.Context())
	require.NoError(t, err)
	config, controllers := genericapiserver.NewConfig(Codecs), controller.Config{Host: &rest.Config{}, Loopback: &rest.Config{}}
	was := config.TracerProvider
	traces.applyTo(config)
	traces.applyToControllers(&controllers)
	assert.Equal(t, was, config.TracerProvider)
	assert.Equal(t, controller.Config{Host: &rest.Config{}, Loopback: &rest.Config{}}, controllers)
	traces.stop(0)
}

// started starts traces of everything, which go to the endpoint.
func started(t *testing.T, endpoint string) *traces {
	t.Helper()
	file, err := otlp.WriteConfig(t.TempDir(), endpoint, 1000000)
	require.NoError(t, err)
	o := parsed(t, "--embedded-etcd-dir=/data", "--tracing-config-file="+file)
	require.NoError(t, o.Complete())
	require.NoError(t, o.Validate())
	traces, err := o.startTraces(t.Context())
	require.NoError(t, err)
	require.NotNil(t, traces)
	return traces
}

func TestTraces_WhenTheServerEnds_AreHandedOnToTheLast(t *testing.T) {
	collector, err := otlp.Listen()
	require.NoError(t, err)
	defer collector.Close()
	traces := started(t, collector.Address())
	config := genericapiserver.NewConfig(Codecs)
	traces.applyTo(config)
	require.NoError(t, config.TracerProvider.Shutdown(t.Context()), "as the generic server does when it ends, before the controllers have")
	_, span := config.TracerProvider.Tracer("test").Start(t.Context(), "the last")
	span.End()
	traces.stop(time.Minute)

	spans := collector.Spans()
	require.Len(t, spans, 1)
	assert.Equal(t, "the last", spans[0].Name)
	assert.Equal(t, "sandbox-apiserver", spans[0].Service, "not the host's apiserver")
}

func TestTraces_OfACollectorThatIsNotThere_HoldNothingUp(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and never says a word
	require.NoError(t, err)
	defer func() { _ = mute.Close() }()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())

	for name, endpoint := range map[string]string{
		"it does not answer": mute.Addr().String(), "it does not listen": gone.Addr().String(), "it has no address": "collector.invalid:4317",
	} {
		t.Run(name, func(t *testing.T) {
			traces := started(t, endpoint)
			const more = 20000 // than any queue holds
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range more {
					_, span := traces.provider.Tracer("test").Start(t.Context(), "request")
					span.End()
				}
				traces.stop(100 * time.Millisecond)
			}()
			select {
			case <-done:
			case <-time.After(time.Minute): // an export alone is tried for longer
				require.Fail(t, "spans wait for the collector")
			}
		})
	}
}

func TestControllersRequests_WithinATraceCarryIt_AndBeginNone(t *testing.T) {
	collector, err := otlp.Listen()
	require.NoError(t, err)
	defer collector.Close()
	traces := started(t, collector.Address())
	carried := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { carried <- r.Header.Get("Traceparent") }))
	defer api.Close()
	config := controller.Config{Host: &rest.Config{Host: api.URL}, Loopback: &rest.Config{Host: api.URL}}
	config.Host.Wrap(func(http.RoundTripper) http.RoundTripper { return nil }) // the generic server's
	traces.applyToControllers(&config)
	require.NotNil(t, config.Traces)

	within, span := traces.provider.Tracer("test").Start(t.Context(), "reconcile")
	for _, cluster := range []*rest.Config{config.Host, config.Loopback} {
		client, err := rest.HTTPClientFor(cluster)
		require.NoError(t, err)
		for _, ctx := range []context.Context{t.Context(), within} {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, api.URL, nil)
			require.NoError(t, err)
			answer, err := client.Do(request)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			if ctx == within {
				assert.Contains(t, <-carried, trace.SpanContextFromContext(within).TraceID().String())
			} else {
				assert.Empty(t, <-carried)
			}
		}
	}
	span.End()
	traces.stop(time.Minute)
	assert.Len(t, collector.Trace(trace.SpanContextFromContext(within).TraceID().String()), 3)
	assert.Len(t, collector.Spans(), 3, "the reconcile's and its requests'")
}
