// Package store tells a lost store from an empty one. A store has a mark, an id and a generation that grows while it is
// served, in etcd beside the claims and in a ConfigMap of the host cluster: what is lost, or set back, in the one place is
// remembered by the other. A server reads both before it serves (keeper.go), decides (decide.go), and looks again for as
// long as it runs.
//
//	etcd      ConfigMap
//	no mark   none          a fresh store, or one of before there were marks: both are made
//	a mark    none          the ConfigMap is made again
//	no mark   a mark        StoreEmpty: refused, unless accepted
//	another   a mark        StoreForeign: refused, unless accepted
//	behind    ahead         StoreOlder: refused, unless accepted
//	a mark    the same one, or behind   served
//
// Writers write etcd first, and readers read the ConfigMap first: so what the ConfigMap is seen to know, etcd is seen to
// have, however many replicas write and whenever one dies, unless the store was lost.
//
// It refuses to mend: which store is the right one, a person says. It does not notice what was lost within one interval.
package store
