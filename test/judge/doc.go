// Package judge is what a claim and its sandbox owe to whoever asked for them, whatever happens to the servers: no claim
// goes without a cause, none is there twice, a runtime and a session never have more than they may, the oldest is admitted
// first, nothing stands without its claim. It reads the claims' history from etcd and the sandboxes' from the host cluster.
//
// It refuses to know how the calls came about: what needs that is checked by whoever makes them, test/property and
// test/chaos, in Changed and Gone. And it asks nothing of pkg/lifecycle: else it would check that the rules are what they
// are.
package judge
