package framework

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpawn_KilledProcessHasEnded(t *testing.T) {
	p, err := spawn(filepath.Join(t.TempDir(), "log"), "/bin/sleep", "60")
	require.NoError(t, err)
	require.False(t, p.ended())
	require.NoError(t, p.signal(syscall.SIGKILL, Shortly))
	require.True(t, p.ended())
	require.NoError(t, p.signal(syscall.SIGTERM, Shortly), "ending twice is no error")
}
