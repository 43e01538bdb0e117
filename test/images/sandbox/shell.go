package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"
)

const dialTimeout = 3 * time.Second

// notFoundCode is what a shell gives for a command that it does not know.
const notFoundCode = 127

// shell runs the commands that it has itself, in a folder that it cannot leave.
type shell struct{ root *os.Root }

type command func(ctx context.Context, sh *shell, out io.Writer, args []string) error

var commands map[string]command

func init() {
	commands = map[string]command{
		"pwd": func(_ context.Context, sh *shell, out io.Writer, _ []string) error { return say(out, sh.root.Name()) },
		"echo": func(_ context.Context, _ *shell, out io.Writer, args []string) error {
			return say(out, strings.Join(args, " "))
		},
		"date": func(_ context.Context, _ *shell, out io.Writer, _ []string) error {
			return say(out, time.Now().UTC().Format(time.RFC3339))
		},
		"env": func(_ context.Context, _ *shell, out io.Writer, _ []string) error {
			return say(out, strings.Join(os.Environ(), "\n"))
		},
		"id": func(_ context.Context, _ *shell, out io.Writer, _ []string) error {
			return say(out, fmt.Sprintf("uid=%d gid=%d", os.Getuid(), os.Getgid()))
		},
		"uname": func(_ context.Context, _ *shell, out io.Writer, _ []string) error {
			return say(out, runtime.GOOS+" "+runtime.GOARCH)
		},
		"ls": func(_ context.Context, sh *shell, out io.Writer, args []string) error {
			return sh.list(out, first(args, "."))
		},
		"cat":  cat,
		"dial": dial,
	}
}

func commandNames() []string { return slices.Sorted(maps.Keys(commands)) }

func say(out io.Writer, text string) error {
	_, err := fmt.Fprintln(out, text)
	return err
}

func first(args []string, otherwise string) string {
	if len(args) == 0 {
		return otherwise
	}
	return args[0]
}

func cat(_ context.Context, sh *shell, out io.Writer, args []string) error {
	for _, name := range args {
		text, err := sh.read(name)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}

// dial opens a TCP connection and says what became of it: it shows what a sandbox can reach.
func dial(ctx context.Context, _ *shell, out io.Writer, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: dial host:port")
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", args[0])
	if err != nil {
		return err
	}
	_ = conn.Close()
	return say(out, "connected to "+args[0])
}

// run runs one command line and gives what it printed and its exit code.
func (sh *shell) run(ctx context.Context, line string) (string, int) {
	words, err := split(line)
	if err != nil {
		return err.Error() + "\n", 2
	}
	if len(words) == 0 {
		return "", 0
	}
	var out strings.Builder
	words, file, grow := redirection(words)
	known, ok := commands[words[0]]
	if !ok {
		return fmt.Sprintf("%s: command not found; there are: %s\n", words[0], strings.Join(commandNames(), " ")), notFoundCode
	}
	err = known(ctx, sh, &out, words[1:])
	if err == nil && file != "" {
		err = sh.write(file, out.String(), grow)
		out.Reset()
	}
	if err != nil {
		return out.String() + words[0] + ": " + err.Error() + "\n", 1
	}
	return out.String(), 0
}

// redirection takes a last "> file" or ">> file" off the words.
func redirection(words []string) (rest []string, file string, grow bool) {
	if n := len(words); n >= 3 && (words[n-2] == ">" || words[n-2] == ">>") {
		return words[:n-2], words[n-1], words[n-2] == ">>"
	}
	return words, "", false
}

// split takes a command line apart at spaces, but for what is quoted.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if begun || word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if begun || word.Len() > 0 {
		words = append(words, word.String())
	}
	return words, nil
}

// within makes a path relative to the working folder, so that an absolute one means a file below it.
func within(name string) string {
	return path.Join(".", strings.TrimPrefix(path.Clean("/"+name), "/"))
}

func (sh *shell) read(name string) (string, error) {
	data, err := sh.root.ReadFile(within(name))
	return string(data), err
}

func (sh *shell) write(name, content string, grow bool) error {
	mode := os.O_TRUNC
	if grow {
		mode = os.O_APPEND
	}
	file, err := sh.root.OpenFile(within(name), os.O_CREATE|os.O_WRONLY|mode, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, content)
	return errors.Join(err, file.Close())
}

func (sh *shell) list(out io.Writer, name string) error {
	dir, err := sh.root.Open(within(name))
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	for _, n := range names {
		err = errors.Join(err, say(out, n))
	}
	return errors.Join(err, dir.Close())
}
