package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

// between separates attempts that are tried beside each other.
const between = "+"

// attempt tries one thing. It gives what it got; an error says what stopped it, or wraps errUnjudged.
type attempt func(ctx context.Context, args []string) (got string, err error)

// errUnjudged is an attempt that was not made, so that nothing can be said of it.
var errUnjudged = errors.New("not tried")

// attempts are all that can be tried, by the names that tests know them by.
var attempts = map[string]attempt{
	// network.go
	"tcp": tryTCP, "http": tryHTTP, "udp": tryUDP, "icmp": tryICMP, "dns": tryDNS,
	// privilege.go
	"setuid": trySetuid, "mount": tryMount, "userns": tryUserNamespace, "packet": tryPacketSocket, "rawsocket": tryRawSocket,
	"sysctl": trySysctl, "ptrace": tryPtrace, "status": tryStatus, "namespace": tryNamespace,
	// secrets.go
	"token": tryToken, "env": tryEnv,
	// limits.go
	"write": tryWrite, "fill": tryFill, "allocate": tryAllocate, "cpu": tryCPU,
}

// try makes the attempts that args name and writes a line of JSON on each, in their order. It errs if one of them could not
// be judged.
func try(ctx context.Context, out io.Writer, args []string) error {
	lists := split(args)
	verdicts, errs := make([]report.Verdict, len(lists)), make([]error, len(lists))
	var running sync.WaitGroup
	for i, list := range lists {
		running.Go(func() { verdicts[i], errs[i] = tryOne(ctx, list) })
	}
	running.Wait()
	for _, v := range verdicts {
		if err := json.NewEncoder(out).Encode(v); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

func split(args []string) [][]string {
	lists := [][]string{nil}
	for _, arg := range args {
		if arg == between {
			lists = append(lists, nil)
			continue
		}
		lists[len(lists)-1] = append(lists[len(lists)-1], arg)
	}
	return lists
}

func tryOne(ctx context.Context, list []string) (report.Verdict, error) {
	v := report.Verdict{Attempt: strings.Join(list, " ")}
	if len(list) == 0 {
		return v, fmt.Errorf("%w: no attempt is named", errUnjudged)
	}
	do, ok := attempts[list[0]]
	if !ok {
		return v, fmt.Errorf("%w: unknown attempt %q", errUnjudged, list[0])
	}
	got, err := do(ctx, list[1:])
	if errors.Is(err, errUnjudged) {
		return v, fmt.Errorf("trying %s: %w", v.Attempt, err)
	}
	v.Succeeded, v.Said = err == nil, got
	if err != nil {
		v.Said = err.Error()
	}
	return v, nil
}

// want errs unless there are as many arguments as named.
func want(args []string, named ...string) error {
	if len(args) != len(named) {
		return fmt.Errorf("%w: give %s", errUnjudged, strings.Join(named, " "))
	}
	return nil
}
