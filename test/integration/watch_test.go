package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// nextEvent waits for a watch's next event.
func nextEvent(t *testing.T, watcher watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-watcher.ResultChan():
		require.True(t, open, "the watch ended")
		return event
	case <-time.After(framework.BoundTimeout):
		require.Fail(t, "no event")
	}
	return watch.Event{}
}

// told is an event in short: its type and its object's name.
func told(t *testing.T, event watch.Event) string {
	t.Helper()
	object, ok := event.Object.(metav1.Object)
	require.True(t, ok, "got %v", event.Object)
	return string(event.Type) + " " + object.GetName()
}

func TestWatch_FromAList_TellsWhatCameAfterIt(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	classes := w.Sandbox.SandboxV1alpha1().SandboxClasses(w.namespace)
	w.Create(t, framework.MakeClass("before").In(w.namespace))
	list, err := classes.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	watcher, err := classes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	defer watcher.Stop()

	w.Create(t, framework.MakeClass("after").In(w.namespace))
	_, err = classes.Patch(t.Context(), "before", types.MergePatchType, []byte(`{"spec":{"image":"example.test/image:2"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, classes.Delete(t.Context(), "before", metav1.DeleteOptions{}))
	last := list.ResourceVersion
	for _, want := range []string{"ADDED after", "MODIFIED before", "DELETED before"} {
		event := nextEvent(t, watcher)
		assert.Equal(t, want, told(t, event))
		version := event.Object.(*v1alpha1.SandboxClass).ResourceVersion
		assert.Greater(t, number(t, version), number(t, last), "a deletion too has a version of its own")
		last = version
	}
}

func number(t *testing.T, version string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(version, 10, 64)
	require.NoError(t, err)
	return n
}

func TestWatch_ResumedOverTwoServers_LosesAndDoublesNothing(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	direct := w.direct()
	list, err := direct[0].SandboxV1alpha1().SandboxClasses(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	const objects, each = 40, 7
	failed := make(chan error, 1)
	go func() {
		failed <- func() error {
			for i := range objects {
				class := framework.MakeClass(fmt.Sprintf("n%02d", i)).In(w.namespace)
				if _, err := direct[i%2].SandboxV1alpha1().SandboxClasses(w.namespace).Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	version := list.ResourceVersion
	var got, want []string
	for turn := 0; len(got) < objects; turn++ {
		watcher, err := direct[turn%2].SandboxV1alpha1().SandboxClasses(w.namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		require.NoError(t, err)
		for i := 0; i < each && len(got) < objects; i++ {
			event := nextEvent(t, watcher)
			got = append(got, told(t, event))
			version = event.Object.(*v1alpha1.SandboxClass).ResourceVersion
		}
		watcher.Stop()
	}
	require.NoError(t, <-failed)
	for i := range objects {
		want = append(want, fmt.Sprintf("ADDED n%02d", i))
	}
	assert.Equal(t, want, got)
}

func TestWatch_ObjectsMoveInAndOutOfASelection(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	watching := func(options metav1.ListOptions) watch.Interface {
		list, err := claims.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		options.ResourceVersion = list.ResourceVersion
		watcher, err := claims.Watch(t.Context(), options)
		require.NoError(t, err)
		t.Cleanup(watcher.Stop)
		return watcher
	}
	pending := watching(metav1.ListOptions{FieldSelector: "status.phase=Pending"})
	bound := watching(metav1.ListOptions{FieldSelector: "status.phase=Bound"})
	session := watching(metav1.ListOptions{FieldSelector: "spec.sessionID=mine"})
	chosen := watching(metav1.ListOptions{LabelSelector: "chosen=yes"})
	// until reads on over what else is written of the claim while it stays in the selection.
	until := func(watcher watch.Interface, kind watch.EventType) {
		event := nextEvent(t, watcher)
		for event.Type == watch.Modified {
			event = nextEvent(t, watcher)
		}
		assert.Equal(t, string(kind)+" moves", told(t, event))
	}

	w.Create(t, framework.MakeClaim("elsewhere", w.namespace, runtimeName, "none").Session("another").Obj(),
		framework.MakeClaim("moves", w.namespace, runtimeName, w.class).Session("mine").Obj())
	until(session, watch.Added)
	until(pending, watch.Added)
	until(pending, watch.Deleted)
	until(bound, watch.Added)

	choose := func(value string) {
		_, err := claims.Patch(t.Context(), "moves", types.MergePatchType, []byte(`{"metadata":{"labels":{"chosen":"`+value+`"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	choose("yes")
	until(chosen, watch.Added)
	choose("no")
	until(chosen, watch.Deleted)
	require.NoError(t, claims.Delete(t.Context(), "moves", metav1.DeleteOptions{}))
	until(bound, watch.Deleted)
	until(session, watch.Deleted)
}

func TestWatch_Bookmarks(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	classes := w.Sandbox.SandboxV1alpha1().SandboxClasses(w.namespace)
	w.Create(t, framework.MakeClass("one").In(w.namespace), framework.MakeClass("two").In(w.namespace))

	t.Run("a streaming list: the objects, then the bookmark that ends them, then what comes", func(t *testing.T) {
		watcher, err := classes.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		require.NoError(t, err)
		defer watcher.Stop()
		assert.Equal(t, "ADDED one", told(t, nextEvent(t, watcher)))
		assert.Equal(t, "ADDED two", told(t, nextEvent(t, watcher)))
		end := nextEvent(t, watcher)
		require.Equal(t, watch.Bookmark, end.Type)
		marked := end.Object.(*v1alpha1.SandboxClass)
		assert.Equal(t, "true", marked.Annotations[metav1.InitialEventsAnnotationKey])
		w.Create(t, framework.MakeClass("three").In(w.namespace))
		assert.Equal(t, "ADDED three", told(t, nextEvent(t, watcher)))

		resumed, err := classes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: marked.ResourceVersion})
		require.NoError(t, err)
		defer resumed.Stop()
		assert.Equal(t, "ADDED three", told(t, nextEvent(t, resumed)), "a watch goes on from a bookmark")
	})
	t.Run("a watch near its end: a bookmark, and then its end", func(t *testing.T) {
		list, err := classes.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		watcher, err := classes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: ptr.To[int64](10)})
		require.NoError(t, err)
		w.Create(t, framework.MakeClass("four").In(w.namespace)) // a bookmark tells of what was seen, which else may be nothing
		added := nextEvent(t, watcher)
		assert.Equal(t, "ADDED four", told(t, added))
		event := nextEvent(t, watcher)
		require.Equal(t, watch.Bookmark, event.Type)
		marked := event.Object.(*v1alpha1.SandboxClass)
		assert.GreaterOrEqual(t, number(t, marked.ResourceVersion), number(t, added.Object.(*v1alpha1.SandboxClass).ResourceVersion))
		for event := range watcher.ResultChan() {
			assert.Equal(t, watch.Bookmark, event.Type)
		}
	})
	t.Run("initial events without bookmarks: refused", func(t *testing.T) {
		_, err := classes.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true)})
		require.True(t, apierrors.IsInvalid(err), "got %v", err)
	})
}

