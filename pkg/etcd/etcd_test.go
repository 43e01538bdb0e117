package etcd

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// shortDir is a folder whose path leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "etcd") //nolint:usetesting // t.TempDir has the test's name in it, and no room for a socket
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func connect(t *testing.T, s *Server) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, DialTimeout: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestStart_StoppedAndStartedAgain_KeepsItsData(t *testing.T) {
	cfg := Config{Dir: shortDir(t), QuotaBytes: 1 << 30}
	first, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	_, err = connect(t, first).Put(t.Context(), "a", "b")
	require.NoError(t, err)

	second := make(chan *Server, 1)
	go func() {
		s, err := Start(context.WithoutCancel(t.Context()), cfg)
		assert.NoError(t, err)
		second <- s
	}()
	_, err = connect(t, first).Get(t.Context(), "a")
	require.NoError(t, err, "a second process on the folder waits, and leaves the first its sockets")
	first.Stop()
	again := <-second
	t.Cleanup(again.Stop)
	got, err := connect(t, again).Get(t.Context(), "a")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	assert.Equal(t, "b", string(got.Kvs[0].Value))
}

func TestStart_PathTooLongForASocket_SaysSo(t *testing.T) {
	_, err := Start(t.Context(), Config{Dir: shortDir(t) + "/" + strings.Repeat("d", maxSocketPath), QuotaBytes: 1})
	require.ErrorContains(t, err, "choose a shorter folder")
}
