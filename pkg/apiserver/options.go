package apiserver

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/utils/clock"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/controller"
	sandboxobjects "github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
	"github.com/altairalabs/omnia-sandboxes/pkg/servingcert"
)

const (
	// DefaultEtcdPrefix is where the server's objects stand in an etcd that it may share.
	DefaultEtcdPrefix = "/registry/sandbox.omnia"
	// DefaultEmbeddedEtcdDir is where the embedded etcd keeps its data.
	DefaultEmbeddedEtcdDir = "/var/lib/sandbox-apiserver/etcd"
	// DefaultServiceName is the Service that the APIService names.
	DefaultServiceName = "sandbox-apiserver"
	// DefaultMaxWaiters is how many acquires may wait at once in one replica.
	DefaultMaxWaiters = 10000
	// DefaultDNSPeer is who answers as the resolver in most clusters.
	DefaultDNSPeer = "kube-system/k8s-app=kube-dns"

	defaultEtcdQuotaBytes = 2 << 30
	inClusterNamespace    = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	defaultNamespace      = "sandbox-system"
)

// Options is the server as its flags describe it.
type Options struct {
	// Generic are the options that every aggregated server has.
	Generic *genericoptions.RecommendedOptions
	// ServerRun are the options of its HTTP server.
	ServerRun *genericoptions.ServerRunOptions
	// Logs says how it logs.
	Logs *logsapi.LoggingConfiguration

	// EmbeddedEtcdDir is the folder of the embedded etcd, which runs where --etcd-servers names no other.
	EmbeddedEtcdDir string
	// EmbeddedEtcdQuotaBytes is how large the embedded etcd's database may grow.
	EmbeddedEtcdQuotaBytes int64
	// Store says which store is the server's.
	Store StoreOptions
	// MaxWaiters is how many acquires may wait at once; further ones are answered at once and told to ask again.
	MaxWaiters int
	// Namespace is where the server runs: it holds the Lease of the replica that runs the controllers, the server's Service
	// and the Secret of its serving certificate.
	Namespace string
	// ServiceName is the server's Service, whose name the serving certificate that the server keeps is for.
	ServiceName string
	// ServingCertSecret is the Secret in which the server keeps a serving certificate of its own making, the APIService's
	// caBundle with it. Empty: the certificate is somebody else's, and given by files.
	ServingCertSecret string
	// DNSPeers are who answers as the cluster's resolver, for classes with egress.dns: NAMESPACE/LABEL-SELECTOR[@PORT] or CIDR[@PORT].
	DNSPeers []string
	// HostQPS and HostBurst bound the controllers' requests to the host cluster.
	HostQPS   float32
	HostBurst int
	// Election says how the replicas agree on which of them runs the controllers.
	Election controller.Election
	// Clock tells the time that claims live by. Leases, certificates and connections keep the machine's.
	Clock clock.WithTicker

	// etcdServers is that flag, which tells what was given empty from what was not given.
	etcdServers *pflag.Flag
}

// NewOptions gives the defaults.
func NewOptions() *Options {
	o := &Options{
		Generic:                genericoptions.NewRecommendedOptions(DefaultEtcdPrefix, Codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)),
		ServerRun:              genericoptions.NewServerRunOptions(),
		Logs:                   logsapi.NewLoggingConfiguration(),
		EmbeddedEtcdQuotaBytes: defaultEtcdQuotaBytes,
		MaxWaiters:             DefaultMaxWaiters,
		Namespace:              ownNamespace(),
		ServiceName:            DefaultServiceName,
		DNSPeers:               []string{DefaultDNSPeer},
		HostQPS:                200,
		HostBurst:              400,
		Election:               controller.DefaultElection(),
		Clock:                  clock.RealClock{},
	}
	// Without a versioner, discovery has no storageVersionHash.
	o.Generic.Etcd.StorageConfig.EncodeVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: sandbox.GroupName})
	// Open watches would otherwise hold up the end of the process for most of a minute.
	o.ServerRun.ShutdownWatchTerminationGracePeriod = 5 * time.Second
	return o
}

