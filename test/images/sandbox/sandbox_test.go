package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newShell(t *testing.T) *shell {
	t.Helper()
	work, err := openFolder(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = work.Close() })
	return &shell{folder: work}
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
		{"echo three>>file", "", 0},
		{"cat file file", "one\ntwo\nthree\none\ntwo\nthree\n", 0},
		{"echo 'a > b'", "a > b\n", 0},
		{`echo a ">" b`, "a > b\n", 0},
		{`echo ""`, "\n", 0},
		{"ls", "file\n", 0},
		{"cat missing", "cat: openat missing: no such file or directory\n", 1},
		{"dial", "dial: usage: dial host:port\n", 1},
		{"hog 1", "held 1 MiB\n", 0},
		{"hog", "hog: usage: hog MiB\n", 1},
		{"ls | cat", "| is not supported: run one command a call, or put it in quotes\n", 2},
		{"echo a >", "> wants one file name, once\n", 2},
		{"> file", "there is no command whose output could go to file\n", 2},
		{"", "", 0},
		{`echo "open`, "a quote \" is not closed\n", 2},
	} {
		t.Run(tt.line, func(t *testing.T) {
			got, code := sh.run(t.Context(), tt.line)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.code, code)
		})
	}
	out, code := sh.run(t.Context(), "rm -rf /")
	assert.Equal(t, notFoundCode, code)
	assert.Contains(t, out, "cat date dial echo env hog id ls pwd uname")
	for _, name := range commandNames() {
		out, _ := sh.run(t.Context(), name)
		assert.NotContains(t, out, "not found", name)
	}
}

func TestShellStaysInItsFolder(t *testing.T) {
	sh := newShell(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	work := sh.folder.path()
	require.NoError(t, os.Symlink(secret, filepath.Join(work, "link")))
	require.NoError(t, os.Symlink(outside, filepath.Join(work, "away")))
	for _, name := range []string{secret, "../secret", "link", "away/secret", "a/../../secret", "/etc/passwd", work + "/../secret"} {
		_, err := sh.folder.read(name)
		require.Error(t, err, name)
		require.Error(t, sh.folder.write(name, "x", false), name)
		_, code := sh.run(t.Context(), "echo x > "+name)
		assert.Equal(t, failedCode, code, name)
	}
	for _, name := range []string{"..", "/", "away", outside} {
		_, err := sh.folder.list(name)
		require.Error(t, err, name)
	}
	left, err := os.ReadFile(secret)
	require.NoError(t, err)
	assert.Equal(t, "secret", string(left))

	require.NoError(t, sh.folder.write(filepath.Join(work, "own"), "mine", false), "its own folder may be named in full")
	out, code := sh.run(t.Context(), "cat "+filepath.Join(work, "own"))
	assert.Zero(t, code)
	assert.Equal(t, "mine", out)
}

func TestFirstCommandFails_NothingIsServed(t *testing.T) {
	err := run(t.Context(), "127.0.0.1:0", t.TempDir(), "cat missing")
	require.ErrorContains(t, err, `running "cat missing": cat: openat missing: no such file or directory`)
}

func TestReadIsBounded(t *testing.T) {
	sh := newShell(t)
	require.NoError(t, sh.folder.write("large", strings.Repeat("x", mostRead+1), false))
	_, err := sh.folder.read("large")
	require.ErrorContains(t, err, "larger than")
}

func TestDial(t *testing.T) {
	sh := newShell(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	out, code := sh.run(t.Context(), "dial "+address)
	assert.Equal(t, "connected to "+address+"\n", out)
	assert.Zero(t, code)
	require.NoError(t, listener.Close())
	out, code = sh.run(t.Context(), "dial "+address)
	assert.Equal(t, "dial: dial "+address+": refused\n", out)
	assert.Equal(t, failedCode, code)
	assert.EqualError(t, notReached("a:1", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}), "dial a:1: timed out after 3s")
}

func TestServeEndsWithItsContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	stuck := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, listener, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(stuck)
			<-r.Context().Done()
		}))
	}()
	go func() {
		if answer, err := http.Get("http://" + listener.Addr().String()); err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-stuck
	cancel()
	began := time.Now()
	require.NoError(t, <-ended)
	assert.Less(t, time.Since(began), 5*time.Second, "a call that goes on is cut")
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
	tools, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	assert.Len(t, tools.Tools, 4)
	for _, tt := range []struct {
		tool string
		args map[string]any
		text string
	}{
		{"write_file", map[string]any{"path": "a", "content": "b"}, "written"},
		{"read_file", map[string]any{"path": "a"}, "b"},
		{"list_dir", map[string]any{}, "a\n"},
	} {
		result, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: tt.tool, Arguments: tt.args})
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"text": tt.text}, result.StructuredContent, tt.tool)
	}
	for _, tool := range []string{"read_file", "write_file", "list_dir"} {
		args := map[string]any{"path": "../a"}
		if tool == "write_file" {
			args["content"] = "x"
		}
		result, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		require.NoError(t, err)
		assert.True(t, result.IsError, tool)
	}
}
