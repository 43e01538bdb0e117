package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const source = `package words

// Colours of a light: what a driver sees.
const (
	Red   = "red" // stop | wait.
	// Green lets <you> go.
	Green = "green"
	hidden = "hidden"
)

// Limit is alone.
const Limit = 2 * 5

// Kind has words of its own.
type Kind string

// One is the tool's to describe.
const One Kind = "one"
`

func TestWords(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "words.go"), []byte(source), 0o600))
	groups, err := readWords(dir)
	require.NoError(t, err)
	require.Len(t, groups, 2, "a block with a comment, and the rest")

	assert.Equal(t, `### Colours of a light

What a driver sees.

| Value | Go constant | Meaning |
| --- | --- | --- |
| `+"`red` | `Red`"+` | stop \| wait. |
| `+"`green` | `Green`"+` | Green lets &lt;you> go. |

`, groups[0].markdown())
	assert.Equal(t, []word{{name: "Limit", value: "2 * 5", text: "Limit is alone.\n"}}, groups[1].words)
}

func TestDefaults(t *testing.T) {
	found, err := findDefaults()
	require.NoError(t, err)
	assert.Contains(t, found, fieldDefault{"ClassReference.kind", "SandboxClass"}, "inside a struct")
	assert.Contains(t, found, fieldDefault{"ScratchVolume.medium", "Disk"}, "behind a pointer, in a list")
	assert.Contains(t, found, fieldDefault{"Enrolment.maxDuration", "15m0s"}, "not a string")
	for _, d := range found {
		assert.NotEqual(t, "SandboxClassSpec.image", d.field, "a field without a default is not listed")
	}
}

func TestAnchor(t *testing.T) {
	assert.Equal(t, "reasons-of-a-refused-acquire-touch-or-release", anchor("Reasons of a refused acquire, touch or release"))
}