func ownNamespace() string {
	if name, err := os.ReadFile(inClusterNamespace); err == nil {
		return strings.TrimSpace(string(name))
	}
	return defaultNamespace
}

// Flags gives the server's flags, by section.
func (o *Options) Flags() *cliflag.NamedFlagSets {
	sets := &cliflag.NamedFlagSets{}
	own := sets.FlagSet("sandbox server")
	own.StringVar(&o.EmbeddedEtcdDir, "embedded-etcd-dir", o.EmbeddedEtcdDir, "Folder of the etcd that runs inside the process where --etcd-servers names no other. More than one replica needs --etcd-servers. (default \""+DefaultEmbeddedEtcdDir+"\")")
	own.Int64Var(&o.EmbeddedEtcdQuotaBytes, "embedded-etcd-quota-bytes", o.EmbeddedEtcdQuotaBytes, "How large the embedded etcd's database may grow before writes are refused.")
	o.Store.addFlags(own)
	own.IntVar(&o.MaxWaiters, "max-waiters", o.MaxWaiters, "How many acquires may wait in this replica at once. Further ones are answered at once and told when to ask again.")
	own.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace that the server runs in: of the Lease of the replica that runs the controllers, of its Service, and of its serving certificate's Secret.")
	own.StringVar(&o.ServiceName, "service-name", o.ServiceName, "Name of the server's Service. The serving certificate that --serving-cert-secret keeps is for it.")
	own.StringVar(&o.ServingCertSecret, "serving-cert-secret", o.ServingCertSecret, "Secret in --namespace, empty at first, in which the server keeps a CA and a serving certificate that it issues and renews by itself. It writes the certificate to --cert-dir and keeps the APIService's caBundle. Unset, give --tls-cert-file and --tls-private-key-file, as cert-manager makes them, and keep the caBundle otherwise.")
	own.StringArrayVar(&o.DNSPeers, "dns-peer", o.DNSPeers, "Who answers as the cluster's resolver, which sandboxes of a class with egress.dns may reach: NAMESPACE/LABEL-SELECTOR or CIDR, with @PORT where it is not 53, for example openshift-dns/dns.operator.openshift.io/daemonset-dns=default@5353, or 169.254.20.10/32 for a resolver on each node. Give it once for each. A cluster IP is none.")
	own.Float32Var(&o.HostQPS, "kube-api-qps", o.HostQPS, "Requests a second that the controllers may make to the host cluster.")
	own.IntVar(&o.HostBurst, "kube-api-burst", o.HostBurst, "Requests that the controllers may make to the host cluster at once.")
	o.Election.AddFlags(own)

	o.Generic.Etcd.AddFlags(sets.FlagSet("etcd"))
	o.etcdServers = sets.FlagSet("etcd").Lookup("etcd-servers")
	o.Generic.SecureServing.AddFlags(sets.FlagSet("secure serving"))
	o.Generic.Authentication.AddFlags(sets.FlagSet("authentication"))
	o.Generic.Authorization.AddFlags(sets.FlagSet("authorization"))
	o.Generic.Audit.AddFlags(sets.FlagSet("auditing"))
	o.Generic.Features.AddFlags(sets.FlagSet("features"))
	o.Generic.CoreAPI.AddFlags(sets.FlagSet("host cluster"))
	o.Generic.Admission.AddFlags(sets.FlagSet("admission"))
	o.Generic.Traces.AddFlags(sets.FlagSet("traces"))
	o.ServerRun.AddUniversalFlags(sets.FlagSet("serving"))
	logsapi.AddFlags(o.Logs, sets.FlagSet("logs"))
	return sets
}

// AddFlags puts all the flags into one set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	for _, set := range o.Flags().FlagSets {
		fs.AddFlagSet(set)
	}
}

// validateServingCert holds that the certificate is kept by one, in one place.
func (o *Options) validateServingCert() []error {
	if o.ServingCertSecret == "" {
		return nil
	}
	var errs []error
	if serving := o.Generic.SecureServing.ServerCert; serving.CertKey.CertFile != servingcert.Files(serving.CertDirectory).CertFile() {
		errs = append(errs, errors.New("--serving-cert-secret and --tls-cert-file are both set: give one of the two"))
	}
	if o.ServiceName == "" {
		errs = append(errs, errors.New("--service-name is empty: name the Service that the serving certificate is for"))
	}
	return errs
}

