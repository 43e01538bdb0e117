// Command sandbox-apiserver serves the sandbox.omnia API group behind a Kubernetes aggregator and runs its controllers.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/component-base/term"

	"github.com/altairalabs/omnia-sandboxes/pkg/apiserver"
)

func main() {
	os.Exit(cli.Run(newCommand()))
}

func newCommand() *cobra.Command {
	options := apiserver.NewOptions()
	cmd := &cobra.Command{
		Use:           "sandbox-apiserver",
		Short:         "Serves SandboxClaims and their classes, and turns claims into sandboxes",
		Long:          "Serves SandboxClaims and their classes, and turns claims into sandboxes.\n\nThe commands snapshot and restore back up the embedded etcd.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(options.Logs, nil); err != nil {
				return fmt.Errorf("setting up logging: %w", err)
			}
			if err := options.Complete(); err != nil {
				return err
			}
			if err := options.Validate(); err != nil {
				return err
			}
			return options.Run(cmd.Context())
		},
	}
	sets := options.Flags()
	for _, set := range sets.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	width, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, *sets, width)
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(newSnapshotCommand(), newRestoreCommand())
	cmd.SetContext(genericapiserver.SetupSignalContext())
	return cmd
}
