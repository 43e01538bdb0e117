// Package otlp is a collector of traces in a test's own process: a real OTLP receiver, by gRPC on the loopback, which keeps
// what it is sent. It refuses metrics and logs.
package otlp

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Span is a span as it was received. Parent is empty for a trace's first.
type Span struct {
	Service, Name         string
	TraceID, ID, Parent   string
	LinkedTraces          []string
	Attributes            map[string]string
	StartNanos, EndsNanos uint64
}

// Collector is one that runs.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer
	address string
	server  *grpc.Server

	mu    sync.Mutex
	spans []Span
}

// Listen starts a collector on a free port.
func Listen() (*Collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for traces: %w", err)
	}
	c := &Collector{address: listener.Addr().String(), server: grpc.NewServer()}
	collectorv1.RegisterTraceServiceServer(c.server, c)
	go func() { _ = c.server.Serve(listener) }() // it ends by Close alone
	return c, nil
}

// Close ends the collector.
func (c *Collector) Close() { c.server.Stop() }

// Address is where it listens.
func (c *Collector) Address() string { return c.address }

// Export receives spans.
func (c *Collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		service := texts(resource.GetResource().GetAttributes())["service.name"]
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, received(service, span))
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func received(service string, span *tracev1.Span) Span {
	out := Span{
		Service: service, Name: span.GetName(),
		TraceID: hex.EncodeToString(span.GetTraceId()), ID: hex.EncodeToString(span.GetSpanId()), Parent: hex.EncodeToString(span.GetParentSpanId()),
		Attributes: texts(span.GetAttributes()), StartNanos: span.GetStartTimeUnixNano(), EndsNanos: span.GetEndTimeUnixNano(),
	}
	for _, link := range span.GetLinks() {
		out.LinkedTraces = append(out.LinkedTraces, hex.EncodeToString(link.GetTraceId()))
	}
	return out
}

// texts are the attributes that are strings.
func texts(attributes []*commonv1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attributes {
		if text, ok := a.GetValue().GetValue().(*commonv1.AnyValue_StringValue); ok {
			out[a.GetKey()] = text.StringValue
		}
	}
	return out
}

// Spans gives what was received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Trace gives what was received of one trace so far.
func (c *Collector) Trace(id string) []Span {
	return slices.DeleteFunc(c.Spans(), func(s Span) bool { return s.TraceID != id })
}

// WriteConfig writes a server's --tracing-config-file into a folder: for a collector at this endpoint, with so many traces of a
// million requests that belong to none. It gives the file's path.
func WriteConfig(dir, endpoint string, perMillion int) (string, error) {
	path := filepath.Join(dir, "tracing.yaml")
	text := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: %d\n", endpoint, perMillion)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing a tracing configuration: %w", err)
	}
	return path, nil
}
