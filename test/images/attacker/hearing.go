package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

// hearing is what was heard, in its order.
type hearing struct {
	mu    sync.Mutex
	heard []report.Heard
}

func (h *hearing) add(by, on string, packet report.Packet) { h.addAt(time.Now(), by, on, packet) }

func (h *hearing) addAt(at time.Time, by, on string, packet report.Packet) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, report.Heard{At: at, By: by, On: on, Packet: packet})
}

// ServeHTTP tells, at /heard, what was heard of ?token= and ?host=, where they are given: a line of JSON each.
func (h *hearing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/heard" {
		http.NotFound(w, r)
		return
	}
	h.mu.Lock()
	heard := slices.Clone(h.heard)
	h.mu.Unlock()
	asked := r.URL.Query()
	lines := json.NewEncoder(w)
	for _, one := range heard {
		if (!asked.Has("token") || asked.Get("token") == one.Token) && (!asked.Has("host") || asked.Get("host") == one.Host) {
			_ = lines.Encode(one) // Whoever asked sees the broken answer.
		}
	}
}

// serveDNS is a resolver, over UDP and TCP, that hears the names it is asked for.
func serveDNS(ctx context.Context, address string, h *hearing) error {
	conn, err := net.ListenPacket("udp4", address)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		_ = conn.Close()
		return err
	}
	stop := context.AfterFunc(ctx, func() { _, _ = conn.Close(), listener.Close() })
	defer stop()
	failed := make(chan error, 2)
	go func() { failed <- answerDatagrams(conn, h) }()
	go func() { failed <- answerConnections(listener, h) }()
	return untilEnd(ctx, <-failed)
}

func answerDatagrams(conn net.PacketConn, h *hearing) error {
	data := make([]byte, maxPacket)
	for {
		n, from, err := conn.ReadFrom(data)
		if err != nil {
			return err
		}
		answer, token, err := dnsAnswer(data[:n])
		if err != nil {
			continue // None of our questions.
		}
		h.add(report.ByDNS, conn.LocalAddr().String(), report.Packet{Token: token})
		_, _ = conn.WriteTo(answer, from) // Whoever cannot be answered was heard all the same.
	}
}

func answerConnections(listener net.Listener, h *hearing) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(headerTimeout))
			question, err := readFramed(conn)
			if err != nil {
				return
			}
			answer, token, err := dnsAnswer(question)
			if err != nil {
				return
			}
			h.add(report.ByDNS, conn.LocalAddr().String(), report.Packet{Token: token})
			_ = writeFramed(conn, answer) // Whoever cannot be answered was heard all the same.
		}()
	}
}
