package meter

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// The metrics that count writes, one for each place where a write is seen.
const (
	requestsTotal = "apiserver_request_total"
	etcdSeconds   = "etcd_request_duration_seconds"
	ownTotal      = "sandbox_omnia_controller_writes_total"
)

const conflict = "409" // the code of HTTP, as metrics spell it

// Write is one kind of write, and how often it was asked for.
type Write struct {
	// Cluster is whose API our controllers wrote to: host, or own for the server's own group. It is empty but for OwnWrites.
	Cluster string
	// Group and Resource are what was written. Group is empty for the core group, and for OwnWrites, which do not tell it.
	Group, Resource string
	// Subresource is what of it; empty for the whole, and for EtcdWrites, which do not tell it.
	Subresource string
	// Verb is as the metric spells it: POST, PUT, PATCH, APPLY, DELETE or DELETECOLLECTION for HostWrites, create, update or
	// delete for EtcdWrites, and the verbs of RBAC for OwnWrites.
	Verb string
	// Count is how many were answered with success (2xx). EtcdWrites and OwnWrites know no answers and count all here.
	Count int
	// Conflicts are those answered with 409: the object had changed meanwhile, or one of that name exists already.
	Conflicts int
	// Refused are those answered otherwise: refused, failed, or too late.
	Refused int
}

// String is for instance "PATCH deployments.apps/status".
func (w Write) String() string {
	said := w.Verb + " " + w.Resource
	if w.Group != "" {
		said += "." + w.Group
	}
	if w.Subresource != "" {
		said += "/" + w.Subresource
	}
	return said
}

// Event says that an Event was written: a note for people, stored like everything else.
func (w Write) Event() bool {
	return w.Resource == "events" && (w.Group == "" || w.Group == "events.k8s.io")
}

// leftOut are the writes that are none. Heartbeats tell that somebody is alive, at a pace that no load changes; reviews and
// tokens are questions that are asked with POST, and nothing is stored. Everything else is told.
var leftOut = []Write{
	{Group: "coordination.k8s.io", Resource: "leases"},
	{Group: "coordination.k8s.io", Resource: "leasecandidates"},
	{Resource: "apiServerIPInfo"}, // kube-apiserver's own heartbeat, which etcd alone sees

	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
	{Resource: "serviceaccounts", Subresource: "token"},
}

// isLeftOut compares no group where the metric tells none.
func (w Write) isLeftOut() bool {
	return slices.ContainsFunc(leftOut, func(out Write) bool {
		return w.Resource == out.Resource && w.Subresource == out.Subresource && (w.Group == out.Group || w.Cluster != "")
	})
}

// HostWrites are the requests by which a Kubernetes API server was asked to write, most frequent first: those with a verb
// that writes, and no dry runs. One that changes nothing counts as well: EtcdWrites tells what was sent to the store. What is
// only relayed to an aggregated server is counted there alone. Leases, reviews and tokens are left out; events are told, see
// Write.Event.
func (c *Change) HostWrites() []Write {
	return c.writes(requestsTotal, func(series *dto.Metric) (Write, bool) {
		w := Write{
			Group: label(series, "group"), Resource: label(series, "resource"), Subresource: label(series, "subresource"),
			Verb: label(series, "verb"),
		}
		switch w.Verb {
		case http.MethodPost, http.MethodPut, http.MethodPatch, "APPLY", "DELETECOLLECTION":
		case http.MethodDelete:
			// Deleting a collection is told as DELETE too, and has another scope.
			if label(series, "scope") != "resource" {
				w.Verb = "DELETECOLLECTION"
			}
		default:
			return Write{}, false
		}
		return w, w.Resource != "" && label(series, "dry_run") == ""
	})
}

// EtcdWrites are the writes that a Kubernetes API server sent to its etcd, most frequent first. One that etcd refused because
// the object had changed counts as well, and so does each further attempt. Heartbeats are left out.
func (c *Change) EtcdWrites() []Write {
	return c.writes(etcdSeconds, func(series *dto.Metric) (Write, bool) {
		w := Write{Group: label(series, "group"), Resource: label(series, "resource"), Verb: label(series, "operation")}
		return w, w.Verb == "create" || w.Verb == "update" || w.Verb == "delete"
	})
}

// OwnWrites are the writes that our controllers asked for, most frequent first. Heartbeats are left out.
func (c *Change) OwnWrites() []Write {
	return c.writes(ownTotal, func(series *dto.Metric) (Write, bool) {
		resource, subresource, _ := strings.Cut(label(series, "resource"), "/")
		return Write{Cluster: label(series, "cluster"), Resource: resource, Subresource: subresource, Verb: label(series, "verb")}, true
	})
}

// IdleWrites are the writes that must be 0 of a server that is idle, whatever their outcome. It is no count of writes: one
// and the same may be seen as a request, on its way to etcd, and by the controllers, and is then counted each time. What a
// cluster's other parts write counts as well, for instance a kubelet that tells its node's status every five minutes.
func (c *Change) IdleWrites() int {
	sum := 0
	for _, w := range slices.Concat(c.HostWrites(), c.EtcdWrites(), c.OwnWrites()) {
		sum += w.asked()
	}
	return sum
}

func (w Write) asked() int { return w.Count + w.Conflicts + w.Refused }

// writes adds up by how much a metric's series grew, by the kind of write that each series is of; of a series that is of none,
// kind says false. A kind is a Write without its figures.
func (c *Change) writes(metric string, kind func(series *dto.Metric) (Write, bool)) []Write {
	sums := map[Write]Write{}
	add := func(r *Reading, sign int) {
		for _, series := range r.series(metric, nil) {
			if of, ok := kind(series); ok && !of.isLeftOut() {
				sum, found := sums[of]
				if !found {
					sum = of
				}
				*sum.figure(label(series, "code")) += sign * int(value(series))
				sums[of] = sum
			}
		}
	}
	add(c.after, 1)
	add(c.before, -1)
	all := slices.DeleteFunc(slices.Collect(maps.Values(sums)), func(w Write) bool { return w.asked() == 0 })
	slices.SortFunc(all, byCount)
	return all
}

// figure is where a write with this code of HTTP is counted; metrics that know no answers have none.
func (w *Write) figure(code string) *int {
	switch {
	case code == "" || strings.HasPrefix(code, "2"):
		return &w.Count
	case code == conflict:
		return &w.Conflicts
	}
	return &w.Refused
}

func byCount(a, b Write) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.asked(), a.asked()),
		cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Subresource, b.Subresource),
		cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Cluster, b.Cluster))
}
