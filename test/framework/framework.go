// Package framework is what the demo and the whole-system tests stand on: the local cluster's clients, sandbox servers
// as real processes with real flags behind the aggregator, fixtures, and waits that tell what they saw when they fail.
//
// It refuses to start a cluster (`go run ./hack/cluster up` does), to run a server inside the test's own process unless it
// is given how, and to assert anything about sandboxes: that is for the tests.
//
// There is one APIService and one Lease per cluster, so one set of servers at a time; a file lock makes packages that
// `go test` runs beside each other wait for their turn.
package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/hack/cluster/info"
)

const (
	// unlimited has a client ask as often as its user does. A limit of its own would be what is measured wherever the cluster
	// is faster, and kube-apiserver has Priority and Fairness for those who ask too often.
	unlimited = -1

	clusterFolder = ".cluster"
)

// Cluster is the local cluster, seen as its administrator unless a Config says otherwise.
type Cluster struct {
	// Root is the repository's root folder.
	Root string
	// Info is what `hack/cluster up` wrote about the cluster.
	Info *info.Cluster
	// Config leads to kube-apiserver as cluster-admin.
	Config *rest.Config
	// Kube is the clientset of Kubernetes' own groups.
	Kube kubernetes.Interface
	// Sandbox is our clientset. It goes through the aggregator.
	Sandbox versioned.Interface
	// Aggregator is the clientset of APIServices.
	Aggregator aggregator.Interface
	// Client reads and writes objects of Kubernetes' groups, of ours and of Omnia's.
	Client client.Client
}

// Open finds the repository above the working folder and connects to the cluster that runs there.
func Open() (*Cluster, error) {
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	described, err := info.Load(filepath.Join(root, clusterFolder))
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", described.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w (run `go run ./hack/cluster up`)", described.Kubeconfig(), err)
	}
	c := &Cluster{Root: root, Info: described, Config: tuned(config)}
	return c, c.connect()
}

// Connect connects to a cluster that is somebody else's, by its kubeconfig. Its Info is nil: nothing that needs to know the
// cluster's machine can be done on it, such as starting servers.
func Connect(kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	c := &Cluster{Config: tuned(config)}
	return c, c.connect()
}

func (c *Cluster) connect() error {
	log.SetLogger(klog.Background())
	var err error
	if c.Kube, err = kubernetes.NewForConfig(c.Config); err != nil {
		return fmt.Errorf("making the Kubernetes clientset: %w", err)
	}
	if c.Sandbox, err = versioned.NewForConfig(c.Config); err != nil {
		return fmt.Errorf("making the sandbox clientset: %w", err)
	}
	if c.Aggregator, err = aggregator.NewForConfig(c.Config); err != nil {
		return fmt.Errorf("making the aggregator's clientset: %w", err)
	}
	kinds, err := Scheme()
	if err != nil {
		return err
	}
	if c.Client, err = client.New(c.Config, client.Options{Scheme: kinds}); err != nil {
		return fmt.Errorf("making the client of all kinds: %w", err)
	}
	return nil
}

// Scheme knows Kubernetes' own kinds, ours and Omnia's.
func Scheme() (*runtime.Scheme, error) {
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme, omniav1alpha1.AddToScheme} {
		if err := add(kinds); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return kinds, nil
}

// Main runs a package's tests against one set of servers: call it from TestMain and pass what it returns to os.Exit. use
// is given the cluster and the servers before the tests run. With -short nothing runs and nothing is started.
func Main(m *testing.M, options ServerOptions, use func(*Cluster, *Servers)) int {
	if isShort() {
		fmt.Println("no tests of the whole system with -short")
		return 0
	}
	code, err := runMain(m, options, use)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test framework:", err)
		return 1
	}
	return code
}

func runMain(m *testing.M, options ServerOptions, use func(*Cluster, *Servers)) (code int, err error) {
	ctx := context.Background()
	c, err := Open()
	if err != nil {
		return 1, err
	}
	servers, err := c.StartServers(ctx, options)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	use(c, servers)
	return m.Run(), nil
}

// Get connects to the cluster for one test, which is skipped with -short and fails without a cluster.
func Get(t testing.TB) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("a test of the whole system: not with -short")
	}
	c, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// repositoryRoot is the nearest folder upwards that has a go.mod.
func repositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above %s: run from within the repository", start)
		}
	}
}

func tuned(config *rest.Config) *rest.Config {
	config.QPS = unlimited
	config.Proxy = nil
	return config
}
