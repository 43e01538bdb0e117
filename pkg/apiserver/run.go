package apiserver

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/controller"
	"github.com/altairalabs/omnia-sandboxes/pkg/etcd"
	"github.com/altairalabs/omnia-sandboxes/pkg/servingcert"
	"github.com/altairalabs/omnia-sandboxes/pkg/store"
)

// apiServiceName is the APIService that sends our group's requests here.
var apiServiceName = v1alpha1.SchemeGroupVersion.Version + "." + v1alpha1.SchemeGroupVersion.Group

// Run serves until ctx ends, or until storage, the serving certificate or serving fails, or another store is found in the
// place of the server's. It returns when everything has stopped.
func (o *Options) Run(ctx context.Context) error {
	log.SetLogger(klog.Background())
	// Storage outlives the server that writes to it, so it starts first, stops last, and has a context of its own.
	storageFailed := make(<-chan error)
	if o.embedded() {
		storage, err := etcd.Start(ctx, etcd.Config{Dir: o.EmbeddedEtcdDir, QuotaBytes: o.EmbeddedEtcdQuotaBytes})
		if err != nil {
			return err
		}
		defer storage.Stop()
		storageFailed = storage.Failed()
		o.Generic.Etcd.StorageConfig.Transport.ServerList = []string{storage.Endpoint()}
	}
	traces, err := o.startTraces(ctx)
	if err != nil {
		return err
	}
	defer traces.stop(flushTimeout)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return failedStorage(ctx, storageFailed) })
	group.Go(func() error {
		keeper, err := o.openStore(ctx, group)
		if err != nil {
			return err
		}
		if err := o.keepServingCert(ctx, group); err != nil {
			return err
		}
		return o.serve(ctx, group, traces, keeper)
	})
	return group.Wait()
}

func failedStorage(ctx context.Context, failed <-chan error) error {
	select {
	case err := <-failed:
		return fmt.Errorf("the embedded etcd ended: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// keepServingCert starts to keep the serving certificate, if it is the server's own to keep, and waits until there is one.
func (o *Options) keepServingCert(ctx context.Context, group *errgroup.Group) error {
	if o.ServingCertSecret == "" {
		return nil
	}
	host, err := o.hostConfig()
	if err != nil {
		return err
	}
	keeper, err := servingcert.New(ctx, servingcert.Config{
		Host: host, Namespace: o.Namespace, Secret: o.ServingCertSecret, Service: o.ServiceName, APIService: apiServiceName,
		Dir: o.Generic.SecureServing.ServerCert.CertDirectory, Clock: clock.RealClock{},
	})
	if err != nil {
		return err
	}
	group.Go(func() error { return keeper.Run(ctx) })
	return keeper.Wait(ctx)
}

// serve builds the server and runs its parts in the group.
func (o *Options) serve(ctx context.Context, group *errgroup.Group, traces *traces, keeper *store.Keeper) error {
	config, err := o.Config(traces)
	if err != nil {
		return err
	}
	server, err := config.New()
	if err != nil {
		return err
	}
	host := rest.CopyConfig(config.Generic.ClientConfig)
	host.QPS, host.Burst = o.HostQPS, o.HostBurst
	resolver, err := o.resolver()
	if err != nil {
		return err
	}
	controllers := controller.Config{
		Host: host, Loopback: config.Generic.LoopbackClientConfig, Namespace: o.Namespace, Election: o.Election,
		Resolver: resolver, Confirm: keeper.Confirm, Clock: config.Clock,
	}
	traces.applyToControllers(&controllers)
	return server.run(ctx, group, controllers)
}

// run runs the server's parts in the group: the end of one that is needed to serve ends the others. Once ctx ends, the
// controllers end at once, so that another replica takes over, while the API serves on through its shutdown delay with
// all that it serves from. Those who wait are told to ask again when the delay is over, and only then is nothing accepted
// any more.
func (s *Server) run(ctx context.Context, group *errgroup.Group, controllers controller.Config) error {
	begun := make(chan struct{})
	if err := s.Generic.AddPostStartHook("sandbox-controllers", func(genericapiserver.PostStartHookContext) error {
		close(begun)
		return nil
	}); err != nil {
		return fmt.Errorf("adding a start hook: %w", err)
	}
	// Hooks begin with the delay, not after it; nothing is refused before they have ended.
	if err := s.Generic.AddPreShutdownHook("sandbox-waiters", func() error {
		time.Sleep(s.Generic.ShutdownDelayDuration)
		s.waiters.Close()
		return nil
	}); err != nil {
		return fmt.Errorf("adding a shutdown hook: %w", err)
	}
	serving, served := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error {
		defer served()
		return s.Generic.PrepareRun().RunWithContext(ctx)
	})
	group.Go(func() error { return s.neighbours.Start(serving) })
	group.Go(func() error { s.waiters.Run(serving); return nil })
	group.Go(func() error {
		// The controllers reach our own group by the loopback, which answers once the server serves.
		select {
		case <-begun:
			return controller.Run(ctx, controllers)
		case <-ctx.Done():
			return nil
		}
	})
	return nil
}
