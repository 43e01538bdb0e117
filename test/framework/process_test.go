package framework

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpawn_EndedProcessIsNotAlive(t *testing.T) {
	p, err := spawn(filepath.Join(t.TempDir(), "log"), false, "/bin/sleep", "60")
	require.NoError(t, err)
	r, err := record(p.cmd.Process.Pid)
	require.NoError(t, err)
	require.True(t, r.alive())
	require.False(t, p.ended())

	require.NoError(t, p.signal(syscall.SIGKILL, Shortly))
	require.True(t, p.ended())
	require.False(t, r.alive())
	require.NoError(t, p.signal(syscall.SIGTERM, Shortly), "ending twice is no error")
}

func TestStopRecorded_EndsTheProcessAndForgetsIt(t *testing.T) {
	p, err := spawn(filepath.Join(t.TempDir(), "log"), true, "/bin/sleep", "60")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "sleep.pid")
	require.NoError(t, writeRecord(file, p.cmd.Process.Pid))

	ran, err := stopRecorded(file, 5*time.Second)
	require.NoError(t, err)
	require.True(t, ran)
	require.NoFileExists(t, file)

	ran, err = stopRecorded(file, 5*time.Second)
	require.NoError(t, err)
	require.False(t, ran)
}

func TestStopRecorded_AnotherProcessWithThePid_IsLeftAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "other.pid")
	require.NoError(t, os.WriteFile(file, []byte(`{"pid":1,"startTime":1,"bootID":"another boot"}`), 0o600))
	ran, err := stopRecorded(file, time.Second)
	require.NoError(t, err)
	require.False(t, ran)
}
