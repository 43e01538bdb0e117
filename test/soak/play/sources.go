package play

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/altairalabs/omnia-sandboxes/test/meter"
	"github.com/altairalabs/omnia-sandboxes/test/soak/flat"
)

const (
	controllerMetricsPath = "/metrics/controllers"
	// readWithin bounds one reading.
	readWithin = 10 * time.Second

	leaderStatus   = "leader_election_master_status"
	queueDepth     = "workqueue_depth"
	openFDs        = "process_open_fds"
	longRunning    = "apiserver_longrunning_requests"
	etcdBytesInUse = "etcd_mvcc_db_total_size_in_use_in_bytes"
	mebi           = 1 << 20
)

var watching = meter.Labels{"verb": "WATCH"}

// source is one server, past the aggregator.
type source struct {
	client           rest.Interface
	api, controllers meter.Source
}

// etcd is the cluster's etcd.
type etcd struct {
	client  *clientv3.Client
	metrics meter.Source
	prefix  string // of the servers' keys
}

func (s *Soak) openSources() error {
	for _, server := range s.servers.List {
		direct := server.Direct(s.Config)
		direct.Timeout = readWithin
		set, err := kubernetes.NewForConfig(direct)
		if err != nil {
			return err
		}
		client, name := set.CoreV1().RESTClient(), fmt.Sprintf("server %d", server.Index)
		s.sources = append(s.sources, source{client, meter.FromREST(name, client), meter.FromPath(name+"'s controllers", controllerMetricsPath, client)})
	}
	secured, err := s.EtcdAccess().TLS()
	if err != nil {
		return err
	}
	client, err := s.Etcd()
	if err != nil {
		return err
	}
	web := &http.Client{Timeout: readWithin, Transport: &http.Transport{TLSClientConfig: secured}}
	s.etcd = &etcd{client, meter.FromURL("etcd", s.Info.Etcd+"/metrics", web), s.servers.EtcdPrefix() + "/"}
	return nil
}

func (e *etcd) close() error {
	if e == nil {
		return nil
	}
	return e.client.Close()
}

// keys is how many there are under the servers' prefix.
func (e *etcd) keys(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	answer, err := e.client.Get(ctx, e.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("counting the servers' keys: %w", err)
	}
	return answer.Count, nil
}

// read reads a server, its heap only after a collection. It says whether the server leads.
func (s source) read(ctx context.Context, collect bool) (values map[string]float64, leads bool, err error) {
	if collect {
		if err := meter.CollectGarbage(ctx, s.client); err != nil {
			return nil, false, err
		}
	}
	api, err := meter.Read(ctx, s.api)
	if err != nil {
		return nil, false, err
	}
	controllers, err := meter.Read(ctx, s.controllers)
	if err != nil {
		return nil, false, err
	}
	resident, heap := api.Memory()
	values = map[string]float64{
		flat.Resident:    float64(resident) / mebi,
		flat.Goroutines:  float64(api.Goroutines()),
		flat.Watches:     api.Value(longRunning, watching),
		flat.Descriptors: api.Value(openFDs, nil),
		flat.Queue:       controllers.Value(queueDepth, nil),
	}
	if collect {
		values[flat.Heap] = float64(heap) / mebi
	}
	return values, controllers.Value(leaderStatus, nil) > 0, nil
}

// readWhole reads what there is once.
func (s *Soak) readWhole(ctx context.Context) (map[string]float64, error) {
	stored, storedErr := meter.Read(ctx, s.etcd.metrics)
	keys, keysErr := s.etcd.keys(ctx)
	host, hostErr := meter.Read(ctx, meter.FromREST("kube-apiserver", s.Kube.CoreV1().RESTClient()))
	if err := errors.Join(storedErr, keysErr, hostErr); err != nil {
		return nil, err
	}
	return map[string]float64{
		flat.InUse:       stored.Value(etcdBytesInUse, nil) / mebi,
		flat.Keys:        float64(keys),
		flat.HostWatches: host.Value(longRunning, watching),
	}, nil
}
