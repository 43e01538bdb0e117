package scenario

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/altairalabs/omnia-sandboxes/test/meter"
)

// The processes that are asked what they spend. On a cluster that is not ours, kube-apiserver alone can be asked.
const (
	kubeAPIServer = "kube-apiserver"
	ourServer     = "sandbox-apiserver"
)

const (
	metricsPath              = "/metrics"
	controllerManagerMetrics = "https://127.0.0.1:10257/metrics"
	schedulerMetrics         = "https://127.0.0.1:10259/metrics"
)

// ours is an administrator's client of our first server, past the aggregator.
func (b *Bench) ours() (rest.Interface, error) {
	set, err := kubernetes.NewForConfig(b.Servers.List[0].Direct(b.Config))
	if err != nil {
		return nil, err
	}
	return set.CoreV1().RESTClient(), nil
}

// sources are all processes that can be asked.
func (b *Bench) sources() ([]meter.Source, error) {
	out := []meter.Source{meter.FromREST(kubeAPIServer, b.Kube.CoreV1().RESTClient())}
	if b.Servers == nil {
		return out, nil
	}
	ours, err := b.ours()
	if err != nil {
		return nil, err
	}
	secured, err := b.EtcdAccess().TLS()
	if err != nil {
		return nil, err
	}
	etcd := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: secured}}
	transport, err := rest.TransportFor(insecure(b.Config))
	if err != nil {
		return nil, err
	}
	kube := &http.Client{Transport: transport, Timeout: time.Minute}
	return append(out, meter.FromREST(ourServer, ours), meter.FromURL("etcd", b.Info.Etcd+metricsPath, etcd),
		meter.FromURL("kube-controller-manager", controllerManagerMetrics, kube), meter.FromURL("kube-scheduler", schedulerMetrics, kube)), nil
}

// insecure is a config for servers on loopback that made their own certificates.
func insecure(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Insecure, config.CAData, config.CAFile = true, nil, ""
	return config
}

// spent is what each process did meanwhile, by its name.
type spent map[string]*meter.Change

// during reads all processes before and after something.
func (b *Bench) during(ctx context.Context, do func() error) (spent, error) {
	sources, err := b.sources()
	if err != nil {
		return nil, err
	}
	before, err := readAll(ctx, sources)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	after, err := readAll(ctx, sources)
	if err != nil {
		return nil, err
	}
	out := spent{}
	for name := range before {
		if out[name], err = meter.Between(before[name], after[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

func readAll(ctx context.Context, sources []meter.Source) (map[string]*meter.Reading, error) {
	out := map[string]*meter.Reading{}
	for _, source := range sources {
		reading, err := meter.Read(ctx, source)
		if err != nil {
			return nil, err
		}
		out[source.Name] = reading
	}
	return out, nil
}
