package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/term"

	"github.com/altairalabs/omnia-sandboxes/pkg/apiserver"
)

const (
	folderFlag = "embedded-etcd-dir"
	// standardStream stands for standard input or output in a file's place.
	standardStream = "-"
)

// folderFlags gives a command flags of its own, whose first is the folder's, as the server has it.
func folderFlags(cmd *cobra.Command, dir *string) *pflag.FlagSet {
	sets := cliflag.NamedFlagSets{}
	flags := sets.FlagSet(cmd.Name())
	flags.StringVar(dir, folderFlag, apiserver.DefaultEmbeddedEtcdDir, "Folder of the server's embedded etcd.")
	// Else the help of the command above would be shown, which has the server's flags.
	width, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, sets, width)
	return flags
}

// fileArgument is how the commands ask for their one argument.
func fileArgument(_ *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return errors.New("name one FILE, or - for the standard stream, after the flags")
	}
	return nil
}

func needFolder(dir string) error {
	if dir == "" {
		return fmt.Errorf("--%s is empty: name the folder of the server's embedded etcd", folderFlag)
	}
	return nil
}
