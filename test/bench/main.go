// Command bench measures an acquire beside the floor of the same path: what the cluster itself takes for the same
// objects, or for reading the same claim. Both are measured in one run, in turns, because a machine's times differ more
// between runs than the two differ from each other. It refuses to judge: it prints figures and ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

func main() {
	rounds := flag.Int("rounds", 20, "how often each thing is measured")
	fake := flag.Bool("fake", false, "run on fake nodes, where no container starts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *rounds, *fake)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const (
	runtimeName = "bench"
	warmUp      = 3 // rounds that are left out
)

// bench is a namespace with a runtime and a class, on a server of its own.
type bench struct {
	*framework.Cluster
	namespace string
	class     *v1alpha1.SandboxClassSpec
	agent     versioned.Interface
}

func run(ctx context.Context, rounds int, fake bool) (err error) {
	cluster, err := framework.Open()
	if err != nil {
		return err
	}
	if err := cluster.LoadSampleImages(ctx); err != nil {
		return err
	}
	servers, err := cluster.StartServers(ctx, framework.ServerOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	b, err := prepare(ctx, cluster, fake)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, b.Kube.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), b.namespace, metav1.DeleteOptions{}))
	}()
	where := "on the real node"
	if fake {
		where = "on a fake node"
	}
	if err := inTurns(ctx, "a new sandbox to Bound, "+where, rounds,
		path{"acquire", b.acquireNew}, path{"bare Deployment+Service+NetworkPolicy", b.bare}); err != nil {
		return err
	}
	name, err := b.standing(ctx)
	if err != nil {
		return err
	}
	if err := inTurns(ctx, "a Bound sandbox", 10*rounds,
		path{"acquire", func(ctx context.Context, _ int) (time.Duration, error) { return b.acquireBound(ctx) }},
		path{"GET of its claim", func(ctx context.Context, _ int) (time.Duration, error) { return b.getClaim(ctx, name) }}); err != nil {
		return err
	}
	return b.waiting(ctx, 5*rounds, name)
}

// path is something that takes time; round tells its calls apart.
type path struct {
	name string
	take func(ctx context.Context, round int) (time.Duration, error)
}

// inTurns measures a path and its floor alternately and prints both, with the ratio of their quantiles.
func inTurns(ctx context.Context, title string, rounds int, ours, floor path) error {
	var took, floorTook []time.Duration
	for i := range rounds + warmUp {
		a, err := ours.take(ctx, i)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", title, ours.name, err)
		}
		b, err := floor.take(ctx, i)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", title, floor.name, err)
		}
		if i >= warmUp {
			took, floorTook = append(took, a), append(floorTook, b)
		}
	}
	show(title, measured{ours.name, took}, measured{floor.name, floorTook})
	return nil
}

// measured is how long each call of something took.
type measured struct {
	name string
	took []time.Duration
}

// show prints two things that were measured in turns, with the ratio of their quantiles.
func show(title string, ours, floor measured) {
	fmt.Printf("%s (%d each, in turns)\n", title, len(ours.took))
	for _, m := range []measured{ours, floor} {
		fmt.Printf("  %-40s p50 %10s   p90 %10s\n", m.name, at(m.took, 50), at(m.took, 90))
	}
	fmt.Printf("  %-40s p50 %10.2f   p90 %10.2f\n\n", "ratio", ratio(ours.took, floor.took, 50), ratio(ours.took, floor.took, 90))
}

func at(d []time.Duration, percent int) time.Duration {
	slices.Sort(d)
	return d[min(len(d)*percent/100, len(d)-1)].Round(10 * time.Microsecond)
}

func ratio(a, b []time.Duration, percent int) float64 {
	return float64(at(a, percent)) / float64(at(b, percent))
}

func prepare(ctx context.Context, c *framework.Cluster, fake bool) (*bench, error) {
	b := &bench{Cluster: c}
	namespace, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bench-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	b.namespace = namespace.Name
	class := framework.MakeClass(b.namespace).OnRealNodes()
	if fake {
		class.OnFakeNodes()
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: runtimeName + "-facade"}}
	never := framework.MakeClass("nowhere").With(func(s *v1alpha1.SandboxClassSpec) { s.NodeSelector = map[string]string{"sandbox.omnia/nowhere": ""} })
	for _, object := range []framework.Object{
		class.In(b.namespace), never.In(b.namespace), account,
		framework.MakeToolRegistry("tools", b.namespace).SandboxOf("shell", v1alpha1.SandboxClassKind, b.namespace).
			SandboxOf("nowhere", v1alpha1.SandboxClassKind, "nowhere").Obj(),
		framework.MakeRuntime(runtimeName, b.namespace).ToolRegistry("tools").Obj(),
	} {
		if err := c.Client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("making %T: %w", object, err)
		}
	}
	b.class = ptr.To(class.In(b.namespace).Spec)
	config, err := c.AsServiceAccount(ctx, b.namespace, account.Name)
	if err != nil {
		return nil, err
	}
	b.agent, err = versioned.NewForConfig(config)
	return b, err
}
