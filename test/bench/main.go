// Command bench measures how fast and how large: what an agent's calls take, each beside the floor of the same path in the
// same run, and what sandboxes cost. It prints a table with the targets that are met and missed, and writes the same as JSON
// and as an HTML report. It refuses to fail for a target that is missed: figures are for reading.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/bench/scenario"
	"github.com/altairalabs/omnia-sandboxes/test/meter"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// options are the command line.
type options struct {
	scenario.Options
	only []string
	out  string
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.Full, "full", false, "measure the long form: more turns, and up to 5,000 claims standing")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "a cluster that serves the group already; empty means the local cluster, with a server of the benchmark's own")
	flags.StringVar(&o.Image, "image", "", "with -kubeconfig, an image for sandboxes that the cluster can pull: it answers GET /healthz on port 8080, as user 65532")
	flags.StringVar(&o.out, "out", "bench-results", "folder that gets results.json, results.md and report.html")
	sizes := flags.String("sizes", "", "how many claims stand, ever more, with commas between; empty means 100,300, and 100,1000,5000 with -full")
	only := flags.String("only", "", "scenarios to play, with commas between; empty means all of "+strings.Join(scenario.IDs(), ","))
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag: see -help", flags.Arg(0))
	}
	if o.Image != "" && o.Kubeconfig == "" {
		return nil, errors.New("-image is for another cluster: give its -kubeconfig too")
	}
	if o.Kubeconfig != "" && o.Image == "" {
		return nil, errors.New("-kubeconfig needs -image: name a sandbox image that the cluster can pull")
	}
	var err error
	if o.Sizes, err = growing(*sizes); err != nil {
		return nil, err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	return o, scenario.Check(o.only)
}

// growing reads numbers of claims, each larger than the one before.
func growing(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var out []int
	for size := range strings.SplitSeq(text, ",") {
		claims, err := strconv.Atoi(size)
		if err != nil || claims < 1 || len(out) > 0 && claims <= out[len(out)-1] {
			return nil, fmt.Errorf("-sizes=%s: write numbers of claims, each larger than the one before, such as 100,1000", text)
		}
		out = append(out, claims)
	}
	return out, nil
}

// run measures, and tells what was measured even if it came to an end too early.
func run(ctx context.Context, o *options) (err error) {
	result := &report.Run{Title: "Benchmark", Began: time.Now(), Form: "short form"}
	if o.Full {
		result.Form = "long form"
	}
	began := time.Now()
	o.Said = func(line string) {
		fmt.Fprintf(os.Stderr, "%7s  %s\n", time.Since(began).Round(100*time.Millisecond), line)
	}
	b, err := scenario.Open(ctx, o.Options)
	if err != nil {
		return err
	}
	if result.Machine, err = b.Machine(meter.Machine()); err != nil {
		return errors.Join(err, b.Close())
	}
	var played error
	result.Sections, played = b.Play(ctx, o.only)
	result.Took = time.Since(began)
	return errors.Join(played, b.Close(), result.Tell(os.Stdout, o.out))
}
