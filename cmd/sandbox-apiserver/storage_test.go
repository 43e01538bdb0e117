package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/altairalabs/omnia-sandboxes/pkg/apiserver"
	"github.com/altairalabs/omnia-sandboxes/pkg/etcd"
)

// run runs a command as main does, and gives what it wrote.
func run(t *testing.T, cmd *cobra.Command, stdin io.Reader, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// folder is one whose path leaves room for a socket's.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "etcd") //nolint:usetesting // t.TempDir has the test's name in it, and no room for a socket
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// serve runs an embedded etcd for as long as the test.
func serve(t *testing.T, dir string) *clientv3.Client {
	t.Helper()
	server, err := etcd.Start(t.Context(), etcd.Config{Dir: dir, QuotaBytes: 1 << 30})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestSnapshotAndRestore_ByFileAndByStandardStreams(t *testing.T) {
	source := folder(t)
	_, err := serve(t, source).Put(t.Context(), "/claim", "bound")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "backup")

	_, told, err := run(t, newSnapshotCommand(), nil, "--embedded-etcd-dir="+source, file)
	require.NoError(t, err)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Regexp(t, fmt.Sprintf("^Wrote %d bytes, sha256 [0-9a-f]{64}\n$", len(content)), told)
	streamed, told, err := run(t, newSnapshotCommand(), nil, "--embedded-etcd-dir="+source, "-")
	require.NoError(t, err)
	assert.Regexp(t, fmt.Sprintf("^Wrote %d bytes", len(streamed)), told, "and nothing of it between the snapshot's bytes")

	for name, restore := range map[string]struct {
		stdin io.Reader
		file  string
		told  string
	}{
		"by a file":         {nil, file, ""},
		"by standard input": {bytes.NewBufferString(streamed), "-", "Waiting for a snapshot on standard input\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			out, told, err := run(t, newRestoreCommand(), restore.stdin, "--embedded-etcd-dir="+dir, restore.file)
			require.NoError(t, err)
			assert.Empty(t, out)
			assert.Equal(t, restore.told+"Restored 1 keys into "+dir+"\n", told)
			got, err := serve(t, dir).Get(t.Context(), "/claim")
			require.NoError(t, err)
			require.Len(t, got.Kvs, 1)
			assert.Equal(t, "bound", string(got.Kvs[0].Value))
		})
	}
	t.Run("over data that are moved aside", func(t *testing.T) {
		dir := folder(t)
		for range 2 {
			_, told, err = run(t, newRestoreCommand(), nil, "--embedded-etcd-dir="+dir, "--move-existing", file)
			require.NoError(t, err)
		}
		assert.Contains(t, told, "What was there before is in "+filepath.Join(dir, "data.before-"))
	})
}

func TestSnapshotAndRestore_Refused(t *testing.T) {
	dir := folder(t)
	const noServer, missing = "no server runs an embedded etcd in ", "/nowhere/backup"
	tests := map[string]struct {
		cmd  *cobra.Command
		args []string
		says []string
	}{
		"snapshot to nowhere":             {newSnapshotCommand(), nil, []string{"name one FILE, or - for the standard stream"}},
		"snapshot to a nameless file":     {newSnapshotCommand(), []string{""}, []string{"name one FILE"}},
		"snapshot to two files":           {newSnapshotCommand(), []string{"a", "b"}, []string{"name one FILE"}},
		"snapshot of no folder":           {newSnapshotCommand(), []string{"--embedded-etcd-dir=", "a"}, []string{"--embedded-etcd-dir is empty: name the folder"}},
		"snapshot where no server runs":   {newSnapshotCommand(), []string{"--embedded-etcd-dir=" + dir, "-"}, []string{"by --embedded-etcd-dir: " + noServer + dir, "give the folder of one that does"}},
		"snapshot of a server's own flag": {newSnapshotCommand(), []string{"--etcd-servers=a", "-"}, []string{"unknown flag: --etcd-servers"}},
		"restore of nothing":              {newRestoreCommand(), nil, []string{"name one FILE, or - for the standard stream"}},
		"restore into no folder":          {newRestoreCommand(), []string{"--embedded-etcd-dir=", "a"}, []string{"--embedded-etcd-dir is empty: name the folder"}},
		"restore of a file that is none":  {newRestoreCommand(), []string{"--embedded-etcd-dir=" + dir, missing}, []string{"restoring by --embedded-etcd-dir: opening the snapshot: open " + missing}},
		"restore of no snapshot":          {newRestoreCommand(), []string{"--embedded-etcd-dir=" + dir, "-"}, []string{"restoring by --embedded-etcd-dir: ", "use another copy of it, or another snapshot"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, _, err := run(t, tt.cmd, bytes.NewBufferString("no snapshot"), tt.args...)
			for _, says := range tt.says {
				require.ErrorContains(t, err, says)
			}
			assert.Empty(t, out, "nothing is taken for a snapshot")
		})
	}
}

func TestCommands_FlagsAndHelpAreTheirOwn(t *testing.T) {
	for _, cmd := range []*cobra.Command{newSnapshotCommand(), newRestoreCommand()} {
		parent := &cobra.Command{Use: "sandbox-apiserver"}
		parent.SetHelpFunc(func(*cobra.Command, []string) { t.Error("the server's help") })
		parent.AddCommand(cmd)
		help, _, err := run(t, parent, nil, cmd.Name(), "--help")
		require.NoError(t, err)
		assert.Contains(t, help, "--embedded-etcd-dir")
		assert.Equal(t, apiserver.DefaultEmbeddedEtcdDir, cmd.Flags().Lookup(folderFlag).DefValue)
	}
}
