// Package isolation proves by attack what a sandbox cannot do: an attacker runs in a real pod, and what it tries must fail,
// while the same attempt succeeds where a class or the test allows it, so that each check can fail. It prints a table of
// what was promised, tried and found. It refuses to take an object's word for what its fields do.
package isolation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	// outsideUDP and outsideDNS are ports of the outside, beside 80.
	outsideUDP, outsideDNS = "9", "53"
	// mark is the label and the taint of the real node that a test puts there, and takes away.
	mark = "sandbox.omnia/isolation"

	systemNamespace = "kube-system"
	resolverName    = "isolation-resolver"
)

// registryPorts are where the outside is a registry, of which nothing can be had: one for each test, which hears by it who
// was asked.
var registryPorts = []string{"5001", "5002", "5003"}

var shared struct {
	cluster *framework.Cluster
	outside *framework.Outside
	// resolver is the pod that the cluster's resolver is here, and its Service's address.
	resolver   *corev1.Pod
	resolverIP string
	// prepared is why the stage could not be set.
	prepared error

	rows table
}

func TestMain(m *testing.M) {
	code := framework.Main(m, framework.ServerOptions{Storage: framework.EmbeddedEtcd}, func(c *framework.Cluster, _ *framework.Servers) {
		shared.cluster, shared.prepared = c, prepare(context.Background(), c)
	})
	shared.rows.print(os.Stdout)
	if err := strike(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "clearing the stage:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// prepare sets the stage: the attacker's image on the node, the host beyond the cluster, the cluster's resolver.
func prepare(ctx context.Context, c *framework.Cluster) error {
	if err := unmark(ctx, c); err != nil {
		return err
	}
	var aliases []string
	for _, port := range registryPorts {
		aliases = append(aliases, registryImage(port))
	}
	if err := c.LoadAttackerImage(ctx, aliases...); err != nil {
		return err
	}
	var err error
	shared.outside, err = c.OpenOutsideWith(ctx, framework.OutsideOptions{
		Package: framework.AttackerPackage, Metadata: true,
		Args: []string{"outside", "-control", controlSocket(c), "-http", "80," + strings.Join(registryPorts, ","), "-udp", outsideUDP, "-dns", outsideDNS},
	})
	if err != nil {
		return err
	}
	return startResolver(ctx, c)
}

// unmark takes from the real node what a test that was killed may have left there.
func unmark(ctx context.Context, c *framework.Cluster) error {
	_, err := c.Kubectl(ctx, "label", "nodes", "--selector="+framework.RealNodes, mark+"-")
	nodes, listErr := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: framework.RealNodes})
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	for _, node := range nodes.Items {
		for _, taint := range node.Spec.Taints {
			if taint.Key == mark {
				_, taintErr := c.Kubectl(ctx, "taint", "nodes", node.Name, mark+"-")
				err = errors.Join(err, taintErr)
			}
		}
	}
	return err
}

// startResolver runs what kube-dns is elsewhere: a resolver with the labels by which it is known, behind a Service.
func startResolver(ctx context.Context, c *framework.Cluster) error {
	if err := endResolver(ctx, c); err != nil {
		return err
	}
	labels := map[string]string{"k8s-app": "kube-dns"}
	pod := attackerPod(systemNamespace, resolverName, labels, "serve", "-http", "8080", "-dns", "53")
	pod.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	service := service(systemNamespace, resolverName, labels,
		corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}, corev1.ServicePort{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP})
	if err := errors.Join(c.Client.Create(ctx, pod), c.Client.Create(ctx, service)); err != nil {
		return fmt.Errorf("making the resolver: %w", err)
	}
	shared.resolverIP = service.Spec.ClusterIP
	_, err := c.Kubectl(ctx, "--namespace", systemNamespace, "wait", "--for=condition=Ready", "--timeout=60s", "pod/"+resolverName)
	if err != nil {
		return err
	}
	shared.resolver, err = c.Kube.CoreV1().Pods(systemNamespace).Get(ctx, resolverName, metav1.GetOptions{})
	return err
}

// endResolver removes the resolver, also one that a test that was killed has left.
func endResolver(ctx context.Context, c *framework.Cluster) error {
	_, err := c.Kubectl(ctx, "--namespace", systemNamespace, "delete", "pod,service", resolverName, "--ignore-not-found")
	return err
}

// strike takes the stage down.
func strike(ctx context.Context) error {
	var errs []error
	if shared.outside != nil {
		errs = append(errs, shared.outside.Close())
	}
	if shared.cluster != nil {
		errs = append(errs, endResolver(ctx, shared.cluster), unmark(ctx, shared.cluster))
	}
	return errors.Join(errs...)
}

func controlSocket(c *framework.Cluster) string {
	return filepath.Join(c.Info.Dir, "run", "outside.sock")
}

// registryImage is the attacker's image by the name of a registry that is the outside's.
func registryImage(port string) string { return framework.OutsideHost + ":" + port + "/attacker:dev" }
