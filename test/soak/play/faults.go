package play

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/soak/flat"
	"github.com/altairalabs/omnia-sandboxes/test/soak/plan"
)

// befall has the faults come at their times, one after the other: at most one server is down at a time.
func (s *Soak) befall(ctx context.Context) error {
	for _, f := range s.plan.Faults {
		if err := pause(ctx, f.At-time.Since(s.began)); err != nil {
			return err
		}
		at := time.Since(s.began)
		s.mu.Lock()
		s.record.Faults = append(s.record.Faults, flat.Fault{At: at, Kind: string(f.Kind)})
		s.mu.Unlock()
		befalls := s.restart
		if f.Kind == plan.LeaseTaken {
			befalls = s.takeLease
		}
		if err := befalls(ctx, f); err != nil {
			return fmt.Errorf("%s, %s after the begin: %w", f.Kind, at.Round(time.Second), err)
		}
	}
	return nil
}

// restart ends a server and starts it again. The aggregator hears of it as of a pod's end: of one that is told to end as it
// ends, of one that is killed once it has.
func (s *Soak) restart(ctx context.Context, f plan.Fault) error {
	server := s.servers.List[f.Server]
	s.say("server %d: %s, down for %s", f.Server, f.Kind, f.Down.Round(time.Second))
	s.lives[f.Server].Add(1)
	var ends errgroup.Group
	if f.Kind == plan.Killed {
		if err := server.Kill(); err != nil {
			return err
		}
	} else {
		ends.Go(server.Stop)
	}
	ends.Go(func() error { return server.RemoveEndpoint(ctx) })
	if err := ends.Wait(); err != nil {
		return err
	}
	if err := pause(ctx, f.Down); err != nil {
		return err
	}
	if err := server.Start(ctx); err != nil {
		return err
	}
	s.lives[f.Server].Add(1)
	return server.AddEndpoint(ctx)
}

// takeLease has somebody else hold the Lease until it runs out, so that the leader must not go on.
func (s *Soak) takeLease(ctx context.Context, _ plan.Fault) error {
	leases := s.Kube.CoordinationV1().Leases(framework.SystemNamespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease, err := leases.Get(ctx, framework.ServerName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s.say("the Lease is taken from %q", ptr.Deref(lease.Spec.HolderIdentity, ""))
		now := metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.AcquireTime, lease.Spec.RenewTime = ptr.To("soak"), &now, &now
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
}

// leaseTransitions is how often the Lease has changed hands.
func (s *Soak) leaseTransitions(ctx context.Context) (int32, error) {
	lease, err := s.Kube.CoordinationV1().Leases(framework.SystemNamespace).Get(ctx, framework.ServerName, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("reading the Lease: %w", err)
	}
	return ptr.Deref(lease.Spec.LeaseTransitions, 0), nil
}
