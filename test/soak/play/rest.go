package play

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/report"
	"github.com/altairalabs/omnia-sandboxes/test/soak/flat"
	"github.com/altairalabs/omnia-sandboxes/test/soak/plan"
)

const (
	// goneWithin is for the last sandboxes that were abandoned to go, after the idle timeout.
	goneWithin = plan.IdleTimeout + 2*framework.GoneTimeout
	// calmWithin is for connections that nobody uses to be closed, which Go does after 90 s.
	calmWithin = 4 * time.Minute
	lookEvery  = time.Second

	// What a server may have more of goroutines at the end than at rest before: a tenth, and in any case so many, as watches and
	// connections may have come to it that another had.
	backRatio = 1.10
	backSlack = 60
)

// kinds are of what a sandbox is made of, beside the claim.
func kinds() []client.ObjectList {
	return []client.ObjectList{&v1alpha1.SandboxClaimList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ServiceList{},
		&discoveryv1.EndpointSliceList{}, &networkingv1.NetworkPolicyList{}}
}

// left names all claims and their objects that there are in the namespace, the namespace's floor among them. Nothing else is in
// it.
func (s *Soak) left(ctx context.Context) ([]string, error) {
	var left []string
	for _, list := range kinds() {
		if err := s.Client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return nil, fmt.Errorf("listing %T: %w", list, err)
		}
		found, err := names(list)
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	return left, nil
}

// gone waits until nothing is left.
func (s *Soak) gone(ctx context.Context) error {
	left, err := s.waitGone(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("not gone within %s: %s", goneWithin, strings.Join(left, ", "))
	}
	return err
}

// waitGone waits until nothing is left, and gives what is when it has waited for long enough.
func (s *Soak) waitGone(ctx context.Context) (left []string, err error) {
	err = wait.PollUntilContextTimeout(ctx, lookEvery, goneWithin, true, func(ctx context.Context) (bool, error) {
		found, err := s.left(ctx)
		if err == nil {
			left = found
		}
		return err == nil && len(found) == 0, nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if wait.Interrupted(err) && len(left) > 0 {
		return left, nil
	}
	return left, err
}

// rest reads what servers hold before the load, once one of them leads.
func (s *Soak) rest(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, lookEvery, framework.FailoverTimeout, true, func(ctx context.Context) (bool, error) {
		s.atRest = map[bool]float64{}
		for _, source := range s.sources {
			values, leads, err := source.read(ctx, true)
			if err != nil {
				return false, err
			}
			s.atRest[leads] = max(s.atRest[leads], values[flat.Goroutines])
		}
		return s.atRest[true] > 0 && s.atRest[false] > 0, nil
	})
	if err != nil {
		return fmt.Errorf("reading servers at rest, of which one leads: %w", err)
	}
	if s.keysAtRest, err = s.etcd.keys(ctx); err != nil {
		return err
	}
	s.transitions, err = s.leaseTransitions(ctx)
	return err
}

// drain ends what stands, and gives what is to be said of the end: which claims were lost, what is left, and whether the servers
// hold no more than before.
func (s *Soak) drain(ctx context.Context) ([]report.Row, error) {
	s.say("the load has ended; all goes")
	lost, err := s.lost(ctx)
	if err != nil {
		return nil, err
	}
	for i := range plan.Standing {
		if err := s.standing.ReleaseSession(ctx, standingRuntime, standingSession(i)); err != nil {
			return nil, fmt.Errorf("releasing %s: %w", standingSession(i), err)
		}
	}
	left, err := s.waitGone(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := s.etcd.keys(ctx)
	if err != nil {
		return nil, err
	}
	now, err := s.leaseTransitions(ctx)
	if err != nil {
		return nil, err
	}
	s.changed = now - s.transitions
	s.say("waiting for the servers to be at rest")
	calm, err := s.calm(ctx)
	if err != nil {
		return nil, err
	}
	rows := []report.Row{
		{What: "claims that only stood", Measure: "lost", Value: float64(len(lost)), Target: report.AtMost(0), Note: strings.Join(lost, ", ")},
		{What: "claims and their objects", Measure: "left", Value: float64(len(left)), Target: report.AtMost(0), Note: strings.Join(left, ", ")},
		{What: "keys under the servers' prefix", Measure: "more than at rest", Value: float64(keys - s.keysAtRest), Target: report.AtMost(0)},
	}
	return append(rows, calm...), nil
}

// lost names the standing claims that are not Bound any more, or gone, or another by now.
func (s *Soak) lost(ctx context.Context) ([]string, error) {
	there, err := s.Sandbox.SandboxV1alpha1().SandboxClaims(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	bound := map[types.UID]bool{}
	for i := range there.Items {
		bound[there.Items[i].UID] = framework.Bound(&there.Items[i])
	}
	var lost []string
	for uid, name := range s.stood {
		if !bound[uid] {
			lost = append(lost, name)
		}
	}
	slices.Sort(lost)
	return lost, nil
}

// calm waits until each server has no more goroutines than at rest, within bounds, and gives a row of each.
func (s *Soak) calm(ctx context.Context) (rows []report.Row, err error) {
	last := errors.New("nothing read yet")
	err = wait.PollUntilContextTimeout(ctx, lookEvery, calmWithin, true, func(ctx context.Context) (bool, error) {
		rows, last = s.goroutines(ctx)
		return last == nil && !slices.ContainsFunc(rows, func(r report.Row) bool { within, _ := r.Within(); return !within }), nil
	})
	if ctx.Err() != nil || last != nil {
		return nil, errors.Join(err, last)
	}
	return rows, nil
}

// goroutines gives a row of each server, against what one of its role had at rest.
func (s *Soak) goroutines(ctx context.Context) ([]report.Row, error) {
	var rows []report.Row
	for i, source := range s.sources {
		values, leads, err := source.read(ctx, false)
		if err != nil {
			return nil, err
		}
		role := "follows"
		if leads {
			role = "leads"
		}
		before := s.atRest[leads]
		rows = append(rows, report.Row{What: fmt.Sprintf("server %d, %s, at rest again", i, role), Measure: "goroutines", Value: values[flat.Goroutines],
			Floor: ptr.To(before), FloorName: "before the load", Target: report.AtMost(math.Ceil(1000*max(backRatio, 1+backSlack/before)) / 1000)})
	}
	return rows, nil
}
