package meter

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMachine(t *testing.T) {
	facts := Machine()
	var names []string
	for _, fact := range facts {
		names = append(names, fact.Name)
		assert.NotEmpty(t, fact.Value, fact.Name)
	}
	assert.Equal(t, []string{"CPUs", "Processor", "Memory", "Kernel", "Go"}, names)
	assert.Contains(t, facts[4].Value, runtime.Version())
	if runtime.GOOS == "linux" {
		assert.Regexp(t, `^\d+\.\d GiB$`, facts[2].Value)
		assert.NotEqual(t, "unknown", facts[3].Value)
	}
}

func TestFacts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpuinfo")
	require.NoError(t, os.WriteFile(path, []byte("processor\t: 0\nmodel\t\t: 85\nmodel name\t: A CPU: fast\n\nmodel name\t: another\n"), 0o600))
	assert.Equal(t, "A CPU: fast", entry(path, "model name"))
	assert.Equal(t, "unknown", known(entry(path, "cpu MHz")))
	assert.Equal(t, "unknown", known(entry(path+"-none", "model name")))
	assert.Equal(t, "processor\t: 0", firstLine(path))
	assert.Equal(t, "7.8 GiB", inGiB("8152124 kB"))
	assert.Equal(t, "unknown", known(inGiB("")))
	assert.Equal(t, "4", cpus(4, 4))
	assert.Equal(t, "4", cpus(4, 8))
	assert.Equal(t, "4, of which 2 may be used", cpus(4, 2))
}

func TestFsyncLatency(t *testing.T) {
	dir := t.TempDir()
	p50, p99, err := FsyncLatency(dir)
	require.NoError(t, err)
	assert.Positive(t, p50)
	assert.GreaterOrEqual(t, p99, p50)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestFsyncLatencyOfAFolderThatIsNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	_, _, err := FsyncLatency(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "measuring the disk under "+dir)
}
