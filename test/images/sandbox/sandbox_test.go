package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newShell(t *testing.T) *shell {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return &shell{root: root}
}

func TestShell(t *testing.T) {
	sh := newShell(t)
	for _, tt := range []struct {
		line, want string
		code       int
	}{
		{"echo hello world", "hello world\n", 0},
		{`echo "two  spaces" 'and more'`, "two  spaces and more\n", 0},
		{"echo one > file", "", 0},
		{"echo two >> file", "", 0},
		{"cat file", "one\ntwo\n", 0},
		{"ls", "file\n", 0},
		{"", "", 0},
		{`echo "open`, "a quote \" is not closed\n", 2},
	} {
		t.Run(tt.line, func(t *testing.T) {
			got, code := sh.run(t.Context(), tt.line)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.code, code)
		})
	}
	_, code := sh.run(t.Context(), "rm -rf /")
	assert.Equal(t, notFoundCode, code)
	_, code = sh.run(t.Context(), "cat missing")
	assert.Equal(t, 1, code)
}

func TestShellStaysInItsFolder(t *testing.T) {
	sh := newShell(t)
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(sh.root.Name(), "link")))
	for _, name := range []string{outside, "../secret", "link", "a/../../secret"} {
		_, err := sh.read(name)
		require.Error(t, err, name)
		require.Error(t, sh.write("link", "x", false))
	}
}

func TestMCP(t *testing.T) {
	server := httptest.NewServer(handler(newShell(t)))
	t.Cleanup(server.Close)
	health, err := http.Get(server.URL + "/healthz")
	require.NoError(t, err)
	require.NoError(t, health.Body.Close())
	assert.Equal(t, http.StatusOK, health.StatusCode)

	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp"}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "shell", Arguments: map[string]any{"command": "echo hi"}})
	require.NoError(t, err)
	assert.False(t, result.IsError)
	assert.Equal(t, map[string]any{"output": "hi\n", "exitCode": 0.0}, result.StructuredContent)
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "write_file", Arguments: map[string]any{"path": "a", "content": "b"}})
	require.NoError(t, err)
	result, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "a"}})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"text": "b"}, result.StructuredContent)
}
