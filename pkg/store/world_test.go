package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/altairalabs/omnia-sandboxes/pkg/etcd"
	"github.com/altairalabs/omnia-sandboxes/pkg/etcd/etcdtest"
)

const (
	namespace = "sandbox-system"
	// patience bounds the wait for what must happen; reaching it is a failure.
	patience = 30 * time.Second
)

// server is one etcd for the tests of the package; each has a prefix of its own.
var server *etcd.Server

func TestMain(m *testing.M) { os.Exit(etcdtest.Main(m, &server)) }

// worlds counts what needs a name of its own.
var worlds atomic.Int64

// world is a part of an etcd, and a host cluster.
type world struct {
	t      *testing.T
	config Config
	clock  *clocktesting.FakeClock
	client *clientv3.Client
	key    string
	host   *fake.Clientset
	// hostFails is how many of the next requests for the ConfigMap the host refuses to answer; negative: all.
	hostFails atomic.Int64
}

func newWorld(t *testing.T) *world {
	return worldOn(t, server.Endpoint())
}

func worldOn(t *testing.T, endpoint string) *world {
	t.Helper()
	prefix := fmt.Sprintf("/world-%d", worlds.Add(1))
	w := &world{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), key: prefix + "/store", host: fake.NewClientset()}
	w.config = Config{
		Etcd: storagebackend.TransportConfig{ServerList: []string{endpoint}}, Prefix: prefix,
		Host: w.host, Namespace: namespace, Clock: w.clock,
	}
	var err error
	w.client, err = clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: patience, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.client.Close()) })
	w.host.PrependReactor("*", "configmaps", w.react)
	w.host.PrependReactor("create", "events", w.name)
	return w
}

// react refuses what is to be refused, and a write of what was changed since it was read, as a real cluster does.
func (w *world) react(asked k8stesting.Action) (bool, runtime.Object, error) {
	if left := w.hostFails.Load(); left != 0 {
		w.hostFails.Add(-1)
		return true, nil, errors.New("the host does not answer")
	}
	resource := asked.GetResource()
	if asked.GetVerb() != "update" && asked.GetVerb() != "create" {
		return false, nil, nil
	}
	write, ok := asked.(k8stesting.CreateAction) // an update has the same methods
	require.True(w.t, ok)
	object, ok := write.GetObject().(*corev1.ConfigMap)
	require.True(w.t, ok)
	if asked.GetVerb() == "create" {
		object.ResourceVersion = "1"
		return true, object, w.host.Tracker().Create(resource, object, namespace)
	}
	stored, err := w.host.Tracker().Get(resource, namespace, object.Name)
	if err != nil {
		return true, nil, err
	}
	current, ok := stored.(*corev1.ConfigMap)
	require.True(w.t, ok)
	if current.ResourceVersion != object.ResourceVersion {
		return true, nil, apierrors.NewConflict(resource.GroupResource(), object.Name, errors.New("it was changed"))
	}
	version, err := strconv.Atoi(object.ResourceVersion)
	require.NoError(w.t, err)
	object.ResourceVersion = strconv.Itoa(version + 1)
	return true, object, w.host.Tracker().Update(resource, object, namespace)
}

// name gives each Event a name of its own, as a real cluster does.
func (w *world) name(asked k8stesting.Action) (bool, runtime.Object, error) {
	write, ok := asked.(k8stesting.CreateAction)
	require.True(w.t, ok)
	event, ok := write.GetObject().(*corev1.Event)
	require.True(w.t, ok)
	event.Name = event.GenerateName + strconv.FormatInt(worlds.Add(1), 10)
	return true, event, w.host.Tracker().Create(asked.GetResource(), event, namespace)
}

// open is a server's start that must succeed.
func (w *world) open(change ...func(*Config)) *Keeper {
	w.t.Helper()
	k, err := w.tryOpen(change...)
	require.NoError(w.t, err)
	return k
}

func (w *world) tryOpen(change ...func(*Config)) (*Keeper, error) {
	config := w.config
	for _, c := range change {
		c(&config)
	}
	k, err := Open(w.t.Context(), config)
	if err == nil {
		w.t.Cleanup(func() { _ = k.etcd.client.Close() }) // Run may have closed it
	}
	return k, err
}

func accepting(c *Config) { c.Accept = true }

// refused is a server's start that must be refused.
func (w *world) refused(reason Reason) {
	w.t.Helper()
	_, err := Open(w.t.Context(), w.config)
	isLost(w.t, err, reason)
	assert.Contains(w.t, w.events(), "Warning "+string(reason)+": "+err.Error())
}

func isLost(t *testing.T, err error, reason Reason) {
	t.Helper()
	var lost *Error
	require.ErrorAs(t, err, &lost)
	require.Equal(t, reason, lost.Reason)
}

// marks are what etcd and the ConfigMap hold.
func (w *world) marks() (etcd, configMap Mark) {
	w.t.Helper()
	return w.stored(), w.recorded()
}

func (w *world) stored() Mark {
	w.t.Helper()
	got, err := w.client.Get(w.t.Context(), w.key)
	require.NoError(w.t, err)
	require.Len(w.t, got.Kvs, 1)
	mark, err := decode(got.Kvs[0].Value)
	require.NoError(w.t, err)
	return mark
}

func (w *world) recorded() Mark {
	w.t.Helper()
	object, err := w.host.CoreV1().ConfigMaps(namespace).Get(w.t.Context(), ConfigMapName, metav1.GetOptions{})
	require.NoError(w.t, err)
	mark, err := decode([]byte(object.Data[markKey]))
	require.NoError(w.t, err)
	return mark
}

// store writes into etcd what nobody of ours wrote.
func (w *world) store(text string) {
	w.t.Helper()
	_, err := w.client.Put(w.t.Context(), w.key, text)
	require.NoError(w.t, err)
}

func (w *world) empty() {
	w.t.Helper()
	_, err := w.client.Delete(w.t.Context(), w.key)
	require.NoError(w.t, err)
}

// record writes into the ConfigMap what nobody of ours wrote.
func (w *world) record(text string) {
	w.t.Helper()
	configMaps := w.host.CoreV1().ConfigMaps(namespace)
	object, err := configMaps.Get(w.t.Context(), ConfigMapName, metav1.GetOptions{})
	require.NoError(w.t, err)
	object.Data = map[string]string{markKey: text}
	_, err = configMaps.Update(w.t.Context(), object, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

func (w *world) forget() {
	w.t.Helper()
	require.NoError(w.t, w.host.CoreV1().ConfigMaps(namespace).Delete(w.t.Context(), ConfigMapName, metav1.DeleteOptions{}))
}

// events are those of the ConfigMap.
func (w *world) events() []string {
	w.t.Helper()
	list, err := w.host.CoreV1().Events(namespace).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	var out []string
	for _, event := range list.Items {
		require.Equal(w.t, ConfigMapName, event.InvolvedObject.Name)
		out = append(out, fmt.Sprintf("%s %s: %s", event.Type, event.Reason, event.Message))
	}
	return out
}
