// Command soak plays a steady load for a long time on three servers that end and come back at random, and says whether
// memory, goroutines, watches, descriptors, queues and etcd's size stayed flat, no session failed, and nothing was left. It prints
// a table, writes the same as JSON and as an HTML report with plots, and fails if a bound is broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/meter"
	"github.com/altairalabs/omnia-sandboxes/test/report"
	"github.com/altairalabs/omnia-sandboxes/test/soak/plan"
	"github.com/altairalabs/omnia-sandboxes/test/soak/play"
)

// options are the command line.
type options struct {
	play.Options
	out string
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&o.During, "duration", time.Hour, "how long sessions come; memory is judged of half an hour or more")
	flags.Uint64Var(&o.Seed, "seed", 0, "what is drawn: which sessions come, and what befalls the servers; 0 draws a seed")
	flags.StringVar(&o.out, "out", "soak-results", "folder that gets results.json, results.md and report.html")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag: see -help", flags.Arg(0))
	}
	if err := plan.Check(o.During); err != nil {
		return nil, fmt.Errorf("-duration: %w", err)
	}
	if o.out == "" {
		return nil, errors.New("-out is empty: name a folder for the results")
	}
	for o.Seed == 0 {
		o.Seed = uint64(rand.Uint32()) //nolint:gosec // a plan is no secret
	}
	return o, nil
}

// run plays, and tells what was seen even if it came to an end too early.
func run(ctx context.Context, o *options) error {
	began := time.Now()
	o.Said = func(line string) {
		fmt.Fprintf(os.Stderr, "%8s  %s\n", time.Since(began).Round(time.Second), line)
	}
	result := &report.Run{Title: "Soak", Began: began, Form: fmt.Sprintf("load for %s, seed %d", o.During, o.Seed)}
	o.Said(result.Form)
	s, err := play.Open(ctx, o.Options)
	if err != nil {
		return err
	}
	if result.Machine, err = s.Machine(meter.Machine()); err != nil {
		return errors.Join(err, s.Close())
	}
	var played error
	result.Sections, played = s.Play(ctx)
	result.Took = time.Since(began)
	return errors.Join(played, s.Close(), result.Tell(os.Stdout, o.out), verdict(result))
}

// verdict is an error if a bound is broken, or cannot be held against what was read.
func verdict(result *report.Run) error {
	if t := result.Targets(); len(t.Missed)+len(t.Unknown) > 0 {
		return errors.New(t.String())
	}
	return nil
}
