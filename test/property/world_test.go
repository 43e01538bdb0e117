package property

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

const (
	registryName = "tools"
	// usualClass runs on fake nodes, stuckClass on none, and missingClass does not exist.
	usualClass, stuckClass, missingClass = "usual", "stuck", "missing"
)

var (
	sessions = []string{"s1", "s2", "s3"}
	// handles are of two sandboxes: shell, which gets ready, and stuck, which never does.
	handles = []string{"shell/one", "stuck/one", "shell/two", "shell/three"}
	// instances are the sandboxes' maxInstances.
	instances = map[string]int{"shell": 2, "stuck": 1}
	// leaps are how far time leaps.
	leaps = []time.Duration{time.Minute, 11 * time.Minute, 15 * time.Second, 4 * time.Minute, 2 * time.Second}
)

// world is one namespace with its runtimes, and what becomes of it.
type world struct {
	*framework.Cluster
	*model
	t         *testing.T
	servers   *framework.Servers
	namespace string
	events    *events
	// admin and agents call a server directly: the administrator, and each runtime's own ServiceAccount.
	admin  []versioned.Interface
	agents []map[string]versioned.Interface

	etcd    *clientv3.Client
	cancel  context.CancelFunc
	ctx     context.Context
	callers sync.WaitGroup
	stood   *judge.Standing
	byHand  int
}

func newWorld(t *testing.T, cluster *framework.Cluster, servers *framework.Servers, clock passingClock, rt *rapid.T) *world {
	t.Helper()
	w := &world{Cluster: cluster, t: t, servers: servers, namespace: cluster.Namespace(t),
		model: &model{clock: clock, runtimes: map[string]*allowed{}, calls: newCalls(), journal: &judge.Journal{}}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.makeClasses()
	for i := range rapid.IntRange(1, 2).Draw(rt, "runtimes") {
		w.makeRuntime(rt, fmt.Sprintf("agent-%d", i+1))
	}
	w.connect()

	var err error
	if w.etcd, err = cluster.Etcd(); err != nil {
		t.Fatal(err)
	}
	if w.events, err = newEvents(w.ctx, w.model, w.etcd, servers.EtcdPrefix()+"/sandbox.omnia/sandboxclaims/"+w.namespace+"/"); err != nil {
		t.Fatal(err)
	}
	if w.stood, err = judge.WatchStanding(w.ctx, w.events.Events, w.Kube, w.namespace); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) makeClasses() {
	stuck := framework.MakeClass(stuckClass).With(func(spec *v1alpha1.SandboxClassSpec) {
		spec.NodeSelector = map[string]string{"no": "node"}
	})
	w.Create(w.t, framework.MakeClass(usualClass).OnFakeNodes().In(w.namespace), stuck.In(w.namespace),
		framework.MakeToolRegistry(registryName, w.namespace).
			SandboxOf("shell", v1alpha1.SandboxClassKind, usualClass).MaxInstances(int32(instances["shell"])).
			SandboxOf("stuck", v1alpha1.SandboxClassKind, stuckClass).MaxInstances(int32(instances["stuck"])).Obj())
}

func (w *world) makeRuntime(rt *rapid.T, name string) {
	may := &allowed{
		idle:  rapid.SampledFrom([]time.Duration{2 * time.Minute, 12 * time.Minute}).Draw(rt, "idleTimeout"),
		grace: rapid.SampledFrom([]time.Duration{2 * time.Minute, 20 * time.Second, 0}).Draw(rt, "releaseGrace"),
	}
	concurrent, perSession := rapid.IntRange(1, 3).Draw(rt, "maxConcurrent"), rapid.IntRange(1, 3).Draw(rt, "maxPerSession")
	may.concurrent.set(concurrent)
	may.perSession.set(perSession)
	w.runtimes[name] = may
	w.ServiceAccount(w.t, w.namespace, name+"-facade")
	w.Create(w.t, framework.MakeRuntime(name, w.namespace).ToolRegistry(registryName).MaxConcurrent(int32(concurrent)).
		MaxPerSession(int32(perSession)).IdleTimeout(may.idle).ReleaseGrace(may.grace).Obj())
	w.say("runtime %s: maxConcurrent %d, maxPerSession %d, idleTimeout %s, releaseGrace %s", name, concurrent, perSession, may.idle, may.grace)
}

// connect makes the clients of each server.
func (w *world) connect() {
	direct := func(server *framework.Server, caller *rest.Config) versioned.Interface {
		set, err := versioned.NewForConfig(server.Direct(caller))
		if err != nil {
			w.t.Fatalf("making a clientset: %v", err)
		}
		return set
	}
	callers := map[string]*rest.Config{}
	for name := range w.runtimes {
		config, err := w.AsServiceAccount(w.ctx, w.namespace, name+"-facade")
		if err != nil {
			w.t.Fatal(err)
		}
		callers[name] = config
	}
	for _, server := range w.servers.List {
		w.admin = append(w.admin, direct(server, w.Config))
		agents := map[string]versioned.Interface{}
		for name, config := range callers {
			agents[name] = direct(server, config)
		}
		w.agents = append(w.agents, agents)
	}
}

// end ends what the world runs, shows its history if it failed, and leaves both servers running.
func (w *world) end(failed bool) {
	w.cancel()
	w.callers.Wait()
	w.events.Wait()
	w.stood.Wait()
	w.startAll(w.t)
	if failed || *showHistory {
		w.t.Logf("what happened in namespace %s, by the test's clock and (seconds) the machine's:\n%s", w.namespace, w.journal)
	}
	if failed {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		w.t.Log(w.Describe(ctx, w.namespace))
	}
	if err := w.etcd.Close(); err != nil {
		w.t.Errorf("closing the etcd client: %v", err)
	}
	err := w.Kube.CoreV1().Namespaces().Delete(context.Background(), w.namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Errorf("deleting namespace %s: %v", w.namespace, err)
	}
}
