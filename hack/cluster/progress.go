package main

import (
	"fmt"
	"io"
	"time"
)

// progress tells a human what happens and how long it took.
type progress struct{ out io.Writer }

// say prints one line.
func (p *progress) say(format string, args ...any) {
	fmt.Fprintf(p.out, format+"\n", args...)
}

// step does one named piece of work and prints the time it took.
func (p *progress) step(name string, work func() error) error {
	fmt.Fprintf(p.out, "  %-28s ", name)
	start := time.Now()
	if err := work(); err != nil {
		fmt.Fprintln(p.out, "failed")
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(p.out, "%6.1fs\n", time.Since(start).Seconds())
	return nil
}
