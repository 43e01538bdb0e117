package monitoring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	cachermetrics "k8s.io/apiserver/pkg/storage/cacher/metrics"
	etcdmetrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Where metrics are told. The server's two are told apart by the label metrics_path.
const (
	serverPath      = "/metrics"
	controllersPath = "/metrics/controllers"
	hostAPIServer   = "kube-apiserver"
)

// told is what was told, by where and by the name of a series.
type told map[string]map[string]*series

// series are all of one name: a histogram is three, with _bucket, _sum and _count.
type series struct {
	counts bool // what only grows, and is looked at by rate or increase
	values map[string]sets.Set[string]
}

// read adds what a server tells at a path.
func (k told) read(ctx context.Context, where string, config *rest.Config, path string) error {
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	text, err := set.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("reading %s of %s: %w", path, config.Host, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("reading %s of %s: %w", path, config.Host, err)
	}
	for _, family := range families {
		k.add(where, family)
	}
	return nil
}

func (k told) add(where string, family *dto.MetricFamily) {
	name := family.GetName()
	for _, metric := range family.GetMetric() {
		switch family.GetType() {
		case dto.MetricType_HISTOGRAM:
			k.at(where, name+"_bucket", true).see(metric).see(buckets(metric))
			k.at(where, name+"_count", true).see(metric)
			k.at(where, name+"_sum", true).see(metric)
		case dto.MetricType_SUMMARY:
			k.at(where, name+"_count", true).see(metric)
			k.at(where, name+"_sum", true).see(metric)
		case dto.MetricType_COUNTER:
			k.at(where, name, true).see(metric)
		default:
			k.at(where, name, false).see(metric)
		}
	}
}

func (k told) at(where, name string, counts bool) *series {
	if k[where] == nil {
		k[where] = map[string]*series{}
	}
	if k[where][name] == nil {
		k[where][name] = &series{counts: counts, values: map[string]sets.Set[string]{}}
	}
	return k[where][name]
}

// see remembers the labels of one series.
func (s *series) see(metric *dto.Metric) *series {
	for _, pair := range metric.GetLabel() {
		if s.values[pair.GetName()] == nil {
			s.values[pair.GetName()] = sets.New[string]()
		}
		s.values[pair.GetName()].Insert(pair.GetValue())
	}
	return s
}

// buckets has the labels of a histogram's buckets that its other series have not.
func buckets(metric *dto.Metric) *dto.Metric {
	le, out := model.BucketLabel, &dto.Metric{}
	for _, bucket := range metric.GetHistogram().GetBucket() {
		bound := fmt.Sprint(bucket.GetUpperBound())
		out.Label = append(out.Label, &dto.LabelPair{Name: &le, Value: &bound})
	}
	return out
}

// rare are the families that a server tells only once something went wrong. Here it goes wrong in the test's own process,
// whose registry has them from the same code.
var rare = map[string]func(){
	"etcd_request_errors_total": func() {
		etcdmetrics.Register()
		etcdmetrics.RecordEtcdRequest("get", claims, errors.New("etcd does not answer"), time.Now())
	},
	"apiserver_terminated_watchers_total": func() {
		cachermetrics.Register()
		cachermetrics.TerminatedWatchersCounter.WithLabelValues(claims.Group, claims.Resource).Inc()
	},
}

var claims = schema.GroupResource{Group: v1alpha1.SchemeGroupVersion.Group, Resource: "sandboxclaims"}

// addRare adds them to what the server tells. A name that nothing registers any longer is an error.
func (k told) addRare() error {
	for name, provoke := range rare {
		provoke()
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			return err
		}
		for _, family := range families {
			if family.GetName() == name {
				k.add(serverPath, family)
			}
		}
		if k[serverPath][name] == nil {
			return fmt.Errorf("there is no %s any longer", name)
		}
	}
	return nil
}

// ours are the metrics of this project, by family, with their labels.
func (k told) ours() map[string]sets.Set[string] {
	found := map[string]sets.Set[string]{}
	for name, s := range k[serverPath] {
		if !strings.HasPrefix(name, ownPrefix) || strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") {
			continue
		}
		found[strings.TrimSuffix(name, "_count")] = sets.KeySet(s.values)
	}
	return found
}

// inventions are what given series have and real ones have not.
func (k told) inventions(given []map[string]string) []string {
	var faults []string
	for _, labels := range given {
		name := labels[model.MetricNameLabel]
		if name == up {
			continue
		}
		s := selector{Metric: name, Function: "rate"}
		for label, value := range labels {
			if label == "job" || label == "metrics_path" {
				s.Matchers = append(s.Matchers, matcher{Name: label, Type: "=", Value: value})
			}
			if label != model.MetricNameLabel {
				s.Labels = append(s.Labels, label)
			}
		}
		for _, where := range []string{serverPath, controllersPath, hostAPIServer} {
			if found := k[where][name]; found != nil && s.admits(where) && !found.counts {
				s.Function = "" // a gauge
			}
		}
		faults = append(faults, k.faults(s)...)
	}
	return faults
}
