package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// DefaultInterval is how often the store is looked at, and its generation advanced.
	DefaultInterval = 30 * time.Second

	// startTries and startDelay bound how long a server that starts waits for etcd and for the host cluster.
	startTries = 20
	startDelay = 3 * time.Second
	// rounds bounds how often others may be faster at what a server that starts is about: each is done then.
	rounds = 10
)

// Config says which store to keep.
type Config struct {
	// Etcd and Prefix are where the claims are. The mark stands beside them.
	Etcd   storagebackend.TransportConfig
	Prefix string
	// Host is the cluster that holds the ConfigMap, in Namespace, the server's own.
	Host      kubernetes.Interface
	Namespace string
	// Accept takes for the store what etcd holds, whatever the ConfigMap knows.
	Accept bool
	// Interval is how often the store is looked at; 0 is DefaultInterval.
	Interval time.Duration
	// Clock tells when.
	Clock clock.WithTicker
}

// Keeper knows the store that is served, and notices when it is no longer there.
type Keeper struct {
	etcd     *etcdMark
	host     *hostMark
	clock    clock.WithTicker
	interval time.Duration
	accept   bool

	// lost ends, with an *Error for its cause, once another store was found in the place of this one.
	lost context.Context
	lose context.CancelCauseFunc

	// advanced is the generation at the last look. Whoever finds it unchanged at the next one advances it: so there is one
	// advance in an interval, however many replicas look, and nobody's clock is compared with another's.
	advanced int64

	mu   sync.Mutex
	seen Mark // the latest mark that was seen here
}

// Open finds the store that the server may serve, and waits for etcd and the host cluster if it must. An *Error says that
// what etcd holds must not be served.
func Open(ctx context.Context, cfg Config) (*Keeper, error) {
	etcd, err := openEtcd(cfg.Etcd, cfg.Prefix)
	if err != nil {
		return nil, err
	}
	k := &Keeper{
		etcd: etcd, host: &hostMark{client: cfg.Host, namespace: cfg.Namespace, clock: cfg.Clock},
		clock: cfg.Clock, interval: cfg.Interval, accept: cfg.Accept,
	}
	if k.interval == 0 {
		k.interval = DefaultInterval
	}
	k.lost, k.lose = context.WithCancelCause(context.Background())
	for try := 1; ; try++ {
		err := k.begin(ctx)
		if err == nil {
			return k, nil
		}
		if try == startTries || final(err) {
			return nil, errors.Join(err, etcd.client.Close())
		}
		klog.FromContext(ctx).Error(err, "The store cannot be looked at yet; trying again")
		select {
		case <-k.clock.After(startDelay):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), etcd.client.Close())
		}
	}
}

// final says whether it is of no use to try again.
func final(err error) bool {
	_, refused := errors.AsType[*Error](err)
	return refused || errors.Is(err, errUnreadable) || apierrors.IsForbidden(err)
}

