package store

import "fmt"

// Reason says in what way what etcd holds is not the store that the ConfigMap knows. Events bear it.
type Reason string

const (
	// ReasonEmpty: etcd holds no mark: it was emptied, or it is another etcd or another prefix.
	ReasonEmpty Reason = "StoreEmpty"
	// ReasonForeign: etcd holds another store's mark.
	ReasonForeign Reason = "StoreForeign"
	// ReasonOlder: etcd holds the store as it was earlier: a backup was put in its place.
	ReasonOlder Reason = "StoreOlder"
	// ReasonAccepted: a person took what etcd holds for the store, by --accept-new-store.
	ReasonAccepted Reason = "StoreAccepted"
)

// Mark is a store's identity, as it stands in etcd and in the ConfigMap.
type Mark struct {
	// ID tells the store from all others.
	ID string `json:"id"`
	// Generation grows while the store is served.
	Generation int64 `json:"generation"`
	// Replaces is the id that the ConfigMap knew when this store was accepted in its place. A replica that finds it there
	// still finishes what another began.
	Replaces string `json:"replaces,omitempty"`
}

// Error says that what etcd holds is not the server's store, and what to do. Nothing may be served from it.
type Error struct {
	Reason Reason
	// Etcd is the mark that etcd holds; nil if none.
	Etcd *Mark
	// Known is what it should be, or be later than.
	Known Mark
	// Key and ConfigMap are where the marks are.
	Key, ConfigMap string
}

// Error tells what was found, what it means, and what to do.
func (e *Error) Error() string {
	const remedy = "give the server its store back (the flags --etcd-servers, --etcd-prefix or --embedded-etcd-dir, or a restored backup), " +
		"or start it with --accept-new-store: then it serves what etcd holds now, and removes the sandboxes whose claims are not in it"
	var found string
	switch e.Reason {
	case ReasonEmpty:
		found = fmt.Sprintf("etcd holds no mark of a store at %s; the store was emptied, or is not where the server looks", e.Key)
	case ReasonForeign:
		found = fmt.Sprintf("etcd holds store %s at %s; this is another server's store, or another was accepted since", e.Etcd.ID, e.Key)
	default:
		found = fmt.Sprintf("etcd holds generation %d of it at %s; the store was set back to an earlier state, and lacks what was written since", e.Etcd.Generation, e.Key)
	}
	return fmt.Sprintf("%s: the server's store is %s at generation %d (ConfigMap %s), and %s: nothing is served, or sandboxes would be taken for orphans; %s",
		e.Reason, e.Known.ID, e.Known.Generation, e.ConfigMap, found, remedy)
}

// differs says in what way a mark in etcd is not the known one, nor a later one of the same store; empty if it is.
func differs(etcd *Mark, known Mark) Reason {
	switch {
	case etcd == nil:
		return ReasonEmpty
	case etcd.ID != known.ID:
		return ReasonForeign
	case etcd.Generation < known.Generation:
		return ReasonOlder
	}
	return ""
}

// input is what a decision is made from.
type input struct {
	// etcd and configMap are the marks in these places; nil where there is none.
	etcd, configMap *Mark
	// accept says that a person takes etcd as it is.
	accept bool
}

type action string

const (
	// serve: the two agree.
	serve action = "Serve"
	// begin: there is no store yet. Give it a mark in etcd.
	begin action = "Begin"
	// record: write etcd's mark into the ConfigMap.
	record action = "Record"
	// replace: give what etcd holds a new id, by which whoever served the old one notices.
	replace action = "Replace"
	// refuse: this is not the server's store.
	refuse action = "Refuse"
)

// decide says what is due.
func decide(in input) (action, Reason) {
	switch {
	case in.etcd == nil && in.configMap == nil:
		return begin, ""
	case in.configMap == nil:
		return record, ""
	case in.etcd != nil && in.etcd.Replaces == in.configMap.ID:
		return record, "" // accepted already, and not yet told to the ConfigMap
	}
	reason := differs(in.etcd, *in.configMap)
	switch {
	case reason == "" && in.etcd.Generation == in.configMap.Generation:
		return serve, ""
	case reason == "":
		return record, ""
	case in.accept:
		return replace, reason
	}
	return refuse, reason
}
