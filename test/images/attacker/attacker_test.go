package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

// judged makes attempts and gives their verdicts.
func judged(t *testing.T, args ...string) []report.Verdict {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, try(t.Context(), &out, args))
	var verdicts []report.Verdict
	for line := range strings.Lines(out.String()) {
		var v report.Verdict
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func TestTry_SeveralBesideEachOther_ToldInTheirOrder(t *testing.T) {
	server := httptest.NewServer(sandbox())
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	none, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, none.Close())

	got := judged(t, "tcp", address, "token", "+", "tcp", none.Addr().String(), "token", "+", "http", server.URL+"/healthz", "+", "http", server.URL+"/none")
	require.Len(t, got, 4)
	assert.Equal(t, "tcp "+address+" token", got[0].Attempt)
	assert.Equal(t, []bool{true, false, true, false}, []bool{got[0].Succeeded, got[1].Succeeded, got[2].Succeeded, got[3].Succeeded})
	assert.Contains(t, got[1].Said, "connection refused")
	assert.Equal(t, "ok\n", got[2].Said)
}

func TestTry_WhatCannotBeTried_IsNoVerdict(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing":             nil,
		"an unknown attempt":  {"teleport"},
		"arguments missing":   {"tcp", "127.0.0.1:1"},
		"one of two":          {"env", "+", "tcp"},
		"no size":             {"fill", t.TempDir(), "much"},
		"an unknown field":    {"status", "Mood"},
		"no such namespace":   {"namespace", "none", "x"},
		"neither udp nor tcp": {"dns", "sctp", "127.0.0.1:1", "token"},
		"no address":          {"icmp", "host.invalid", "token"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, try(t.Context(), &bytes.Buffer{}, args), errUnjudged)
		})
	}
}

func TestDNS_AskedAndAnswered_OverBoth(t *testing.T) {
	port := freePort(t)
	h := &hearing{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveDNS(ctx, "127.0.0.1:"+port, h) }()
	for _, network := range []string{"udp", "tcp"} {
		require.Eventually(t, func() bool {
			v := judged(t, "dns", network, "127.0.0.1:"+port, "token")[0]
			return v.Succeeded && strings.Contains(v.Said, "token"+domain+" is 203.0.113.10")
		}, 10*time.Second, 50*time.Millisecond)
	}
	cancel()
	require.NoError(t, <-ended)
	for _, heard := range h.heard {
		assert.Equal(t, report.ByDNS, heard.By)
		assert.Equal(t, "token", heard.Token)
	}
}

func TestDNSAnswer_OnlyOurOwnNames(t *testing.T) {
	question, err := dnsQuestion("a")
	require.NoError(t, err)
	_, token, err := dnsAnswer(question)
	require.NoError(t, err)
	assert.Equal(t, "a", token)
	_, _, err = dnsAnswer(bytes.ReplaceAll(question, []byte("isolation"), []byte("elsewhere")))
	require.ErrorContains(t, err, "none of ours")
	_, _, err = dnsAnswer([]byte("no DNS"))
	require.Error(t, err)
}

func TestFramed_TooLong_Refused(t *testing.T) {
	var wire bytes.Buffer
	require.NoError(t, writeFramed(&wire, []byte("abc")))
	got, err := readFramed(&wire)
	require.NoError(t, err)
	assert.Equal(t, "abc", string(got))
	_, err = readFramed(bytes.NewReader([]byte{0xff, 0xff}))
	require.ErrorContains(t, err, "65535 bytes")
}

func TestEcho_ComesBack_AndIsHeard(t *testing.T) {
	port := freePort(t)
	h := &hearing{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- echo(ctx, "127.0.0.1:"+port, h) }()
	require.Eventually(t, func() bool { return judged(t, "udp", "127.0.0.1:"+port, "token")[0].Succeeded }, 10*time.Second, 50*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)

	told := httptest.NewRecorder()
	h.ServeHTTP(told, httptest.NewRequest(http.MethodGet, "/heard?token=token", nil))
	var heard report.Heard
	require.NoError(t, json.NewDecoder(told.Body).Decode(&heard))
	assert.Equal(t, []string{report.ByUDP, "127.0.0.1:" + port, "token"}, []string{heard.By, heard.On, heard.Token})
	for _, other := range []string{"/heard?token=another", "/heard?token=token&host=another"} {
		told = httptest.NewRecorder()
		h.ServeHTTP(told, httptest.NewRequest(http.MethodGet, other, nil))
		assert.Empty(t, told.Body.String())
	}
}

func TestSend_NumbersItsPackets(t *testing.T) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- send(ctx, conn.LocalAddr().String(), "token", time.Millisecond, 0) }()
	data := make([]byte, maxPacket)
	for number := range 3 {
		n, from, err := conn.ReadFrom(data)
		require.NoError(t, err)
		p := parsePacket(data[:n])
		assert.Equal(t, "token", p.Token)
		assert.Equal(t, number, p.Number)
		assert.True(t, p.Started.Equal(started))
		assert.Equal(t, firstSource+number, from.(*net.UDPAddr).Port)
	}
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, send(t.Context(), conn.LocalAddr().String(), "token", time.Millisecond, time.Millisecond), "its time is over")
}

