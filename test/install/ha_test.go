package install

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	sandboxclient "github.com/altairalabs/omnia-sandboxes/pkg/client"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// haDeployment is what the ha overlay runs, as kubectl names it.
const haDeployment = "deployment/" + framework.ServerName

// rollTimeout is for three replicas to be replaced one after the other, on a busy machine.
const rollTimeout = 5 * time.Minute

// ha is an installation by the ha overlay, on an etcd of three members of its own.
type ha struct {
	*world
	etcd *framework.EtcdCluster
}

// Its parts share one installation, which takes a minute.
func TestHA(t *testing.T) {
	c := framework.Get(t)
	etcd := framework.StartEtcd(t, c)
	h := &ha{etcd: etcd, world: install(t, "test/install/ha", func(ctx context.Context) error { return c.GiveEtcd(ctx, etcd.Access()) })}
	h.mayHaveMany()
	for _, part := range []struct {
		name string
		run  func(*ha)
	}{
		{"every replica answers, and one may be drained away", (*ha).everyReplicaAnswers},
		{"a rolling restart: no acquire fails", (*ha).rollingRestart},
		{"another template and a later build's objects, and back: no acquire fails", (*ha).upgradeAndBack},
		{"the leader is ended: another leads at once, and no acquire fails", (*ha).leaderEnded},
		{"the leader is killed: another leads in time, and no acquire fails", (*ha).leaderKilled},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(h.in(t)) })
	}
}

// in is the installation for a part of the test.
func (h *ha) in(t *testing.T) *ha {
	w := *h.world
	w.t = t
	return &ha{world: &w, etcd: h.etcd}
}

func (h *ha) everyReplicaAnswers() {
	sandbox := h.acquire("every")
	servers := h.servers()
	require.Len(h.t, servers, 3)
	for _, pod := range servers {
		assert.True(h.t, ready(&pod), pod.Name)
		direct := sandboxclient.New(h.clients(h.directTo(pod.Status.PodIP)).SandboxV1alpha1(), h.namespace)
		direct.DialTimeout = 0
		again, err := direct.Acquire(h.t.Context(), spec("every"))
		require.NoError(h.t, err, pod.Name)
		assert.Equal(h.t, sandbox.UID, again.UID, pod.Name)
	}
	framework.Eventually(h.t, framework.NoticeTimeout, "one may be drained away", func(ctx context.Context) (*policyv1.PodDisruptionBudget, error) {
		return h.Kube.PolicyV1().PodDisruptionBudgets(framework.SystemNamespace).Get(ctx, framework.ServerName, metav1.GetOptions{})
	}, func(b *policyv1.PodDisruptionBudget) bool { return b.Status.DisruptionsAllowed == 1 })
}

func (h *ha) rollingRestart() {
	acquires := h.startAcquires()
	h.rolled("rollout", "restart", haDeployment)
	acquires.noneFails()
}

// rolled changes the Deployment's template by kubectl, as a person does, and waits until each replica is another, and those
// of before have come to their ends.
func (h *ha) rolled(kubectl ...string) {
	h.t.Helper()
	before := sets.New[types.UID]()
	for _, pod := range h.servers() {
		before.Insert(pod.UID)
	}
	began := time.Now()
	_, err := h.Kubectl(h.t.Context(), append([]string{"--namespace", framework.SystemNamespace}, kubectl...)...)
	require.NoError(h.t, err)
	h.whole(func(pod *corev1.Pod) bool { return !before.Has(pod.UID) })
	h.t.Logf("rolled out in %s", time.Since(began).Round(100*time.Millisecond))
}

// whole waits until there are the replicas that there should be, all ready and as wanted, and no other.
func (h *ha) whole(wanted func(*corev1.Pod) bool) {
	h.t.Helper()
	framework.Eventually(h.t, rollTimeout, "three replicas are ready", func(context.Context) ([]corev1.Pod, error) {
		return h.servers(), nil
	}, func(pods []corev1.Pod) bool {
		return len(pods) == 3 && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !ready(&pod) || !wanted(&pod) })
	})
}

