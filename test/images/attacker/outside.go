package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/sync/errgroup"

	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

const maxPacket = 64 << 10

// outside is the host beyond the cluster. It hears whatever arrives, answers it, and tells of it over a Unix socket alone:
// asking it sends nothing to any network.
func outside(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("outside", flag.ContinueOnError)
	ports := flags.String("http", "80", "ports to serve HTTP on, with commas between them")
	udp := flags.String("udp", "9", "port to echo datagrams on")
	dns := flags.String("dns", "53", "port to be a resolver on, over UDP and TCP")
	socket := flags.String("control", "", "path of the Unix socket on which /heard is served")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := os.Remove(*socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("clearing -control: %w", err)
	}
	control, err := net.Listen("unix", *socket)
	if err != nil {
		return fmt.Errorf("listening on -control: %w", err)
	}
	h := &hearing{}
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error { return serveOn(ctx, control, h, nil) })
	for port := range strings.SplitSeq(*ports, ",") {
		tasks.Go(func() error { return serveHTTP(ctx, ":"+port, h.answer(), h.connected) })
	}
	tasks.Go(func() error { return echo(ctx, ":"+*udp, h) })
	tasks.Go(func() error { return serveDNS(ctx, ":"+*dns, h) })
	tasks.Go(func() error { return hearICMP(ctx, h) })
	return tasks.Wait()
}

// connected hears a connection, whatever is spoken over it.
func (h *hearing) connected(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		h.add(report.ByTCP, conn.LocalAddr().String(), report.Packet{})
	}
}

// answer hears requests: the token is the path's first segment, and a host's name may be the second.
func (h *hearing) answer() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, host, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		h.add(report.ByHTTP, localAddress(r), report.Packet{Token: token, Host: host})
		fmt.Fprintln(w, "outside")
	})
}

// echo hears datagrams and sends them back from the address that they were sent to, which may be one of several.
func echo(ctx context.Context, address string, h *hearing) error {
	conn, err := net.ListenPacket("udp4", address)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	packets := ipv4.NewPacketConn(conn)
	if err := packets.SetControlMessage(ipv4.FlagDst, true); err != nil {
		return err
	}
	_, port, _ := strings.Cut(conn.LocalAddr().String(), ":")
	data := make([]byte, maxPacket)
	for {
		n, about, from, err := packets.ReadFrom(data)
		if err != nil {
			return untilEnd(ctx, err)
		}
		at := time.Now()
		h.addAt(at, report.ByUDP, net.JoinHostPort(about.Dst.String(), port), parsePacket(data[:n]))
		// Whoever cannot be answered was heard all the same.
		_, _ = packets.WriteTo(data[:n], &ipv4.ControlMessage{Src: about.Dst}, from)
	}
}

// hearICMP hears echo requests. The kernel answers them.
func hearICMP(ctx context.Context, h *hearing) error {
	conn, err := icmp.ListenPacket("ip4:icmp", "0.0.0.0")
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	data := make([]byte, maxPacket)
	for {
		n, _, err := conn.ReadFrom(data)
		if err != nil {
			return untilEnd(ctx, err)
		}
		message, err := icmp.ParseMessage(ipv4.ICMPTypeEcho.Protocol(), data[:n])
		if err != nil || message.Type != ipv4.ICMPTypeEcho {
			continue
		}
		if request, ok := message.Body.(*icmp.Echo); ok {
			h.add(report.ByICMP, "", parsePacket(request.Data))
		}
	}
}

// parsePacket reads a packet. One that is none of ours is its own token.
func parsePacket(data []byte) report.Packet {
	var p report.Packet
	if err := json.Unmarshal(data, &p); err != nil {
		return report.Packet{Token: string(data)}
	}
	return p
}

// untilEnd makes nothing of the error that comes of ctx' end.
func untilEnd(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}
