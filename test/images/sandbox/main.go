// Command sandbox is the sample sandbox: a small shell and file tool surface over MCP, in one static binary. Its image
// has no shell, so the shell tool has a few commands of its own. It refuses to be a sandbox by itself: what it cannot
// reach is the business of the pod that runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// shutdownTimeout is how long a call may go on after SIGTERM; with what it takes to end, that is within a second.
const shutdownTimeout = 800 * time.Millisecond

func main() {
	addr := flag.String("addr", ":8080", "address to serve on")
	workdir := flag.String("workdir", "/tmp", "folder that the tools work in")
	first := flag.String("first", "", "command line of the shell tool to run before anything is served")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *addr, *workdir, *first); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, workdir, first string) error {
	work, err := openFolder(workdir)
	if err != nil {
		return fmt.Errorf("opening the working folder: %w", err)
	}
	defer func() { _ = work.Close() }()
	sh := &shell{folder: work}
	if said, code := sh.run(ctx, first); code != 0 {
		return fmt.Errorf("running %q: %s", first, said)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	log.Printf("serving MCP on %s/mcp, working in %s", listener.Addr(), work.path())
	return serve(ctx, listener, handler(sh))
}

// serve serves until ctx ends. Calls that run then have a moment to be answered.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return server.Close() // the moment is over
	}
	return nil
}

// handler serves the tools at /mcp and readiness at /healthz.
func handler(sh *shell) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "sample-sandbox", Version: "1"}, nil)
	addTools(server, sh)
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	return mux
}