// resolver reads who answers as the cluster's DNS.
func (o *Options) resolver() ([]sandboxobjects.DNSPeer, error) {
	var out []sandboxobjects.DNSPeer
	for _, text := range o.DNSPeers {
		peer, err := sandboxobjects.ParseDNSPeer(text)
		if err != nil {
			return nil, fmt.Errorf("reading --dns-peer: %w", err)
		}
		out = append(out, peer)
	}
	return out, nil
}

// Complete fills in what follows from what was given: authentication and authorization are the host cluster's, reached
// as its API is, and storage is the embedded etcd where no other is named.
func (o *Options) Complete() error {
	kubeconfig := o.Generic.CoreAPI.CoreAPIKubeconfigPath
	if o.Generic.Authentication.RemoteKubeConfigFile == "" {
		o.Generic.Authentication.RemoteKubeConfigFile = kubeconfig
	}
	if o.Generic.Authorization.RemoteKubeConfigFile == "" {
		o.Generic.Authorization.RemoteKubeConfigFile = kubeconfig
	}
	if o.EmbeddedEtcdDir == "" && !o.hasEtcdServers() {
		o.EmbeddedEtcdDir = DefaultEmbeddedEtcdDir
	}
	if serving := &o.Generic.SecureServing.ServerCert; o.ServingCertSecret != "" && serving.CertKey.CertFile == "" {
		files := servingcert.Files(serving.CertDirectory)
		serving.CertKey.CertFile, serving.CertKey.KeyFile = files.CertFile(), files.KeyFile()
	}
	if err := o.Election.Complete(); err != nil {
		return err
	}
	if err := o.ServerRun.Complete(); err != nil {
		return fmt.Errorf("completing the serving options: %w", err)
	}
	return nil
}

func (o *Options) hasEtcdServers() bool {
	return len(o.Generic.Etcd.StorageConfig.Transport.ServerList) > 0
}

// embedded says whether the server runs its own etcd.
func (o *Options) embedded() bool { return o.EmbeddedEtcdDir != "" }

// Validate says what is wrong with the options, all at once.
func (o *Options) Validate() error {
	var errs []error
	if o.etcdServers != nil && o.etcdServers.Changed && !o.hasEtcdServers() {
		errs = append(errs, errors.New("--etcd-servers is given and names none: name etcd's members, or leave it out for an embedded etcd"))
	}
	if o.hasEtcdServers() && o.embedded() {
		errs = append(errs, errors.New("--etcd-servers and --embedded-etcd-dir are both set: give one of the two"))
	}
	if o.MaxWaiters < 0 {
		errs = append(errs, fmt.Errorf("--max-waiters is %d: it must not be negative", o.MaxWaiters))
	}
	if o.EmbeddedEtcdQuotaBytes <= 0 {
		errs = append(errs, fmt.Errorf("--embedded-etcd-quota-bytes is %d: it must be positive", o.EmbeddedEtcdQuotaBytes))
	}
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace is empty: name the namespace that the server runs in, and may write Leases in"))
	}
	if _, err := o.resolver(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, o.Election.Validate()...)
	errs = append(errs, o.validateServingCert()...)
	if o.hasEtcdServers() {
		errs = append(errs, o.Generic.Etcd.Validate()...)
	}
	errs = append(errs, o.Generic.SecureServing.Validate()...)
	errs = append(errs, o.Generic.Authentication.Validate()...)
	errs = append(errs, o.Generic.Authorization.Validate()...)
	errs = append(errs, o.Generic.Audit.Validate()...)
	errs = append(errs, o.Generic.Features.Validate()...)
	errs = append(errs, o.Generic.Admission.Validate()...)
	if _, err := o.tracingConfig(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, o.ServerRun.Validate()...)
	return utilerrors.NewAggregate(errs)
}
