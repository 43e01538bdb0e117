// Package meter is what servers tell of themselves as Prometheus metrics, and what changed between two readings: processor
// time, memory, writes, and how long things took on the server's side. It also tells what machine this is. It asks for
// /metrics and nothing else unless it is told to collect garbage, and it refuses to judge what it reads.
package meter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

const (
	metricsPath = "/metrics"
	// textFormat is the one format that all these servers speak and that is parsed here. Servers choose it by default too.
	textFormat = "text/plain;version=0.0.4"
)

// Source is one server's metrics.
type Source struct {
	// Name is what errors call the server.
	Name string
	// Read gives the metrics in Prometheus' text format. Whoever calls it closes what it gives.
	Read func(ctx context.Context) (io.ReadCloser, error)
}

// FromREST is the source that reads /metrics with a Kubernetes client, of whatever API.
func FromREST(name string, client rest.Interface) Source { return FromPath(name, metricsPath, client) }

// FromPath is the source that reads another path of a server that tells its metrics in several.
func FromPath(name, path string, client rest.Interface) Source {
	return Source{Name: name, Read: func(ctx context.Context) (io.ReadCloser, error) {
		body, err := client.Get().AbsPath(path).SetHeader("Accept", textFormat).Stream(ctx)
		return body, withRemedy(err, path)
	}}
}

// FromURL is the source that reads a whole URL, for instance https://127.0.0.1:2379/metrics.
func FromURL(name, url string, client *http.Client) Source {
	return Source{Name: name, Read: func(ctx context.Context) (io.ReadCloser, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Accept", textFormat)
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusOK {
			return response.Body, nil
		}
		said, err := io.ReadAll(io.LimitReader(response.Body, 1024))
		return nil, errors.Join(fmt.Errorf("%s answers %s: %s%s", url, response.Status, said, remedy(response.StatusCode, request.URL.Path)),
			err, response.Body.Close())
	}}
}

// withRemedy adds to a Kubernetes client's error what to do about it.
func withRemedy(err error, path string) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return fmt.Errorf("%w%s", err, remedy(int(status.Status().Code), path))
	}
	return err
}

// remedy says what lets a caller read a path, behind an error; it is empty where there is nothing to say.
func remedy(code int, path string) string {
	switch code {
	case http.StatusUnauthorized:
		return " (the server does not know the caller: give the client credentials that it accepts)"
	case http.StatusForbidden:
		return fmt.Sprintf(" (bind the caller to a ClusterRole with the verb get on nonResourceURLs %s)", path)
	case http.StatusNotFound:
		return fmt.Sprintf(" (the server does not serve %s: look at its flags, for instance --profiling)", path)
	}
	return ""
}
