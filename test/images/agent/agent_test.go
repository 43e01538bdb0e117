package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned/fake"
	"github.com/altairalabs/omnia-sandboxes/pkg/client"
)

type toolInput struct {
	Command string `json:"command"`
}

type toolOutput struct {
	Output string `json:"output"`
}

// toolServer answers every command line by run, and gives its host:port.
func toolServer(t *testing.T, run func(line string) string) string {
	t.Helper()
	tools := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "shell"}, func(_ context.Context, _ *mcp.CallToolRequest, in toolInput) (*mcp.CallToolResult, toolOutput, error) {
		return nil, toolOutput{Output: run(in.Command)}, nil
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// apiServer binds every acquire to address, and counts what is asked by subresource. A touch is answered with touched.
func apiServer(t *testing.T, address string, touched error) (*client.Client, map[string]int) {
	t.Helper()
	set := fake.NewSimpleClientset()
	asked := map[string]int{}
	set.PrependReactor("create", "sandboxclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		asked[action.GetSubresource()]++
		switch action.GetSubresource() {
		case "acquire":
			return true, &v1alpha1.SandboxAcquire{Status: v1alpha1.SandboxAcquireStatus{
				ClaimName: "a", ClaimUID: "u", Phase: v1alpha1.PhaseBound, Addresses: map[string]string{"mcp": address}, Created: true,
			}}, nil
		case "touch":
			return true, &v1alpha1.SandboxTouch{}, touched
		}
		return true, &v1alpha1.SandboxRelease{}, nil
	})
	return client.New(set.SandboxV1alpha1(), "ns"), asked
}

func TestPlay(t *testing.T) {
	shut := func(line string) string {
		if strings.HasPrefix(line, "dial") {
			return "dial: dial 203.0.113.10:80: timed out after 3s\n"
		}
		return "ran " + line
	}
	open := func(string) string { return "connected to 203.0.113.10:80\n" }
	reaped := apierrors.NewNotFound(v1alpha1.Resource("sandboxclaims"), "a")
	for name, tt := range map[string]struct {
		args    []string
		run     func(string) string
		touched error
		asked   map[string]int
		says    []string
		err     string
	}{
		"all is well: played to the end": {nil, shut, nil, map[string]int{"acquire": 1, "touch": 1, "release": 1},
			[]string{"acquire shell/main for session s", "created: true", "ran cat hello.txt", "the conversation has ended"}, ""},
		"not to be released: left": {[]string{"-release=false"}, shut, nil, map[string]int{"acquire": 1, "touch": 1}, []string{"ran id"}, ""},
		"the sandbox is shut in: told": {[]string{"-dial", "203.0.113.10:80"}, shut, nil, map[string]int{"acquire": 1, "touch": 1, "release": 1},
			[]string{"timed out after 3s"}, ""},
		"the sandbox gets out: fails, and is released": {[]string{"-dial", "203.0.113.10:80"}, open, nil, map[string]int{"acquire": 1, "release": 1},
			[]string{"failed: the sandbox reached", "the conversation has ended"}, "nothing stopped it"},
		"the sandbox is gone: fails": {nil, shut, reaped, map[string]int{"acquire": 1, "touch": 1, "release": 1}, []string{"failed: sandbox a is gone"}, "is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := parse("play", append([]string{"-namespace", "ns", "-session", "s", "-handle", "shell/main"}, tt.args...))
			require.NoError(t, err)
			c, asked := apiServer(t, toolServer(t, tt.run), tt.touched)
			var out bytes.Buffer
			err = (&player{request: r, out: &out}).play(t.Context(), c)
			if tt.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.err)
			}
			assert.Equal(t, tt.asked, asked)
			for _, want := range tt.says {
				assert.Contains(t, out.String(), want)
			}
		})
	}
}

func TestPlayWithoutItsPort(t *testing.T) {
	c, asked := apiServer(t, toolServer(t, func(string) string { return "" }), nil)
	r, err := parse("play", []string{"-namespace", "ns", "-port", "http"})
	require.NoError(t, err)
	require.ErrorContains(t, (&player{request: r, out: io.Discard}).play(t.Context(), c), "no port named http")
	assert.Equal(t, 1, asked["release"])
}

func TestCall(t *testing.T) {
	address := toolServer(t, func(line string) string { return line })
	require.NoError(t, run(t.Context(), []string{"call", "-address", address, "-args", `{"command":"id"}`}))
	require.Error(t, run(t.Context(), []string{"call", "-address", address, "-tool", "none"}))
	require.ErrorContains(t, run(t.Context(), []string{"call", "-address", address, "-args", "{"}), "reading -args")
	require.ErrorContains(t, run(t.Context(), []string{"call"}), "give -address")
}

func TestDial(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- answer(ctx, listener) }()
	require.NoError(t, run(t.Context(), []string{"dial", address}))
	hello, err := http.Get("http://" + address)
	require.NoError(t, err)
	said, err := io.ReadAll(hello.Body)
	require.NoError(t, err)
	require.NoError(t, hello.Body.Close())
	assert.Equal(t, "hello\n", string(said))
	cancel()
	require.NoError(t, <-ended)
	require.Error(t, run(t.Context(), []string{"dial", address}), "nobody listens any more")
}

func TestRun(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), nil), "usage")
	require.ErrorContains(t, run(t.Context(), []string{"dance"}), `unknown command "dance"`)
	require.ErrorContains(t, run(t.Context(), []string{"listen", ":1", ":2"}), "usage")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, run(ended, []string{"sleep"}))
	require.NoError(t, run(ended, []string{"listen", "127.0.0.1:0"}))
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	require.ErrorIs(t, run(t.Context(), []string{"acquire", "-namespace", "ns", "-kubeconfig", missing}), os.ErrNotExist)
}
