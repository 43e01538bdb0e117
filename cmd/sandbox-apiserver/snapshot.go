package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/altairalabs/omnia-sandboxes/pkg/etcd"
)

func newSnapshotCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "snapshot [flags] FILE",
		Short: "Write a snapshot of the embedded etcd of a server that runs",
		Long: "Writes all that the embedded etcd of a server that runs here holds, as of one moment, to FILE, which must not\n" +
			"exist, or to standard output if FILE is -. The server serves on. What is written is for the command restore.",
		Args: fileArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needFolder(dir); err != nil {
				return err
			}
			summary, err := writeSnapshot(cmd.Context(), dir, args[0], cmd.OutOrStdout())
			if err != nil {
				return fmt.Errorf("making a snapshot by --%s: %w", folderFlag, err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "Wrote %d bytes, sha256 %s\n", summary.Bytes, summary.SHA256)
			return nil
		},
	}
	cmd.Flags().AddFlagSet(folderFlags(cmd, &dir))
	return cmd
}

func writeSnapshot(ctx context.Context, dir, file string, stdout io.Writer) (etcd.Summary, error) {
	if file == standardStream {
		return etcd.Snapshot(ctx, dir, stdout)
	}
	return etcd.SnapshotFile(ctx, dir, file)
}
