// Package store tests what becomes of servers and sandboxes when the store is lost, set back or another's: servers on a part
// of the cluster's etcd that the test takes from under them, before a real aggregator and garbage collector. Each test
// starts and ends servers of its own. It refuses to look at how a store is told from another, which are pkg/store's tests.
package store

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/pkg/apiserver"
	"github.com/altairalabs/omnia-sandboxes/pkg/store"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/framework/inside"
)

const (
	runtimeName = "agent"
	handle      = "shell/default"
	accept      = "--accept-new-store"
)

// world is a set of servers, and a namespace with a runtime and a class on fake nodes.
type world struct {
	*framework.Cluster
	t         *testing.T
	servers   *framework.Servers
	etcd      *clientv3.Client
	namespace string
	class     *framework.ClassWrapper
	agent     versioned.Interface
}

func newWorld(t *testing.T, options framework.ServerOptions) *world {
	t.Helper()
	w := &world{Cluster: framework.Get(t), t: t}
	var err error
	w.etcd, err = w.Etcd()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.etcd.Close()) })
	w.servers = framework.StartServers(t, w.Cluster, options)
	w.namespace = w.Namespace(t)
	w.class = framework.MakeClass("fake-" + w.namespace).OnFakeNodes()
	w.CreateClasses(t, w.class)
	w.agent = w.Agent(t, w.namespace, runtimeName, w.class.Cluster().Name)
	return w
}

// attentive are two servers that look at their store often enough for a test.
func attentive(t *testing.T) framework.ServerOptions {
	t.Helper()
	inside.LogTo(t, framework.Get(t), "store.log")
	return framework.ServerOptions{Replicas: 2, Run: inside.Server(func(o *apiserver.Options) { o.Store.Interval = time.Second })}
}

// sandbox is a claim that is Bound, and its Deployment.
type sandbox struct {
	claim      *v1alpha1.SandboxClaim
	deployment *appsv1.Deployment
}

func (w *world) acquire(session string) sandbox {
	w.t.Helper()
	got, err := w.agent.SandboxV1alpha1().SandboxClaims(w.namespace).Acquire(w.t.Context(), v1alpha1.AnyClaim,
		framework.MakeAcquire(runtimeName, session, handle), metav1.CreateOptions{})
	require.NoError(w.t, err)
	claim := w.Claim(w.t, w.namespace, got.Status.ClaimName, framework.Bound)
	deployment, err := w.Kube.AppsV1().Deployments(w.namespace).Get(w.t.Context(), claim.Status.SandboxName, metav1.GetOptions{})
	require.NoError(w.t, err)
	return sandbox{claim, deployment}
}

// stays holds that the sandboxes are as they were, once the garbage collector has had its turn.
func (w *world) stays(sandboxes ...sandbox) {
	w.t.Helper()
	w.AfterCollector(w.t, w.namespace)
	for _, s := range sandboxes {
		now, err := w.Kube.AppsV1().Deployments(w.namespace).Get(w.t.Context(), s.deployment.Name, metav1.GetOptions{})
		require.NoError(w.t, err)
		assert.Equal(w.t, s.deployment.UID, now.UID)
		assert.Nil(w.t, now.DeletionTimestamp)
		pods, err := w.PodsOf(w.t.Context(), w.namespace, s.claim.UID)
		require.NoError(w.t, err)
		if assert.Len(w.t, pods, 1) {
			assert.Nil(w.t, pods[0].DeletionTimestamp)
		}
	}
}

// goes waits until a sandbox is gone.
func (w *world) goes(s sandbox) {
	w.t.Helper()
	framework.Eventually(w.t, framework.GoneTimeout, "the sandbox of a claim that is not in the store goes", func(ctx context.Context) (bool, error) {
		now, err := w.Kube.AppsV1().Deployments(w.namespace).Get(ctx, s.deployment.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && now.UID != s.deployment.UID, nil
	}, func(gone bool) bool { return gone })
}

// keys are what is stored.
func (w *world) keys() map[string]string {
	w.t.Helper()
	got, err := w.etcd.Get(w.t.Context(), w.servers.EtcdPrefix()+"/", clientv3.WithPrefix())
	require.NoError(w.t, err)
	out := map[string]string{}
	for _, pair := range got.Kvs {
		out[string(pair.Key)] = string(pair.Value)
	}
	return out
}

// put has exactly these be stored, in one step.
func (w *world) put(keys map[string]string) {
	w.t.Helper()
	var steps []clientv3.Op
	for key, value := range keys {
		steps = append(steps, clientv3.OpPut(key, value))
	}
	for key := range w.keys() {
		if _, stays := keys[key]; !stays {
			steps = append(steps, clientv3.OpDelete(key))
		}
	}
	_, err := w.etcd.Txn(w.t.Context()).Then(steps...).Commit()
	require.NoError(w.t, err)
}

func (w *world) markKey() string { return w.servers.EtcdPrefix() + "/store" }

// known is the mark that the ConfigMap holds.
func (w *world) known(ctx context.Context) (store.Mark, error) {
	var mark store.Mark
	object, err := w.Kube.CoreV1().ConfigMaps(framework.SystemNamespace).Get(ctx, store.ConfigMapName, metav1.GetOptions{})
	if err != nil {
		return mark, err
	}
	return mark, json.Unmarshal([]byte(object.Data["mark"]), &mark)
}

// told waits for an Event of the ConfigMap since the test's servers began.
func (w *world) told(kind string, reason store.Reason) {
	w.t.Helper()
	framework.Eventually(w.t, framework.Shortly, "an Event "+string(reason), func(ctx context.Context) (*corev1.EventList, error) {
		object, err := w.Kube.CoreV1().ConfigMaps(framework.SystemNamespace).Get(ctx, store.ConfigMapName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		about := fields.Set{"involvedObject.uid": string(object.UID), "reason": string(reason), "type": kind}
		return w.Kube.CoreV1().Events(framework.SystemNamespace).List(ctx, metav1.ListOptions{FieldSelector: about.String()})
	}, func(list *corev1.EventList) bool { return len(list.Items) > 0 })
}

// end waits until all servers have ended by themselves for this reason.
func (w *world) end(reason store.Reason) {
	w.t.Helper()
	for _, server := range w.servers.List {
		words, err := server.WaitEnded(w.t.Context())
		require.NoError(w.t, err)
		saysWhatToDo(w.t, words, reason)
	}
	w.told(corev1.EventTypeWarning, reason)
}

func saysWhatToDo(t *testing.T, words string, reason store.Reason) {
	t.Helper()
	assert.Contains(t, words, string(reason)+": the server's store is ")
	assert.Contains(t, words, "or start it with --accept-new-store")
}

// start starts all servers, which serve then.
func (w *world) start(extra ...string) {
	w.t.Helper()
	for _, server := range w.servers.List {
		require.NoError(w.t, server.Stop())
		require.NoError(w.t, server.Start(w.t.Context(), extra...))
	}
	require.NoError(w.t, w.WaitServed(w.t.Context()))
}
