package etcd

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// patience is for what etcd does by itself, on a busy machine.
const patience = 30 * time.Second

var testClock clock.PassiveClock = clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func TestRestore_IntoAnEmptyFolder_ServerStartsWithExactlyTheKeysOfTheSnapshot(t *testing.T) {
	source, sourceDir := running(t)
	client := connect(t, source)
	for _, pair := range [][2]string{{"/a", "1"}, {"/b", "2"}, {"/gone", "3"}, {"/a", "4"}} {
		_, err := client.Put(t.Context(), pair[0], pair[1])
		require.NoError(t, err)
	}
	_, err := client.Delete(t.Context(), "/gone")
	require.NoError(t, err)
	want, before := keys(t, client)
	var snapshot bytes.Buffer
	_, err = Snapshot(t.Context(), sourceDir, &snapshot)
	require.NoError(t, err)
	_, err = client.Put(t.Context(), "/later", "5")
	require.NoError(t, err)
	_, err = client.Delete(t.Context(), "/b")
	require.NoError(t, err)

	dir := filepath.Join(shortDir(t), "new")
	restored, err := Restore(t.Context(), RestoreConfig{Dir: dir, Clock: testClock}, &snapshot)
	require.NoError(t, err)
	assert.Equal(t, &Restored{Keys: 2, Revision: before + revisionBump}, restored)
	assert.NoDirExists(t, filepath.Join(dir, "restoring"))

	// Twice: the first start resumes what the second finds done.
	for range 2 {
		s, err := Start(t.Context(), Config{Dir: dir, QuotaBytes: testQuota})
		require.NoError(t, err)
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}})
		require.NoError(t, err)
		got, revision := keys(t, client)
		assert.Equal(t, want, got)
		assert.GreaterOrEqual(t, revision, restored.Revision)
		_, err = client.Put(t.Context(), "/a", "4")
		require.NoError(t, err, "it can be written to")
		require.NoError(t, client.Close())
		s.Stop()
	}
}

// A watcher that goes on from what it saw after the snapshot would miss all until that revision is reached once more.
func TestRestore_WatchThatKnewMore_IsToldToBeginAnew(t *testing.T) {
	dir := shortDir(t)
	restored, err := Restore(t.Context(), RestoreConfig{Dir: dir, Clock: testClock}, bytes.NewReader(snapshotOf(t, "/a", "1")))
	require.NoError(t, err)
	client := connect(t, runOn(t, dir))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const sinceTheSnapshot = 1000
	answer, ok := <-client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(sinceTheSnapshot))
	require.True(t, ok)
	assert.Equal(t, restored.Revision, answer.CompactRevision, "what it asks for is told to be compacted")
	put, err := client.Put(ctx, "/b", "2")
	require.NoError(t, err)
	assert.Greater(t, put.Header.Revision, int64(revisionBump), "no revision is given out a second time")
}

func TestRestore_WhatWasRestored_CanBeBackedUpAndRestoredAgain(t *testing.T) {
	snapshot := snapshotOf(t, "/a", "1")
	var last int64
	for range 3 {
		dir := shortDir(t)
		restored, err := Restore(t.Context(), RestoreConfig{Dir: dir, Clock: testClock}, bytes.NewReader(snapshot))
		require.NoError(t, err)
		assert.Equal(t, int64(1), restored.Keys)
		assert.Greater(t, restored.Revision, last)
		last = restored.Revision
		s, err := Start(t.Context(), Config{Dir: dir, QuotaBytes: testQuota})
		require.NoError(t, err)
		var out bytes.Buffer
		_, err = Snapshot(t.Context(), dir, &out)
		require.NoError(t, err)
		s.Stop()
		snapshot = out.Bytes()
	}
}

func TestRestore_DataThere_AreRefused(t *testing.T) {
	snapshot := snapshotOf(t, "/a", "1")
	dir := occupied(t)
	_, err := Restore(t.Context(), RestoreConfig{Dir: dir, Clock: testClock}, bytes.NewReader(snapshot))
	require.ErrorContains(t, err, data(dir)+" holds data already: move them away, or let them be moved aside by --move-existing")
	got, _ := keys(t, connect(t, runOn(t, dir)))
	assert.Equal(t, map[string]string{"/there": "before"}, got, "they are as they were")
}

