package chaos

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/pkg/apiserver"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

const (
	// agentName is a runtime with room for all; crowdName's sandboxes are fewer than its agents, so that some always queue.
	agentName, crowdName = "agent", "crowd"
	crowdMost, crowd     = 2, 3
	// plenty is room for all that there is here.
	plenty = 20

	registryName           = "tools"
	fakeHandle, realHandle = "shell/default", "real/default"
	releaseGrace           = time.Second
)

// world is a namespace with its runtimes on servers that are to be broken, the agents at work, and the judge.
type world struct {
	*framework.Cluster
	*load
	t         *testing.T
	namespace string
	callers   map[string]*caller
	sandboxes *judge.Standing
	journal   *judge.Journal
	cancel    context.CancelFunc
	played    int
}

// newWorld begins the load on servers whose etcd this is.
func newWorld(t *testing.T, c *framework.Cluster, etcd *clientv3.Client) *world {
	t.Helper()
	w := &world{Cluster: c, t: t, namespace: c.Namespace(t), callers: map[string]*caller{}, journal: &judge.Journal{}}
	w.makeRuntimes()

	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	t.Cleanup(w.end)
	account := &account{ledger: newLedger()}
	account.Events = judge.New(judge.Options{
		Etcd: etcd, Prefix: apiserver.DefaultEtcdPrefix + "/sandbox.omnia/sandboxclaims/" + w.namespace + "/",
		Clock: clock.RealClock{}, Limits: limits, Say: w.say, Changed: account.changed, Gone: account.gone,
	})
	w.load = &load{account: account, probes: &probes{}, ctx: ctx}
	require.NoError(t, account.Watch(ctx))
	var err error
	w.sandboxes, err = judge.WatchStanding(ctx, account.Events, c.Kube, w.namespace)
	require.NoError(t, err)

	agent := w.callers[agentName]
	for session, handle := range map[string]string{"keeps-1": fakeHandle, "keeps-2": fakeHandle, "keeps-real": realHandle} {
		require.NoError(t, w.keep(agent, session, handle))
	}
	w.begin(map[*caller]int{agent: 1, w.callers[crowdName]: crowd})
	return w
}

func (w *world) say(format string, args ...any) { w.journal.Say(time.Now(), format, args...) }

// makeRuntimes makes what acquires need: classes of both kinds of node, a ToolRegistry, runtimes and their callers.
func (w *world) makeRuntimes() {
	w.t.Helper()
	fake, real := framework.MakeClass("fake").OnFakeNodes(), framework.MakeClass("real").OnRealNodes()
	w.Create(w.t, fake.In(w.namespace), real.In(w.namespace), framework.MakeToolRegistry(registryName, w.namespace).
		SandboxOf("shell", "SandboxClass", "fake").SandboxOf("real", "SandboxClass", "real").Obj())
	for name, most := range map[string]int32{agentName: plenty, crowdName: crowdMost} {
		account := name + "-facade"
		w.ServiceAccount(w.t, w.namespace, account)
		runtime := framework.MakeRuntime(name, w.namespace).ToolRegistry(registryName).MaxConcurrent(most).ReleaseGrace(releaseGrace)
		w.Create(w.t, runtime.Obj())
		config, err := w.AsServiceAccount(w.t.Context(), w.namespace, account)
		require.NoError(w.t, err)
		set, err := versioned.NewForConfig(config)
		require.NoError(w.t, err)
		w.callers[name] = &caller{rest: set.SandboxV1alpha1().RESTClient(), namespace: w.namespace, runtime: name}
	}
}

// limits are what the runtimes may have.
func limits(runtime string) judge.Limits {
	most := map[string]int{agentName: plenty, crowdName: crowdMost}[runtime]
	const perSession = int(omniav1alpha1.DefaultMaxPerSession)
	return judge.Limits{MostConcurrent: most, MostStanding: most, MostPerSession: perSession, LeastPerSession: perSession}
}

// end ends what the world runs, and shows its history if it failed.
func (w *world) end() {
	w.cancel()
	if w.load != nil {
		w.running.Wait()
		w.Wait()
	}
	if w.sandboxes != nil {
		w.sandboxes.Wait()
	}
	if w.t.Failed() {
		w.t.Logf("what happened in namespace %s:\n%s", w.namespace, w.journal)
	}
}

// anew acquires a sandbox that was not there, gives it back, and says how long that took until it was Bound.
func (w *world) anew(ctx context.Context, handle string) (time.Duration, error) {
	w.played++
	agent, began := w.callers[agentName], time.Now()
	key := judge.Key{Runtime: agentName, Session: fmt.Sprintf("new-%d", w.played), Handle: handle}
	ctx, cancel := context.WithTimeout(ctx, calmTimeout)
	defer cancel()
	if _, err := w.obtain(ctx, agent, key); err != nil {
		return 0, fmt.Errorf("acquiring a new sandbox: %w", err)
	}
	took := time.Since(began)
	return took, w.giveBack(ctx, agent, key)
}
