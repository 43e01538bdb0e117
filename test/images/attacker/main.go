// Command attacker is the process of a sandbox that wants out, in one static binary: it serves as a sandbox does, tries
// what a sandbox must not be able to do, and plays the host beyond the cluster that hears of it. It refuses to judge
// whether an attempt may succeed, and to send anything to an address that it was not given.
package main

import (
	"context"
	"os"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/images/program"
)

// started is when this process began, as near as a program of its own can tell.
var started = time.Now()

const usage = `usage: attacker <command>

  serve [flags]                      be a sandbox' process: HTTP on ports, and what else the flags say
  try <attempt> [args] [+ ...]       try one thing, or several beside each other, and print a line of JSON on each
  outside [flags]                    be the host beyond the cluster
  noop                               end at once
  allocate <bytes>                   use so much memory, and end

attacker serve -h and attacker outside -h tell of their flags.
`

func main() { program.Main("attacker", run) }

func run(ctx context.Context, args []string) error {
	return program.Commands{
		"serve": serve, "outside": outside, "allocate": allocate,
		"try":  func(ctx context.Context, args []string) error { return try(ctx, os.Stdout, args) },
		"noop": func(context.Context, []string) error { return nil },
	}.Run(ctx, usage, args)
}
