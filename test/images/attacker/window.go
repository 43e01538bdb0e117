package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

// Ports to send from, in turn. The kernel's own choice would soon fall on one that was used before.
const firstSource, sources = 10000, 50000

// send sends numbered datagrams until ctx or the time ends, each from a port that was not used before: what follows an earlier
// packet of the same flow is let through for as long as the kernel's connection tracking remembers that one, and would hide
// when a policy began to hold. What could not be sent is what the policy is for, and no error.
func send(ctx context.Context, to, token string, every, during time.Duration) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	if during > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, during)
		defer cancel()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for number := 0; ; number++ {
		message, err := json.Marshal(report.Packet{Token: token, Host: host, Number: number, Started: started})
		if err != nil {
			return err
		}
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{Port: firstSource + number%sources}}
		if conn, err := dialer.DialContext(ctx, "udp4", to); err == nil {
			_, _ = conn.Write(message)
			_ = conn.Close()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// heldEvery is the time between two requests over a connection that is kept.
const heldEvery = 100 * time.Millisecond

// keep opens one connection as soon as that can be had, and asks over it until ctx ends.
func keep(ctx context.Context, to, token string, every time.Duration) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	dialled := false
	transport := &http.Transport{MaxConnsPerHost: 1, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if dialled {
			return nil, net.ErrClosed // A second connection would say nothing of the first.
		}
		conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
		dialled = err == nil
		return conn, err
	}}
	client := &http.Client{Transport: transport, Timeout: dialTimeout}
	for ctx.Err() == nil {
		pause := heldEvery
		if ask(ctx, client, "http://"+to+"/"+token+"/"+host) != nil {
			pause = every
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