// begin looks and does what is due until etcd and the ConfigMap agree. Every write is conditional: where another replica
// was faster, what is due is decided anew.
func (k *Keeper) begin(ctx context.Context) error {
	for range rounds {
		known, err := k.host.read(ctx)
		if err != nil {
			return err
		}
		now, err := k.etcd.read(ctx)
		if err != nil {
			return err
		}
		switch act, reason := decide(input{etcd: now.mark, configMap: known.mark, accept: k.accept}); act {
		case serve:
			k.began(ctx, *now.mark)
			return nil
		case begin:
			err = k.start(ctx, now)
		case record:
			err = k.record(ctx, known, *now.mark)
		case replace:
			err = k.replace(ctx, now, known, reason)
		case refuse:
			refused := k.wrong(now.mark, *known.mark, reason)
			k.host.tell(ctx, corev1.EventTypeWarning, reason, refused.Error())
			return refused
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("finding the store: others changed its mark %d times while it was looked at", rounds)
}

func (k *Keeper) began(ctx context.Context, mark Mark) {
	k.seen, k.advanced = mark, mark.Generation
	confirmed.Set(float64(k.clock.Now().Unix()))
	log := klog.FromContext(ctx)
	log.Info("Serving the store", "id", mark.ID, "generation", mark.Generation)
	if k.accept {
		log.Info("Take --accept-new-store off again: with it, a store that is lost is taken for an empty one at the next start")
	}
}

// start gives a store without a mark one.
func (k *Keeper) start(ctx context.Context, now inEtcd) error {
	mark := Mark{ID: string(uuid.NewUUID()), Generation: 1}
	done, err := k.etcd.write(ctx, now, mark)
	if done {
		klog.FromContext(ctx).Info("The store had no mark, nor was one known: it was given one", "id", mark.ID)
	}
	return err
}

// record has the ConfigMap know etcd's mark.
func (k *Keeper) record(ctx context.Context, known inHost, mark Mark) error {
	done, err := k.host.write(ctx, known, mark)
	if done && known.mark == nil {
		klog.FromContext(ctx).Info("There was no ConfigMap of the store: it was written", "configMap", k.host.name(), "id", mark.ID)
	}
	return err
}

// replace takes for the store what etcd holds, by a new id: whoever still serves by the old one notices.
func (k *Keeper) replace(ctx context.Context, now inEtcd, known inHost, reason Reason) error {
	mark := Mark{ID: string(uuid.NewUUID()), Generation: 1, Replaces: known.mark.ID}
	done, err := k.etcd.write(ctx, now, mark)
	if !done {
		return err
	}
	klog.FromContext(ctx).Info("What etcd holds was accepted as the server's store", "id", mark.ID, "replaces", known.mark.ID, "reason", reason)
	k.host.tell(ctx, corev1.EventTypeNormal, ReasonAccepted, fmt.Sprintf(
		"What etcd holds at %s was accepted as the server's store, by --accept-new-store, in place of store %s at generation %d (%s): it is store %s now. Take the flag off again.",
		k.etcd.key, known.mark.ID, known.mark.Generation, reason, mark.ID))
	return nil
}

// wrong says that what etcd holds is not the store that is known.
func (k *Keeper) wrong(etcd *Mark, known Mark, reason Reason) *Error {
	return &Error{Reason: reason, Etcd: etcd, Known: known, Key: k.etcd.key, ConfigMap: k.host.name()}
}

// Run looks at the store again and again, until ctx ends or another store is found in its place: that is its error, an
// *Error. What cannot be read is tried again.
func (k *Keeper) Run(ctx context.Context) error {
	defer func() { _ = k.etcd.client.Close() }()
	ticker := k.clock.NewTicker(k.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			if err := k.look(ctx); err != nil && ctx.Err() == nil && k.lost.Err() == nil {
				klog.FromContext(ctx).Error(err, "The store could not be looked at; trying again")
			}
		case <-k.lost.Done():
			err := context.Cause(k.lost)
			if wrong, ok := errors.AsType[*Error](err); ok {
				k.host.tell(ctx, corev1.EventTypeWarning, wrong.Reason, wrong.Error())
			}
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// look confirms the store, advances its generation if nobody has since the last look, and has the ConfigMap know it.
func (k *Keeper) look(ctx context.Context) error {
	known, hostErr := k.host.read(ctx)
	now, err := k.confirm(ctx)
	if err := errors.Join(err, hostErr); err != nil {
		return err
	}
	if act, reason := decide(input{etcd: now.mark, configMap: known.mark}); act == refuse {
		err := k.wrong(now.mark, *known.mark, reason)
		k.lose(err)
		return err
	}
	if now.mark.Generation == k.advanced {
		next := *now.mark
		next.Generation++
		done, err := k.etcd.write(ctx, now, next)
		if err != nil || !done {
			return err
		}
		k.saw(next)
		now.mark = &next
	}
	k.advanced = now.mark.Generation
	if known.mark == nil || *known.mark != *now.mark {
		if err := k.record(ctx, known, *now.mark); err != nil {
			return err
		}
	}
	confirmed.Set(float64(k.clock.Now().Unix()))
	return nil
}

// Confirm asks etcd, once and by a quorum, whether the store is still the one that this server serves, and not behind what
// was seen of it here. Ask it before anything is removed because a claim is not there. Where it finds another store, this
// is its error and ends Run.
func (k *Keeper) Confirm(ctx context.Context) error {
	_, err := k.confirm(ctx)
	return err
}

func (k *Keeper) confirm(ctx context.Context) (inEtcd, error) {
	if err := context.Cause(k.lost); err != nil {
		return inEtcd{}, err
	}
	known := k.known() // before the read, which is then not older
	now, err := k.etcd.read(ctx)
	if err != nil {
		return inEtcd{}, err
	}
	if reason := differs(now.mark, known); reason != "" {
		err := k.wrong(now.mark, known, reason)
		k.lose(err)
		return inEtcd{}, err
	}
	k.saw(*now.mark)
	return now, nil
}

func (k *Keeper) known() Mark {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen
}

func (k *Keeper) saw(mark Mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if mark.Generation > k.seen.Generation {
		k.seen = mark
	}
}
