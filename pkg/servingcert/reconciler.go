package servingcert

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// caKey is the Secret's key of the CA, as cert-controller names it.
	caKey = "ca.crt"
	// settle is how long a CA stands in the caBundle before a certificate of it is served in another's place: every
	// kube-apiserver has to hear of it by its watch first. The old certificate is as good meanwhile.
	settle = 5 * time.Second

	fieldOwner = "sandbox-apiserver"
)

// reconciler brings what the Secret holds to the caBundle first, and then to the files.
type reconciler struct {
	client     client.Client
	clock      clock.Clock
	secret     types.NamespacedName
	apiService string
	dir        Files
	onWritten  func()

	// trustedSince is when this replica first saw the caBundle trust the pair that waits to be served.
	trustedSince time.Time
	waiting      pair
}

var _ reconcile.Reconciler = &reconciler{}

func (k *Keeper) addReconciler(cfg Config) error {
	r := &reconciler{
		client: k.manager.GetClient(), clock: cfg.Clock, apiService: cfg.APIService, dir: k.dir,
		secret:    types.NamespacedName{Namespace: cfg.Namespace, Name: cfg.Secret},
		onWritten: func() { k.writtenOnce.Do(func() { close(k.written) }) },
	}
	// Both objects lead to the one request: there is one certificate.
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: r.secret}}
	})
	err := ctrl.NewControllerManagedBy(k.manager).Named("serving-certificate").
		Watches(&corev1.Secret{}, one).
		Watches(&apiregistrationv1.APIService{}, one).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the keeper of the serving certificate: %w", err)
	}
	return nil
}

// Reconcile makes the caBundle trust the Secret's CA, and then serves the Secret's pair.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	if err := r.client.Get(ctx, r.secret, &secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // what is served stays
	}
	next := pair{cert: secret.Data[corev1.TLSCertKey], key: secret.Data[corev1.TLSPrivateKeyKey]}
	ca := secret.Data[caKey]
	if next.empty() || !trusted(ca, next.cert, r.clock.Now()) {
		return reconcile.Result{}, nil // not issued yet, or being renewed: the Secret will change
	}
	caBundle, recheck, err := r.trust(ctx, ca)
	if err != nil {
		return reconcile.Result{}, err
	}
	wait, err := r.serve(ctx, next, caBundle)
	if wait > 0 && (recheck == 0 || wait < recheck) {
		recheck = wait
	}
	return reconcile.Result{RequeueAfter: recheck}, err
}

// trust puts the CA into the caBundle and gives the caBundle as it stands. recheck is when it must be looked at again.
// Without an APIService there is nobody to be trusted by: then the CA alone is given.
func (r *reconciler) trust(ctx context.Context, ca []byte) (caBundle []byte, recheck time.Duration, err error) {
	var service apiregistrationv1.APIService
	if err := r.client.Get(ctx, types.NamespacedName{Name: r.apiService}, &service); err != nil {
		if apierrors.IsNotFound(err) {
			return ca, 0, nil
		}
		return nil, 0, fmt.Errorf("reading APIService %s: %w", r.apiService, err)
	}
	caBundle, recheck, err = bundle(service.Spec.CABundle, ca, r.clock.Now())
	if err != nil {
		return nil, 0, err
	}
	if bytes.Equal(caBundle, service.Spec.CABundle) {
		return caBundle, recheck, nil
	}
	before := service.DeepCopy()
	service.Spec.CABundle = caBundle
	service.Spec.InsecureSkipTLSVerify = false
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, &service, patch, client.FieldOwner(fieldOwner)); err != nil {
		return nil, 0, fmt.Errorf("keeping the caBundle of APIService %s: %w", r.apiService, err)
	}
	klog.FromContext(ctx).Info("The APIService's caBundle was changed", "apiService", r.apiService, "predecessorsUntil", r.clock.Now().Add(recheck))
	return caBundle, recheck, nil
}

// serve writes the pair for the server to reload: at once if what is served is not trusted anyway, else once the CA has
// settled. It gives how long that takes.
func (r *reconciler) serve(ctx context.Context, next pair, caBundle []byte) (time.Duration, error) {
	now := r.clock.Now()
	served, err := r.dir.read()
	if err != nil {
		return 0, err
	}
	if served.equal(next) {
		observe(next)
		r.onWritten()
		return 0, nil
	}
	if !served.empty() && trusted(caBundle, served.cert, now) {
		r.onWritten()
		if !r.waiting.equal(next) {
			r.waiting, r.trustedSince = next, now
		}
		if left := r.trustedSince.Add(settle).Sub(now); left > 0 {
			return left, nil
		}
	}
	if err := r.dir.write(next); err != nil {
		return 0, err
	}
	r.waiting = pair{}
	observe(next)
	klog.FromContext(ctx).Info("A serving certificate was put into place", "secret", klog.KRef(r.secret.Namespace, r.secret.Name))
	r.onWritten()
	return 0, nil
}
