// Command sandbox is the sample sandbox: a small shell and file tool surface over MCP, in one static binary. Its image
// has no shell, so the shell tool has a few commands of its own. It refuses to be a sandbox by itself: what it cannot
// reach is the business of the pod that runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const shutdownTimeout = time.Second

func main() {
	addr := flag.String("addr", ":8080", "address to serve on")
	workdir := flag.String("workdir", "/tmp", "folder that the tools work in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := serve(ctx, *addr, *workdir); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, addr, workdir string) error {
	root, err := os.OpenRoot(workdir)
	if err != nil {
		return fmt.Errorf("opening the working folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	server := &http.Server{Addr: addr, Handler: handler(&shell{root: root}), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	log.Printf("serving MCP on %s/mcp", addr)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
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
