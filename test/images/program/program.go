// Package program is what the main packages beside it have in common: commands by name until the process is asked to end, and
// HTTP until then. It refuses to know any command.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Commands are a program's, by name. Each gets the arguments after its name, and a context that ends with SIGTERM.
type Commands map[string]func(ctx context.Context, args []string) error

// Main runs the process' arguments until SIGTERM, and ends the process with 1 if that fails. A command's -h is no failure.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, name+":", err)
		stop()
		os.Exit(1)
	}
}

// Run runs the command that args begin with. An error of no command, or of an unknown one, holds the usage.
func (c Commands) Run(ctx context.Context, usage string, args []string) error {
	if len(args) == 0 {
		return errors.New("no command; " + strings.TrimSpace(usage))
	}
	command, ok := c[args[0]]
	if !ok {
		return fmt.Errorf("unknown command %q\n%s", args[0], usage)
	}
	return command(ctx, args[1:])
}

// Serve serves until ctx ends, which is no error.
func Serve(ctx context.Context, listener net.Listener, server *http.Server) error {
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
