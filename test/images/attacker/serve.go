package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
	"github.com/altairalabs/omnia-sandboxes/test/images/program"
)

const headerTimeout = 5 * time.Second

// serve is a sandbox' process.
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	ports := flags.String("http", "8080", "ports to serve HTTP on, with commas between them; none if empty")
	dns := flags.String("dns", "", "port to be a resolver on, over UDP and TCP")
	to := flags.String("send", "", "host:port to send datagrams to, from the process' start on")
	hold := flags.String("hold", "", "host:port to open a connection to, from the process' start on, and to ask over it again and again")
	token := flags.String("token", "", "what the datagrams and the connection tell")
	every := flags.Duration("every", 5*time.Millisecond, "time between two datagrams")
	sendFor := flags.Duration("send-for", 0, "how long datagrams are sent; 0 is without an end")
	stubborn := flags.Bool("stubborn", false, "do not end for SIGTERM")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *stubborn {
		signal.Ignore(syscall.SIGTERM)
		ctx = context.WithoutCancel(ctx)
	}
	tasks, ctx := errgroup.WithContext(ctx)
	if *to != "" {
		tasks.Go(func() error { return send(ctx, *to, *token, *every, *sendFor) })
	}
	if *hold != "" {
		tasks.Go(func() error { return keep(ctx, *hold, *token, *every) })
	}
	if *ports != "" {
		for port := range strings.SplitSeq(*ports, ",") {
			tasks.Go(func() error { return serveHTTP(ctx, ":"+port, sandbox(), nil) })
		}
	}
	if *dns != "" {
		tasks.Go(func() error { return serveDNS(ctx, ":"+*dns, &hearing{}) })
	}
	tasks.Go(func() error { <-ctx.Done(); return nil })
	return tasks.Wait()
}

// sandbox answers readiness, and what the process was started with.
func sandbox() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /about", func(w http.ResponseWriter, r *http.Request) {
		about := report.About{Args: os.Args[1:], Env: map[string]string{}, Address: localAddress(r)}
		for _, variable := range os.Environ() {
			name, value, _ := strings.Cut(variable, "=")
			about.Env[name] = value
		}
		_ = json.NewEncoder(w).Encode(about) // Whoever asked sees the broken answer.
	})
	return mux
}

func localAddress(r *http.Request) string {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	return address.String()
}

// serveHTTP serves until ctx ends.
func serveHTTP(ctx context.Context, address string, handler http.Handler, state func(net.Conn, http.ConnState)) error {
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	return serveOn(ctx, listener, handler, state)
}

func serveOn(ctx context.Context, listener net.Listener, handler http.Handler, state func(net.Conn, http.ConnState)) error {
	return program.Serve(ctx, listener, &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, ConnState: state})
}