func TestKeep_AsksOverOneConnection(t *testing.T) {
	h := &hearing{}
	server := httptest.NewUnstartedServer(h.answer())
	server.Config.ConnState = h.connected
	server.Start()
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- keep(ctx, strings.TrimPrefix(server.URL, "http://"), "token", time.Millisecond) }()
	count := func() (connections, requests int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, heard := range h.heard {
			if heard.By == report.ByTCP {
				connections++
			} else if assert.Equal(t, "token", heard.Token) {
				requests++
			}
		}
		return connections, requests
	}
	require.Eventually(t, func() bool { _, requests := count(); return requests >= 3 }, 10*time.Second, 10*time.Millisecond)
	server.CloseClientConnections()
	cancel()
	require.NoError(t, <-ended)
	connections, _ := count()
	assert.Equal(t, 1, connections)
}

func TestParsePacket_NotOurs_IsItsOwnToken(t *testing.T) {
	assert.Equal(t, report.Packet{Token: "hello"}, parsePacket([]byte("hello")))
	assert.Equal(t, report.Packet{Token: "a", Number: 2}, parsePacket([]byte(`{"token":"a","number":2}`)))
}

func TestPrivilegeIn(t *testing.T) {
	const bound = "Name:\tattacker\nUid:\t65532\t65532\t65532\t65532\nNoNewPrivs:\t1\nSeccomp:\t2\nCapEff:\t0000000000000000\n"
	const free = "Uid:\t65532\t0\t0\t0\nNoNewPrivs:\t0\nSeccomp:\t0\nCapEff:\t00000000a80425fb\n"
	for _, field := range []string{"Uid", "NoNewPrivs", "Seccomp", "CapEff"} {
		_, err := privilegeIn(bound, field)
		require.Error(t, err)
		require.NotErrorIs(t, err, errUnjudged)
		said, err := privilegeIn(free, field)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(said, field+" "), said)
	}
	_, err := privilegeIn("", "CapEff")
	require.ErrorIs(t, err, errUnjudged, "a field that is not there says nothing")
}

func TestServicesIn(t *testing.T) {
	for variable, tells := range map[string]bool{
		"KUBERNETES_SERVICE_HOST=10.96.0.1":           true,
		"KUBERNETES_SERVICE_HOST=":                    false,
		"KUBERNETES_PORT=tcp://10.96.0.1:443":         true,
		"OTHER_SERVICE_PORT_HTTP=80":                  true,
		"OTHER_PORT_80_TCP_ADDR=10.96.0.7":            true,
		"OTHER_PORT=tcp://10.96.0.7:80":               true,
		"HOME=/tmp":                                   false,
		"PORTS=10":                                    false,
		"PATH=/usr/local/sbin:/usr/local/bin:/sbin":   false,
		"LITERAL=$(KUBERNETES_SERVICE_HOST) and $$5.": false,
	} {
		said, err := servicesIn([]string{variable})
		assert.Equal(t, tells, err == nil, "%s: %s %v", variable, said, err)
	}
}

func TestLimits(t *testing.T) {
	folder := t.TempDir()
	got := judged(t, "write", folder, "+", "fill", folder, "3Mi", "+", "write", filepath.Join(folder, "none"), "+", "cpu", "1000")
	assert.Equal(t, []bool{true, true, false, false}, []bool{got[0].Succeeded, got[1].Succeeded, got[2].Succeeded, got[3].Succeeded})
	filled, err := os.Stat(filepath.Join(folder, "filled"))
	require.NoError(t, err)
	assert.EqualValues(t, 3<<20, filled.Size())
	require.NoError(t, allocate(t.Context(), []string{"1Mi"}))
	require.ErrorIs(t, allocate(t.Context(), []string{"much"}), errUnjudged)
}

func TestServe_TellsWhatItWasStartedWith(t *testing.T) {
	t.Setenv("LITERAL", "$(HOME) $$5")
	port, another := freePort(t), freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"serve", "-http", port + "," + another}) }()
	var about report.About
	for _, p := range []string{port, another} {
		require.Eventually(t, func() bool {
			v := judged(t, "http", "http://127.0.0.1:"+p+"/about")[0]
			return v.Succeeded && json.Unmarshal([]byte(v.Said), &about) == nil
		}, 10*time.Second, 50*time.Millisecond)
		assert.Equal(t, "127.0.0.1:"+p, about.Address)
	}
	assert.Equal(t, "$(HOME) $$5", about.Env["LITERAL"])
	cancel()
	require.NoError(t, <-ended)
}

func TestRun_UnknownCommand(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), []string{"dance"}), `unknown command "dance"`)
	require.ErrorContains(t, run(t.Context(), nil), "usage")
	require.NoError(t, run(t.Context(), []string{"noop"}))
	require.Error(t, run(t.Context(), []string{"outside", "-control", filepath.Join(t.TempDir(), "none", "socket")}))
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, errors.Join(err, listener.Close()))
	return port
}
