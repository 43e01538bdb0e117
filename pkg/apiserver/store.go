package apiserver

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/altairalabs/omnia-sandboxes/pkg/store"
)

// StoreOptions say which store is the server's.
type StoreOptions struct {
	// AcceptNew takes what etcd holds for the server's store, where the host cluster knows another.
	AcceptNew bool
	// Interval is how often the store is looked at. It has no flag: what was lost within it is not noticed, and it is part of
	// what the server promises.
	Interval time.Duration
}

func (o *StoreOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.AcceptNew, "accept-new-store", o.AcceptNew, "Serve what etcd holds also where the server's store was emptied, set back or replaced, which it else refuses with StoreEmpty, StoreOlder or StoreForeign. Sandboxes whose claims are not in it are removed. Take the flag off again once the server serves.")
}

// openStore finds the store that may be served, and has the group keep it.
func (o *Options) openStore(ctx context.Context, group *errgroup.Group) (*store.Keeper, error) {
	config, err := o.hostConfig()
	if err != nil {
		return nil, err
	}
	host, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	etcd := o.Generic.Etcd.StorageConfig
	keeper, err := store.Open(ctx, store.Config{
		Etcd: etcd.Transport, Prefix: etcd.Prefix, Host: host, Namespace: o.Namespace,
		Accept: o.Store.AcceptNew, Interval: o.Store.Interval, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, err
	}
	group.Go(func() error { return keeper.Run(ctx) })
	return keeper, nil
}

// hostConfig leads to the host cluster.
func (o *Options) hostConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Generic.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, fmt.Errorf("finding the host cluster: %w", err)
	}
	return config, nil
}
