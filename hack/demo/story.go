package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// story tells a person what happens: numbered chapters of what was asked, what came back, and how long it took.
type story struct {
	out          io.Writer
	chapter      int
	installation *framework.Installation // what the story runs on, once it is there
}

// begin begins a chapter.
func (s *story) begin(title string) {
	s.chapter++
	fmt.Fprintf(s.out, "\n%d. %s\n", s.chapter, title)
}

// ask tells what is asked, does it, and tells what came back. The answer may have several lines.
func (s *story) ask(asked string, do func() (string, error)) error {
	s.say("asked", asked)
	began := time.Now()
	answer, err := do()
	took := time.Since(began)
	if err != nil {
		s.say("failed", err.Error())
		return fmt.Errorf("%s: %w", firstLine(asked), err)
	}
	s.say("got", answer)
	s.say("took", rounded(took).String())
	return nil
}

// say prints a text under a word, its further lines under the first.
func (s *story) say(word, text string) {
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i > 0 {
			word = ""
		}
		fmt.Fprintf(s.out, "   %-7s %s\n", word, line)
	}
}

// rounded leaves of a duration what a person reads.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
