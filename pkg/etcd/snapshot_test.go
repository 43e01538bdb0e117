package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const testQuota = 1 << 30

// running starts a server on a new folder, for as long as the test runs.
func running(t *testing.T) (s *Server, dir string) {
	t.Helper()
	dir = shortDir(t)
	return runOn(t, dir), dir
}

func runOn(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), Config{Dir: dir, QuotaBytes: testQuota})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

// snapshotOf is a snapshot of a server that held these keys.
func snapshotOf(t *testing.T, pairs ...string) []byte {
	t.Helper()
	s, dir := running(t)
	client := connect(t, s)
	for i := 0; i < len(pairs); i += 2 {
		_, err := client.Put(t.Context(), pairs[i], pairs[i+1])
		require.NoError(t, err)
	}
	var out bytes.Buffer
	_, err := Snapshot(t.Context(), dir, &out)
	require.NoError(t, err)
	return out.Bytes()
}

// keys are all keys of a server with their values, and the revision at which they were read.
func keys(t *testing.T, client *clientv3.Client) (map[string]string, int64) {
	t.Helper()
	got, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	require.NoError(t, err)
	all := map[string]string{}
	for _, kv := range got.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all, got.Header.Revision
}

// A writer changes two keys at once, over and over: a copy that was not made of one moment would tell them apart.
func TestSnapshot_WhileWritesGoOn_HasThemOfOneMoment(t *testing.T) {
	s, dir := running(t)
	client := connect(t, s)
	written := atomic.Int64{}
	writing, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for i := int64(1); ; i++ {
			value := strconv.FormatInt(i, 10)
			if _, err := client.Txn(writing).Then(clientv3.OpPut("/first", value), clientv3.OpPut("/second", value)).Commit(); err != nil {
				ended <- err
				return
			}
			written.Store(i)
		}
	}()
	waitFor(t, &written, 10)

	file := filepath.Join(t.TempDir(), "backup")
	atLeast := written.Load()
	summary, err := SnapshotFile(t.Context(), dir, file)
	require.NoError(t, err)
	waitFor(t, &written, written.Load()+10) // it serves on
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)

	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, Summary{Bytes: int64(len(content)), SHA256: fmt.Sprintf("%x", sha256.Sum256(content))}, summary)
	restored := shortDir(t)
	_, err = Restore(t.Context(), RestoreConfig{Dir: restored, Clock: testClock}, bytes.NewReader(content))
	require.NoError(t, err)
	got, _ := keys(t, connect(t, runOn(t, restored)))
	require.Len(t, got, 2)
	assert.Equal(t, got["/first"], got["/second"])
	first, err := strconv.ParseInt(got["/first"], 10, 64)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, first, atLeast, "what was answered before the snapshot is in it")
	assert.Less(t, first, written.Load(), "what was written after it is not")
}

// waitFor waits until so many writes were answered.
func waitFor(t *testing.T, written *atomic.Int64, count int64) {
	t.Helper()
	require.Eventually(t, func() bool { return written.Load() >= count }, patience, lockInterval)
}

func TestSnapshotFile_Refused_LeavesNothing(t *testing.T) {
	_, dir := running(t)
	idle, killed := shortDir(t), shortDir(t)
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket(killed), Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	folder := t.TempDir()
	existing := filepath.Join(folder, "existing")
	require.NoError(t, os.WriteFile(existing, []byte("an earlier backup"), 0o600))
	tests := map[string]struct{ dir, file, says string }{
		"the file exists":              {dir, existing, "name another file, or move that one away"},
		"no server runs":               {idle, filepath.Join(folder, "new"), "no server runs an embedded etcd in " + idle + ": give the folder of one that does"},
		"the server was killed":        {killed, filepath.Join(folder, "new"), "no server runs an embedded etcd in " + killed},
		"there is no folder":           {filepath.Join(idle, "none"), filepath.Join(folder, "new"), "no server runs an embedded etcd in"},
		"the file's folder is missing": {dir, filepath.Join(folder, "none", "new"), "making the snapshot's file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := SnapshotFile(t.Context(), tt.dir, tt.file)
			require.ErrorContains(t, err, tt.says)
			left, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Len(t, left, 1)
			content, err := os.ReadFile(existing)
			require.NoError(t, err)
			assert.Equal(t, "an earlier backup", string(content))
		})
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestSnapshot_CannotBeWritten_SaysWhy(t *testing.T) {
	_, dir := running(t)
	_, err := Snapshot(t.Context(), dir, full{})
	require.ErrorIs(t, err, errFull)
}
