package report

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTell_WritesEachForm(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	var printed bytes.Buffer
	require.NoError(t, sample().Tell(&printed, dir))
	assert.Contains(t, printed.String(), "acquire, 1 caller")
	for _, name := range []string{"results.json", "results.md", "report.html"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Contains(t, string(data), "acquire, 1 caller")
		assert.Contains(t, printed.String(), "written: "+filepath.Join(dir, name))
	}
}

func TestTell_OneFormCannotBeWritten_TheOthersAre(t *testing.T) {
	dir := t.TempDir()
	run := sample()
	run.Sections[0].Rows[0].Value = math.NaN() // which JSON has no form for
	var printed bytes.Buffer
	require.ErrorContains(t, run.Tell(&printed, dir), filepath.Join(dir, "results.json")+`: section "bound"`)
	assert.FileExists(t, filepath.Join(dir, "report.html"))
	assert.FileExists(t, filepath.Join(dir, "results.md"))
	assert.NotContains(t, printed.String(), "written: "+filepath.Join(dir, "results.json"))
}

func TestTell_NoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, sample().Tell(&bytes.Buffer{}, filepath.Join(file, "results")), file)
}
