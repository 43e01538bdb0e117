package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/altairalabs/omnia-sandboxes/pkg/etcd"
)

func newRestoreCommand() *cobra.Command {
	cfg := etcd.RestoreConfig{Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:   "restore [flags] FILE",
		Short: "Make the folder of the embedded etcd of a snapshot",
		Long: "Makes the folder of an embedded etcd of the snapshot in FILE, or of the one on standard input if FILE is -. No\n" +
			"server may run on the folder. One that is started on it then has what there was when the snapshot was made, and\n" +
			"must be told once, by --accept-new-store, to serve it.",
		Args: fileArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needFolder(cfg.Dir); err != nil {
				return err
			}
			if args[0] == standardStream {
				fmt.Fprintln(cmd.ErrOrStderr(), "Waiting for a snapshot on standard input")
			}
			restored, err := readSnapshot(cmd.Context(), cfg, args[0], cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("restoring by --%s: %w", folderFlag, err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "Restored %d keys into %s\n", restored.Keys, cfg.Dir)
			if restored.MovedTo != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "What was there before is in %s\n", restored.MovedTo)
			}
			return nil
		},
	}
	flags := folderFlags(cmd, &cfg.Dir)
	flags.BoolVar(&cfg.MoveExisting, "move-existing", false, "Move data that the folder holds aside, to data.before-TIME in it, where they stay. Without it such a folder is refused.")
	cmd.Flags().AddFlagSet(flags)
	return cmd
}

func readSnapshot(ctx context.Context, cfg etcd.RestoreConfig, file string, stdin io.Reader) (*etcd.Restored, error) {
	if file == standardStream {
		return etcd.Restore(ctx, cfg, stdin)
	}
	snapshot, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening the snapshot: %w", err)
	}
	defer func() { _ = snapshot.Close() }()
	return etcd.Restore(ctx, cfg, snapshot)
}
