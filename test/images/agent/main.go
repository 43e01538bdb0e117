// Command agent is the sample agent: what an agent runtime does with a sandbox, in one static binary that runs in a pod.
// It acquires by the client helper and calls tools over MCP. It refuses to be a model: what it calls is on its command line.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/images/program"
)

const dialTimeout = 3 * time.Second

const usage = `usage: agent <command> [flags]

  play      acquire a sandbox, call its tools, touch it, release it, and tell of each
  acquire   acquire a sandbox and print it as JSON
  call      call one tool of a sandbox
  dial      host:port: open one TCP connection and tell what became of it
  listen    [address]: answer HTTP requests, on :8080 by default
  sleep     wait to be ended

agent <command> -h tells of its flags.
`

func main() { program.Main("agent", run) }

func run(ctx context.Context, args []string) error {
	return program.Commands{
		"play": play, "acquire": acquire, "call": call, "dial": dial, "listen": listen,
		"sleep": func(ctx context.Context, _ []string) error { <-ctx.Done(); return nil },
	}.Run(ctx, usage, args)
}

func dial(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: agent dial host:port")
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("connected to", args[0])
	return conn.Close()
}

func listen(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("listen", flag.ContinueOnError)
	addr := flags.String("addr", ":8080", "address to answer on; may stand without the flag")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 1 {
		return errors.New("usage: agent listen [address]")
	}
	listener, err := net.Listen("tcp", cmp.Or(flags.Arg(0), *addr))
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())
	return answer(ctx, listener)
}

// answer says hello to every HTTP request until ctx ends.
func answer(ctx context.Context, listener net.Listener) error {
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})}
	return program.Serve(ctx, listener, server)
}
