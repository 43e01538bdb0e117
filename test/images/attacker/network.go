package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"

	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

const (
	// dialTimeout is for a connection on one machine. What is dropped without an answer takes all of it.
	dialTimeout = 2 * time.Second
	// answerTimeout is for one answer on a path that is open. Datagrams are sent several times.
	answerTimeout = 400 * time.Millisecond
	datagrams     = 3

	maxAnswer = 64 << 10
)

// tryTCP opens a connection. What answers need not speak HTTP: that it was reached is all that counts.
func tryTCP(ctx context.Context, args []string) (string, error) {
	if err := want(args, "host:port", "token"); err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp4", args[0])
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	fmt.Fprintf(conn, "GET /%s HTTP/1.0\r\n\r\n", args[1])
	line, _ := bufio.NewReader(conn).ReadString('\n') // It may say nothing.
	return fmt.Sprintf("connected; it said %q", strings.TrimSpace(line)), nil
}

// tryHTTP gets a page.
func tryHTTP(ctx context.Context, args []string) (string, error) {
	if err := want(args, "url"); err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnjudged, err)
	}
	client := &http.Client{Timeout: dialTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), nil
}

// tryUDP sends a datagram to an echo and waits for it to come back.
func tryUDP(ctx context.Context, args []string) (string, error) {
	if err := want(args, "host:port", "token"); err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp4", args[0])
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	message, err := json.Marshal(report.Packet{Token: args[1]})
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnjudged, err)
	}
	answer := make([]byte, maxAnswer)
	for range datagrams {
		if _, err = conn.Write(message); err != nil {
			continue // What an earlier one met is told by a later one's error.
		}
		_ = conn.SetReadDeadline(time.Now().Add(answerTimeout))
		var n int
		if n, err = conn.Read(answer); err == nil {
			return fmt.Sprintf("came back: %s", answer[:n]), nil
		}
	}
	return "", err
}

// tryICMP sends an echo request by a ping socket, which takes no capability where the kernel allows it to the group.
func tryICMP(_ context.Context, args []string) (string, error) {
	if err := want(args, "host", "token"); err != nil {
		return "", err
	}
	host := net.ParseIP(args[0])
	if host == nil {
		return "", fmt.Errorf("%w: %s is no address", errUnjudged, args[0])
	}
	payload, err := json.Marshal(report.Packet{Token: args[1]})
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnjudged, err)
	}
	conn, err := icmp.ListenPacket("udp4", "0.0.0.0")
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	answer := make([]byte, maxAnswer)
	for n := range datagrams {
		var request []byte
		request, err = (&icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{Seq: n + 1, Data: payload}}).Marshal(nil)
		if err != nil {
			return "", fmt.Errorf("%w: %w", errUnjudged, err)
		}
		if _, err = conn.WriteTo(request, &net.UDPAddr{IP: host}); err != nil {
			continue
		}
		_ = conn.SetReadDeadline(time.Now().Add(answerTimeout))
		var peer net.Addr
		if _, peer, err = conn.ReadFrom(answer); err == nil {
			return fmt.Sprintf("%s answered", peer), nil
		}
	}
	return "", err
}