func TestWatch_FromALongForgottenVersion_SaysExpired(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	watcher, err := w.Sandbox.SandboxV1alpha1().SandboxClasses(w.namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	require.NoError(t, err)
	defer watcher.Stop()
	event := nextEvent(t, watcher)
	require.Equal(t, watch.Error, event.Type)
	assert.True(t, apierrors.IsResourceExpired(apierrors.FromObject(event.Object)), "got %v", event.Object)
}

func TestTable(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	accept := "application/json;as=Table;v=v1;g=meta.k8s.io"
	claims := "/apis/sandbox.omnia/v1alpha1/namespaces/" + w.namespace + "/sandboxclaims"
	rows := func(t *testing.T, data []byte) *metav1.Table {
		table := &metav1.Table{}
		require.NoError(t, json.Unmarshal(data, table))
		assert.Equal(t, "Table", table.Kind)
		require.Len(t, table.Rows, 1)
		assert.Equal(t, claim.Name, table.Rows[0].Cells[0])
		assert.Contains(t, table.Rows[0].Cells, any("Bound"))
		return table
	}
	for path, include := range map[string]string{claims: "Metadata", claims + "/" + claim.Name: "Object", claims + "/" + claim.Name + "/status": "None"} {
		t.Run("a GET of "+path[len(claims):]+" with "+include, func(t *testing.T) {
			data, err := w.Kube.Discovery().RESTClient().Get().AbsPath(path).Param("includeObject", include).SetHeader("Accept", accept).DoRaw(t.Context())
			require.NoError(t, err)
			table := rows(t, data)
			assert.NotEmpty(t, table.ResourceVersion)
			assert.Len(t, table.Rows[0].Cells, len(table.ColumnDefinitions))
			object := metav1.PartialObjectMetadata{}
			if include == "None" {
				assert.Empty(t, table.Rows[0].Object.Raw)
				return
			}
			require.NoError(t, json.Unmarshal(table.Rows[0].Object.Raw, &object))
			assert.Equal(t, claim.UID, object.UID)
			assert.Equal(t, map[string]string{"Metadata": "PartialObjectMetadata", "Object": "SandboxClaim"}[include], object.Kind)
		})
	}
	t.Run("a watch: every event is a table, the first with the columns", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), framework.BoundTimeout)
		defer cancel()
		stream, err := w.Kube.Discovery().RESTClient().Get().AbsPath(claims).Param("watch", "1").SetHeader("Accept", accept).Stream(ctx)
		require.NoError(t, err)
		defer func() { _ = stream.Close() }()
		events := json.NewDecoder(stream)
		next := func() (string, *metav1.Table) {
			event := metav1.WatchEvent{}
			require.NoError(t, events.Decode(&event))
			return event.Type, rows(t, event.Object.Raw)
		}
		kind, table := next()
		assert.Equal(t, "ADDED", kind)
		assert.Equal(t, "Name", table.ColumnDefinitions[0].Name)
		_, err = w.Kubectl(ctx, "--namespace", w.namespace, "label", "sbclaim", claim.Name, "seen=yes")
		require.NoError(t, err)
		kind, table = next()
		assert.Equal(t, "MODIFIED", kind)
		assert.Empty(t, table.ColumnDefinitions)
	})
}
