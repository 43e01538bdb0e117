// Package chaos breaks one part of a cluster after the other while agents acquire, touch and release sandboxes all the
// time, and says for each what it cost: how long acquire was refused, and what was lost, leaked or doubled. What a claim
// and its sandbox owe, test/judge says. It refuses to look at what a server does with a call: its own tests do that.
//
// The short form plays each fault that takes seconds, once; `make chaos` plays all of them, ROUNDS times.
package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

// played are what the faults cost, in their order.
var played []row

func TestMain(m *testing.M) {
	code := m.Run()
	if len(played) > 0 {
		fmt.Printf("what each fault cost:\n%s", table(played))
	}
	os.Exit(code)
}

var (
	rounds = flag.Int("rounds", 0, "how often all the faults are played; 0 plays those that take seconds, once")
	only   = flag.String("fault", "", "a regular expression: play the faults that it matches, and no others")
)

const (
	// undisturbed is how long the load runs by itself, for what it looks like without a fault.
	undisturbed = 4 * time.Second
	// faultTimeout bounds one fault with all that comes after it.
	faultTimeout = 12 * time.Minute
)

// Three servers on an etcd of three members are one service: any of them may die at any moment.
func TestThreeServers(t *testing.T) {
	c, began := framework.Get(t), time.Now()
	members := framework.StartEtcd(t, c)
	installed := install(t, c, members)
	t.Logf("installed after %s", seconds(time.Since(began)))
	etcd := open(t, members.Access().Client)
	w := newWorld(t, c, etcd)
	play(w, threeServers(installed))
}

// One server with its own etcd is down while it is down, and loses nothing.
func TestEmbeddedEtcd(t *testing.T) {
	c := framework.Get(t)
	servers := framework.StartServers(t, c, framework.ServerOptions{Storage: framework.EmbeddedEtcd})
	require.NoError(t, c.LoadSampleImages(t.Context()))
	etcd := open(t, servers.EmbeddedEtcd)
	w := newWorld(t, c, etcd)
	play(w, embedded(servers, w))
}

// open opens a client of etcd for as long as the test runs.
func open(t *testing.T, connect func() (*clientv3.Client, error)) *clientv3.Client {
	t.Helper()
	client, err := connect()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() }) // Its watches have ended with the world.
	return client
}

// chosen are the faults that are to be played.
func chosen(t *testing.T, faults []fault) []fault {
	matches, err := regexp.Compile(*only)
	require.NoError(t, err, "-fault")
	return slices.DeleteFunc(faults, func(f fault) bool {
		return *only == "" && *rounds == 0 && !f.short || !matches.MatchString(f.name)
	})
}

// play plays faults one after the other, and prints what each cost.
func play(w *world, faults []fault) {
	var rows []row
	for round := range max(1, *rounds) {
		for _, f := range chosen(w.t, slices.Clone(faults)) {
			began := time.Now()
			r := w.play(f)
			if *rounds > 1 {
				r.fault = fmt.Sprintf("%d: %s", round+1, r.fault)
			}
			w.t.Logf("%s: refused for %s, new sandbox after %s, calm after %s, broken: %v %s", r.fault, seconds(r.refused.whole), seconds(r.anew),
				seconds(time.Since(began)), r.broken, r.notPlayed)
			rows = append(rows, r)
		}
	}
	rows = append(rows, w.last())
	played = append(played, rows...)
	for _, one := range w.Broken() {
		w.t.Errorf("%s: %s", one.Kind, one.Told)
	}
	for _, r := range rows {
		hold(w.t, r)
	}
}

// play breaks something, heals it, waits until all is calm, and judges.
func (w *world) play(f fault) row {
	ctx, cancel := context.WithTimeout(w.ctx, faultTimeout)
	defer cancel()
	w.say("FAULT: %s", f.name)
	r := row{fault: f.name, promised: f.promised}
	broken, pods, began := len(w.Broken()), w.standingPods(), time.Now()
	heal, err := f.inject(ctx)
	if why := (notPlayed("")); errors.As(err, &why) {
		r.notPlayed = string(why)
		return r
	}
	if err != nil {
		w.Broke(judge.Wrong, f.name, "%s: %v", f.name, err)
	}
	healed := make(chan error, 1)
	go func() {
		w.pause(f.lasts)
		healed <- heal(ctx)
	}()
	handle := fakeHandle
	if f.onRealNode {
		handle = realHandle
	}
	if r.anew, err = w.anew(ctx, handle); err != nil {
		w.Broke(judge.Wrong, f.name+" anew", "%s: %v", f.name, err)
	}
	if err := <-healed; err != nil {
		w.Broke(judge.Wrong, f.name+" healed", "healing %s: %v", f.name, err)
	}
	w.say("HEALED: %s", f.name)
	w.rest()
	w.calm(ctx)
	if f.sparesPods {
		w.spared(pods)
	}
	w.goOn()
	all := w.probes.since(began)
	r.refused, r.oneAgent, r.broken = longest(all), slowest(all), w.brokenSince(broken)
	return r
}

// last gives everything back.
func (w *world) last() row {
	ctx, cancel := context.WithTimeout(w.ctx, faultTimeout)
	defer cancel()
	broken := len(w.Broken())
	w.finish()
	w.releaseAll(ctx)
	return row{fault: "all released at the end", broken: w.brokenSince(broken)}
}
