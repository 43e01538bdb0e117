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
	// overlap is how long predecessors stand beside a CA in the caBundle, from when a replica first saw it there in front:
	// long enough for every replica to serve a certificate of it. A replica that starts begins to count anew.
	overlap = time.Hour
	// settle is how long a CA stands in the caBundle before a certificate of it is served in another's place: every
	// kube-apiserver has to hear of it by its watch first, also one that has just lost it. The old certificate is as good
	// meanwhile.
	settle = time.Minute
	// recheck is when a Secret is looked at again that holds nothing to serve yet, for instance because this node's clock is
	// behind that of the replica that issued it.
	recheck = time.Minute

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

	// first is the CA that this replica saw in front of the caBundle, and since when.
	first      []byte
	firstSince time.Time
	// waiting is the pair that waits to be served, and since when the caBundle has been seen to trust it.
	waiting      pair
	waitingSince time.Time
}

var _ reconcile.Reconciler = &reconciler{}

func (k *Keeper) addReconciler(cfg Config) error {
	r := &reconciler{
		client: k.manager.GetClient(), clock: cfg.Clock, apiService: cfg.APIService, dir: Files(cfg.Dir),
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
		return reconcile.Result{}, client.IgnoreNotFound(err) // what is served stays, until there is a Secret again
	}
	next := pair{cert: secret.Data[corev1.TLSCertKey], key: secret.Data[corev1.TLSPrivateKeyKey]}
	ca := secret.Data[caKey]
	if !next.usable() || !trusted(ca, next.cert, r.clock.Now()) {
		klog.FromContext(ctx).V(2).Info("The Secret holds no certificate that is valid now", "secret", klog.KRef(r.secret.Namespace, r.secret.Name))
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	caBundle, forget, err := r.trust(ctx, ca)
	if err != nil {
		return reconcile.Result{}, err
	}
	wait, err := r.serve(ctx, next, ca, caBundle)
	return reconcile.Result{RequeueAfter: sooner(wait, forget)}, err
}

// sooner is the smaller of two waits, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// trust puts the CA in front of the caBundle and gives the caBundle as it stands, and when its predecessors must go; 0 if
// there are none. Without an APIService there is nobody to be trusted by: then the CA alone is given.
func (r *reconciler) trust(ctx context.Context, ca []byte) (caBundle []byte, forget time.Duration, err error) {
	var service apiregistrationv1.APIService
	if err := r.client.Get(ctx, types.NamespacedName{Name: r.apiService}, &service); err != nil {
		if apierrors.IsNotFound(err) {
			return ca, 0, nil
		}
		return nil, 0, fmt.Errorf("reading APIService %s: %w", r.apiService, err)
	}
	now, standing := r.clock.Now(), service.Spec.CABundle
	// A CA that is put in front counts from now, however old it is: a restored Secret's may be older than what stands.
	if !bytes.Equal(r.first, ca) || !standsFirst(standing, ca) {
		r.first, r.firstSince = ca, now
	}
	forget = r.firstSince.Add(overlap).Sub(now)
	caBundle, alone, err := bundle(standing, ca, forget > 0, now)
	if err != nil {
		return nil, 0, err
	}
	if alone {
		forget = 0
	}
	if bytes.Equal(caBundle, standing) && !service.Spec.InsecureSkipTLSVerify {
		return caBundle, forget, nil
	}
	before := service.DeepCopy()
	service.Spec.CABundle, service.Spec.InsecureSkipTLSVerify = caBundle, false
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, &service, patch, client.FieldOwner(fieldOwner)); err != nil {
		return nil, 0, fmt.Errorf("keeping the caBundle of APIService %s: %w", r.apiService, err)
	}
	r.waiting = pair{} // the wait begins anew: kube-apiservers have yet to hear of this bundle
	klog.FromContext(ctx).Info("The APIService's caBundle was changed", "apiService", r.apiService, "predecessors", !alone)
	return caBundle, forget, nil
}

// serve writes the pair for the server to reload: at once if what is served is of the same CA, or not trusted anyway, else
// once the CA has settled. It gives how long that takes.
func (r *reconciler) serve(ctx context.Context, next pair, ca, caBundle []byte) (time.Duration, error) {
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
	if served.usable() && trusted(caBundle, served.cert, now) && !trusted(ca, served.cert, now) {
		r.onWritten()
		if !r.waiting.equal(next) {
			r.waiting, r.waitingSince = next, now
		}
		if left := r.waitingSince.Add(settle).Sub(now); left > 0 {
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
