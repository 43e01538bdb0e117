package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const dialTimeout = 3 * time.Second

// What a shell gives for a line that it cannot read, and for a command that it does not know.
const (
	failedCode   = 1
	syntaxCode   = 2
	notFoundCode = 127
)

// shell runs the commands that it has itself, in a folder that it cannot leave.
type shell struct{ folder *folder }

// command is a command of the shell: it gives what it prints, and why it fails.
type command func(ctx context.Context, sh *shell, args []string) (string, error)

var commands = map[string]command{
	"cat": cat,
	"date": func(context.Context, *shell, []string) (string, error) {
		return time.Now().UTC().Format(time.RFC3339) + "\n", nil
	},
	"dial": dial,
	"echo": func(_ context.Context, _ *shell, args []string) (string, error) {
		return strings.Join(args, " ") + "\n", nil
	},
	"env": func(context.Context, *shell, []string) (string, error) {
		return strings.Join(os.Environ(), "\n") + "\n", nil
	},
	"hog": hog,
	"id":  id,
	"ls":  ls,
	"pwd": func(_ context.Context, sh *shell, _ []string) (string, error) { return sh.folder.path() + "\n", nil },
	"uname": func(context.Context, *shell, []string) (string, error) {
		return runtime.GOOS + " " + runtime.GOARCH + "\n", nil
	},
}

func commandNames() []string { return slices.Sorted(maps.Keys(commands)) }

// run runs one command line and gives what it printed and its exit code.
func (sh *shell) run(ctx context.Context, text string) (string, int) {
	parsed, err := parse(text)
	if err != nil {
		return err.Error() + "\n", syntaxCode
	}
	if len(parsed.words) == 0 {
		return "", 0
	}
	name := parsed.words[0]
	known, ok := commands[name]
	if !ok {
		return fmt.Sprintf("%s: command not found; there are: %s\n", name, strings.Join(commandNames(), " ")), notFoundCode
	}
	out, err := known(ctx, sh, parsed.words[1:])
	if parsed.file != "" {
		err = errors.Join(err, sh.folder.write(parsed.file, out, parsed.grow))
		out = ""
	}
	if err != nil {
		return out + name + ": " + err.Error() + "\n", failedCode
	}
	return out, 0
}

func cat(_ context.Context, sh *shell, args []string) (string, error) {
	var out strings.Builder
	for _, name := range args {
		text, err := sh.folder.read(name)
		if err != nil {
			return out.String(), err
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

func ls(_ context.Context, sh *shell, args []string) (string, error) {
	if len(args) == 0 {
		return sh.folder.list(".")
	}
	return sh.folder.list(args[0])
}

func id(context.Context, *shell, []string) (string, error) {
	groups, err := os.Getgroups()
	return fmt.Sprintf("uid=%d gid=%d groups=%s\n", os.Getuid(), os.Getgid(), strings.Trim(strings.Join(strings.Fields(fmt.Sprint(groups)), ","), "[]")), err
}

// hog holds so many MiB of memory for a moment: it shows what becomes of a sandbox that wants more than its limit.
func hog(_ context.Context, _ *shell, args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("usage: hog MiB")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return "", err
	}
	var held [][]byte
	for range want {
		held = append(held, bytes.Repeat([]byte{1}, 1<<20)) // written to, or the kernel would not give it
	}
	return fmt.Sprintf("held %d MiB\n", len(held)), nil
}

// dial opens a TCP connection and says what became of it: it shows what a sandbox can reach.
func dial(ctx context.Context, _ *shell, args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("usage: dial host:port")
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", args[0])
	if err != nil {
		return "", notReached(args[0], err)
	}
	return "connected to " + args[0] + "\n", conn.Close()
}

// notReached says in a word why a connection did not come about.
func notReached(address string, err error) error {
	var network net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("dial %s: refused", address)
	case errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("dial %s: timed out after %s", address, dialTimeout)
	}
	return err
}
