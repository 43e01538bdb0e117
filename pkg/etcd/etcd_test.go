package etcd

import (
	"context"
	"os"
	"path/filepath"
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

func TestStart_ToldToEndWhileItWaitsForTheFolder_Ends(t *testing.T) {
	cfg := Config{Dir: shortDir(t), QuotaBytes: 1 << 30}
	first, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(first.Stop)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Start(ctx, cfg)
		ended <- err
	}()
	cancel()
	require.ErrorContains(t, <-ended, "locking the embedded etcd's folder")
}

// Whoever else is on the machine could speak as a peer, by a socket that no file's permissions protect.
func TestStart_OpensNoSocketButItsOwnFile(t *testing.T) {
	before := sockets(t)
	dir := shortDir(t)
	s, err := Start(t.Context(), Config{Dir: dir, QuotaBytes: 1 << 30})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	var opened []string
	for name := range sockets(t) {
		if !before[name] {
			opened = append(opened, name)
		}
	}
	assert.Equal(t, []string{filepath.Join(dir, "client.sock")}, opened)
}

// sockets are the names of the Unix sockets that this process listens on or is connected by.
func sockets(t *testing.T) map[string]bool {
	t.Helper()
	mine := map[string]bool{}
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, file := range files {
		target, _ := os.Readlink("/proc/self/fd/" + file.Name()) // it may be closed by now
		mine[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
	}
	table, err := os.ReadFile("/proc/self/net/unix")
	require.NoError(t, err)
	names := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		const inode, name = 6, 7 // the columns; unnamed sockets have no name
		if fields := strings.Fields(line); len(fields) > name && mine[fields[inode]] {
			names[fields[name]] = true
		}
	}
	return names
}

func TestStart_PathTooLongForASocket_SaysSo(t *testing.T) {
	_, err := Start(t.Context(), Config{Dir: shortDir(t) + "/" + strings.Repeat("d", maxSocketPath), QuotaBytes: 1})
	require.ErrorContains(t, err, "choose a shorter folder")
}