func (h *ha) leaderEnded() {
	leader := h.leader(h.t)
	acquires := h.startAcquires()
	began := time.Now()
	require.NoError(h.t, h.Kube.CoreV1().Pods(framework.SystemNamespace).Delete(h.t.Context(), leader, metav1.DeleteOptions{}))
	h.anotherLeads(leader, began)
	h.newClaimBound("leader-ended", began)
	h.whole(func(pod *corev1.Pod) bool { return pod.Name != leader })
	acquires.noneFails()
}

// anotherLeads waits for another pod to hold the Lease.
func (h *ha) anotherLeads(than string, since time.Time) {
	h.t.Helper()
	framework.Eventually(h.t, framework.FailoverTimeout, "another replica holds the Lease", func(context.Context) (string, error) {
		return h.leader(h.t), nil
	}, func(holder string) bool { return holder != "" && holder != than })
	h.t.Logf("another replica held the Lease %s after", time.Since(since).Round(100*time.Millisecond))
}

// leaderKilled: what the kubelet starts again may well lead again.
func (h *ha) leaderKilled() {
	leader := h.leader(h.t)
	pod, err := h.Kube.CoreV1().Pods(framework.SystemNamespace).Get(h.t.Context(), leader, metav1.GetOptions{})
	require.NoError(h.t, err)
	process, err := framework.ProcessOf(pod.UID, framework.ServerName)
	require.NoError(h.t, err)
	acquires := h.startAcquires()
	began := time.Now()
	require.NoError(h.t, process.Kill())
	h.newClaimBound("leader-killed", began)
	acquires.noneFails()
}

// newClaimBound acquires what only a leader can make.
func (h *ha) newClaimBound(session string, since time.Time) {
	h.t.Helper()
	assert.True(h.t, h.acquire(session).Created)
	took := time.Since(since)
	h.t.Logf("a new claim was Bound %s after", took.Round(100*time.Millisecond))
	assert.Less(h.t, took, framework.FailoverTimeout+framework.BoundTimeout)
}

// directTo is the runtime's config that leads to one replica, past the aggregator.
func (h *ha) directTo(address string) *rest.Config {
	h.t.Helper()
	service, err := h.Aggregator.ApiregistrationV1().APIServices().Get(h.t.Context(), framework.APIServiceName, metav1.GetOptions{})
	require.NoError(h.t, err)
	config := h.asRuntime()
	config.Host = fmt.Sprintf("https://%s:8443", address)
	config.ServerName = framework.ServerHost
	config.CAFile, config.CAData = "", service.Spec.CABundle
	return config
}

// asRuntime is the runtime's config.
func (h *ha) asRuntime() *rest.Config {
	h.t.Helper()
	config, err := h.AsServiceAccount(h.t.Context(), h.namespace, runtimeName+"-facade")
	require.NoError(h.t, err)
	return config
}

func (h *ha) clients(config *rest.Config) versioned.Interface {
	h.t.Helper()
	set, err := versioned.NewForConfig(config)
	require.NoError(h.t, err)
	return set
}

// spec is what a session's acquire asks for.
func spec(session string) v1alpha1.SandboxAcquireSpec {
	return v1alpha1.SandboxAcquireSpec{AgentRuntime: runtimeName, SessionID: session, Handle: handle}
}

// leader is the pod that runs the controllers.
func (w *world) leader(t *testing.T) string {
	t.Helper()
	holder := framework.Eventually(t, framework.FailoverTimeout, "a replica holds the Lease", w.LeaseHolder, func(holder string) bool { return holder != "" })
	// A replica calls itself by its pod's name, and then its UID.
	for _, pod := range w.servers() {
		if len(holder) > len(pod.Name) && holder[:len(pod.Name)] == pod.Name {
			return pod.Name
		}
	}
	return ""
}