func TestRestore_DataThereAndToldToMoveThem_AreKeptAside(t *testing.T) {
	snapshot := snapshotOf(t, "/a", "1")
	dir := occupied(t)
	restored, err := Restore(t.Context(), RestoreConfig{Dir: dir, MoveExisting: true, Clock: testClock}, bytes.NewReader(snapshot))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "data.before-20260102T030405Z"), restored.MovedTo)
	s, err := Start(t.Context(), Config{Dir: dir, QuotaBytes: testQuota})
	require.NoError(t, err)
	got, _ := keys(t, connect(t, s))
	assert.Equal(t, map[string]string{"/a": "1"}, got)
	s.Stop()

	_, err = Restore(t.Context(), RestoreConfig{Dir: dir, MoveExisting: true, Clock: testClock}, bytes.NewReader(snapshot))
	require.ErrorContains(t, err, restored.MovedTo+" exists: try again", "nothing that was kept is replaced")

	require.NoError(t, os.RemoveAll(data(dir)))
	require.NoError(t, os.Rename(restored.MovedTo, data(dir)))
	got, _ = keys(t, connect(t, runOn(t, dir)))
	assert.Equal(t, map[string]string{"/there": "before"}, got, "whoever wants them back has them")
}

// occupied is a folder on which a server has run.
func occupied(t *testing.T) string {
	t.Helper()
	dir := shortDir(t)
	s, err := Start(t.Context(), Config{Dir: dir, QuotaBytes: testQuota})
	require.NoError(t, err)
	_, err = connect(t, s).Put(t.Context(), "/there", "before")
	require.NoError(t, err)
	s.Stop()
	return dir
}

func TestRestore_ServerRuns_IsRefusedSoon(t *testing.T) {
	snapshot := snapshotOf(t, "/a", "1")
	s, dir := running(t)
	_, err := Restore(t.Context(), RestoreConfig{Dir: dir, MoveExisting: true, Clock: testClock}, bytes.NewReader(snapshot))
	require.ErrorContains(t, err, "a server runs on "+dir+", or another restore: end it first")
	_, err = connect(t, s).Get(t.Context(), "/a")
	require.NoError(t, err, "nothing happened to it")
}

func TestRestore_NoGoodSnapshot_IsRefusedAndTheDataStay(t *testing.T) {
	good := snapshotOf(t, "/a", "1")
	altered := bytes.Clone(good)
	altered[len(altered)/2] ^= 1
	otherSum := bytes.Clone(good)
	otherSum[len(otherSum)-1] ^= 1
	tests := map[string]struct {
		content []byte
		says    string
	}{
		"cut off":                       {good[:len(good)/2+1], "do not end with a checksum"},
		"cut off where a page ends":     {good[:4096+len(good)%sectorSize], "damaged or altered"},
		"without its checksum":          {good[:len(good)-len(good)%sectorSize], "do not end with a checksum"},
		"empty":                         {nil, "its 0 bytes do not end with a checksum"},
		"no snapshot":                   {[]byte("a file of another kind"), "is no snapshot of an etcd"},
		"one bit of the content is off": {altered, "damaged or altered"},
		"one bit of the sum is off":     {otherSum, "damaged or altered"},
	}
	dir := occupied(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Restore(t.Context(), RestoreConfig{Dir: dir, MoveExisting: true, Clock: testClock}, bytes.NewReader(tt.content))
			require.ErrorContains(t, err, tt.says)
			require.ErrorContains(t, err, "use another copy of it, or another snapshot")
			assert.NoDirExists(t, filepath.Join(dir, "restoring"))
		})
	}
	got, _ := keys(t, connect(t, runOn(t, dir)))
	assert.Equal(t, map[string]string{"/there": "before"}, got)
}

func TestRestore_EndedWhileItWaitsForTheSnapshot_LeavesNothing(t *testing.T) {
	dir := shortDir(t)
	never, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Restore(ctx, RestoreConfig{Dir: dir, Clock: testClock}, never)
		ended <- err
	}()
	_, err := writer.Write([]byte("the beginning")) // is taken once it reads
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	assert.NoDirExists(t, filepath.Join(dir, "restoring"))
	assert.NoDirExists(t, data(dir))
}

func TestRestore_AfterOneThatWasKilled_Works(t *testing.T) {
	dir := shortDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "restoring", "member", "snap"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "restoring", "member", "snap", "db"), []byte("half"), 0o600))
	require.NoError(t, os.Mkdir(data(dir), 0o700), "what an etcd leaves that ended before it wrote anything")
	_, err := Restore(t.Context(), RestoreConfig{Dir: dir, Clock: testClock}, bytes.NewReader(snapshotOf(t, "/a", "1")))
	require.NoError(t, err)
	got, _ := keys(t, connect(t, runOn(t, dir)))
	assert.Equal(t, map[string]string{"/a": "1"}, got)
}
