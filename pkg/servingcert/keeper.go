package servingcert

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	caName         = "sandbox-apiserver-ca"
	caOrganization = "omnia-sandboxes"

	caLifetime      = 10 * 365 * 24 * time.Hour
	servingLifetime = 90 * 24 * time.Hour
	// renewBefore is how long before its end a certificate, or the CA, is renewed.
	renewBefore    = 30 * 24 * time.Hour
	renewCheck     = time.Hour
	firstPairLimit = 2 * time.Minute
)

// Config says what to keep.
type Config struct {
	// Host leads to the cluster that holds the Secret and the APIService.
	Host *rest.Config
	// Namespace is the server's own.
	Namespace string
	// Secret holds the CA and the pair. It must exist, and may be empty.
	Secret string
	// Service is the name of the server's Service: the certificate is for <service>.<namespace>.svc.
	Service string
	// APIService is the object whose caBundle is kept.
	APIService string
	// Dir is where the pair is written for the server to serve.
	Dir string
	// Clock tells the time.
	Clock clock.Clock
}

// hint is what most likely keeps a server from having a certificate.
const hint = "is there the Secret that --serving-cert-secret names, and may the server update it?"

// Keeper keeps a serving certificate.
type Keeper struct {
	manager ctrl.Manager

	written     chan struct{} // closed once there is a pair to serve
	writtenOnce sync.Once
}

// New prepares to keep a serving certificate. Nothing runs yet.
func New(ctx context.Context, cfg Config) (*Keeper, error) {
	kinds, err := kinds()
	if err != nil {
		return nil, err
	}
	named := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
	}
	secrets := named(cfg.Secret)
	secrets.Namespaces = map[string]cache.Config{cfg.Namespace: {}}
	manager, err := ctrl.NewManager(cfg.Host, ctrl.Options{
		Scheme:     kinds,
		Logger:     klog.FromContext(ctx),
		Metrics:    metricsserver.Options{BindAddress: "0"}, // the API server serves them
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:                secrets,
			&apiregistrationv1.APIService{}: named(cfg.APIService),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("building the manager of the serving certificate: %w", err)
	}
	err = rotator.AddRotator(manager, newRotator(cfg))
	if err != nil {
		return nil, fmt.Errorf("adding the issuer of the serving certificate: %w", err)
	}
	k := &Keeper{manager: manager, written: make(chan struct{})}
	return k, k.addReconciler(cfg)
}

// newRotator is the issuer. It is told of no webhooks: it would put a new CA into the caBundle in place of the old one, and
// so cut off whoever still serves a certificate of that.
func newRotator(cfg Config) *rotator.CertRotator {
	host := cfg.Service + "." + cfg.Namespace + ".svc"
	return &rotator.CertRotator{
		SecretKey:              types.NamespacedName{Namespace: cfg.Namespace, Name: cfg.Secret},
		CertDir:                cfg.Dir,
		CAName:                 caName,
		CAOrganization:         caOrganization,
		DNSName:                host,
		ExtraDNSNames:          []string{host + ".cluster.local", "localhost"},
		ExtKeyUsages:           &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsReady:                make(chan struct{}),
		CaCertDuration:         caLifetime,
		ServerCertDuration:     servingLifetime,
		LookaheadInterval:      renewBefore,
		RotationCheckFrequency: renewCheck,
	}
}

func kinds() (*runtime.Scheme, error) {
	out := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(out), apiregistrationv1.AddToScheme(out)); err != nil {
		return nil, fmt.Errorf("building the scheme of the serving certificate: %w", err)
	}
	return out, nil
}

// Run keeps the certificate until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	if err := k.manager.Start(ctx); err != nil {
		return fmt.Errorf("keeping the serving certificate: %w (%s)", err, hint)
	}
	return nil
}

// Wait waits until there is a certificate to serve.
func (k *Keeper) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, firstPairLimit)
	defer cancel()
	select {
	case <-k.written:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for a serving certificate: %w (%s)", ctx.Err(), hint)
	}
}
