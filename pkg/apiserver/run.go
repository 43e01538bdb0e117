package apiserver

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/altairalabs/omnia-sandboxes/pkg/controller"
	"github.com/altairalabs/omnia-sandboxes/pkg/etcd"
)

// Run serves until ctx ends, or until storage or serving fails. It returns when everything has stopped.
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
	config, err := o.Config()
	if err != nil {
		return err
	}
	server, err := config.New()
	if err != nil {
		return err
	}
	return server.run(ctx, storageFailed, controller.Config{
		Host: hostConfig(config.Generic.ClientConfig, o), Loopback: config.Generic.LoopbackClientConfig,
		LeaderElectionNamespace: o.LeaderElectionNamespace, Clock: config.Clock,
	})
}

func hostConfig(config *rest.Config, o *Options) *rest.Config {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst = o.HostQPS, o.HostBurst
	return own
}

// run runs the parts together: the end of one that is needed to serve ends the others.
func (s *Server) run(ctx context.Context, storageFailed <-chan error, controllers controller.Config) error {
	serving := make(chan struct{})
	if err := s.Generic.AddPostStartHook("sandbox-controllers", func(genericapiserver.PostStartHookContext) error {
		close(serving)
		return nil
	}); err != nil {
		return fmt.Errorf("adding a start hook: %w", err)
	}
	if err := s.Generic.AddPreShutdownHook("sandbox-waiters", func() error {
		s.waiters.Close()
		return nil
	}); err != nil {
		return fmt.Errorf("adding a shutdown hook: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Generic.PrepareRun().RunWithContext(ctx) })
	group.Go(func() error { return s.neighbours.Start(ctx) })
	group.Go(func() error { s.waiters.Run(ctx); return nil })
	group.Go(func() error {
		// The controllers reach our own group by the loopback, which answers once the server serves.
		select {
		case <-serving:
			return controller.Run(ctx, controllers)
		case <-ctx.Done():
			return nil
		}
	})
	group.Go(func() error {
		select {
		case err := <-storageFailed:
			return fmt.Errorf("the embedded etcd ended: %w", err)
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}
