package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// maxFakeNodes keeps a typing error from filling etcd.
const maxFakeNodes = 5000

// command is the parsed command line.
type command struct {
	name    string
	up      upOptions
	images  []string
	program string
}

// upOptions is what the user may choose about a cluster.
type upOptions struct {
	realNode      bool
	fakeNodes     int
	controllerQPS int
}

// parse reads the command line. Its errors wrap errUsage, except for flag.ErrHelp.
func parse(args []string) (command, error) {
	if len(args) == 0 {
		return command{}, fmt.Errorf("%w: no command given", errUsage)
	}
	cmd := command{name: args[0]}
	flags := flag.NewFlagSet(cmd.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch cmd.name {
	case "help", "-h", "--help":
		return command{}, flag.ErrHelp
	case "build", "down", "status", "load", "kill", "start":
	case "up":
		flags.BoolVar(&cmd.up.realNode, "real-node", true, "")
		flags.IntVar(&cmd.up.fakeNodes, "fake-nodes", 0, "")
		flags.IntVar(&cmd.up.controllerQPS, "controller-qps", 0, "")
	default:
		return command{}, fmt.Errorf("%w: unknown command %q", errUsage, cmd.name)
	}
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return command{}, err
		}
		return command{}, fmt.Errorf("%w: %s: %w", errUsage, cmd.name, err)
	}
	switch cmd.name {
	case "load":
		cmd.images = flags.Args()
	case "kill", "start":
		cmd.program = flags.Arg(0)
	}
	return cmd, cmd.validate(flags.Args())
}

// validate checks what flag parsing cannot. rest is what followed the flags.
func (c command) validate(rest []string) error {
	ofProgram := c.name == "kill" || c.name == "start"
	switch {
	case c.name == "load" && len(rest) == 0:
		return fmt.Errorf("%w: load needs at least one image tarball", errUsage)
	case ofProgram && len(rest) != 1:
		return fmt.Errorf("%w: %s takes the name of one program, as status shows it, got %q", errUsage, c.name, rest)
	case c.name != "load" && !ofProgram && len(rest) > 0:
		return fmt.Errorf("%w: %s takes no argument, got %q", errUsage, c.name, rest[0])
	case c.up.fakeNodes < 0 || c.up.fakeNodes > maxFakeNodes:
		return fmt.Errorf("%w: --fake-nodes must be between 0 and %d", errUsage, maxFakeNodes)
	case c.up.controllerQPS < 0:
		return fmt.Errorf("%w: --controller-qps must not be negative", errUsage)
	}
	return nil
}
