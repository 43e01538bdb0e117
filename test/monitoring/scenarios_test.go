package monitoring

import (
	"fmt"
	"slices"
)

// scenario is what an alert is tried with: series, a sample a minute, as promtool's tests write them.
type scenario struct {
	fires []string
	// quiet is as near to it as an alert should be silent at.
	quiet []string
}

func (s scenario) all() []string { return slices.Concat(s.fires, s.quiet, well) }

// Targets as the operator labels them.
const (
	server      = `job="sandbox-apiserver", metrics_path="/metrics", pod="a"`
	another     = `job="sandbox-apiserver", metrics_path="/metrics", pod="b"`
	controllers = `job="sandbox-apiserver", metrics_path="/metrics/controllers", pod="a"`
)

// steady is a series that keeps its value.
func steady(name, labels string, value float64) string {
	return fmt.Sprintf("%s{%s} %gx%d", name, labels, value, at)
}

// growing is a series that grows each minute.
func growing(name, labels string, by float64) string {
	return fmt.Sprintf("%s{%s} 0+%gx%d", name, labels, by, at)
}

// observing is a histogram that each minute observes something between two bounds.
func observing(name, labels, above, upTo string) []string {
	bucket := func(le string) string { return fmt.Sprintf("%s, le=%q", labels, le) }
	return []string{
		growing(name+"_bucket", bucket(above), 0),
		growing(name+"_bucket", bucket(upTo), 10),
		growing(name+"_bucket", bucket("+Inf"), 10),
	}
}

// ratio is two series, of which one has the share of the other in percent.
func ratio(part, rest string, percent float64) []string {
	return []string{part + fmt.Sprintf(" 0+%gx%d", percent, at), rest + fmt.Sprintf(" 0+%gx%d", 100-percent, at)}
}

const (
	acquires   = "sandbox_omnia_acquire_duration_seconds"
	ended      = "sandbox_omnia_claims_ended_total"
	requests   = `apiserver_request_total{` + server + `, group="sandbox.omnia", resource="sandboxclaims", subresource="acquire", verb="POST", code="%s"}`
	reconciles = `controller_runtime_reconcile_total{` + controllers + `, controller="sandboxclaim", result="%s"}`
	toHost     = `rest_client_requests_total{` + controllers + `, host="10.0.0.1:443", method="GET", code="%s"}`
)

// well is a server that is well: two replicas, of which one leads.
var well = slices.Concat(
	[]string{
		steady("aggregator_unavailable_apiservice", `name="v1alpha1.sandbox.omnia"`, 0),
		steady(up, server, 1), steady(up, another, 1),
		steady("process_start_time_seconds", server, -1000), steady("process_start_time_seconds", another, -500),
		steady("sandbox_omnia_serving_certificate_expiration_timestamp_seconds", server, 60*86400),
		"sandbox_omnia_store_confirmed_timestamp_seconds{" + server + "} -30+60x120",
		steady("sandbox_omnia_waiting_acquires", server, 20),
		steady("sandbox_omnia_queue_depth", server, 3), steady("sandbox_omnia_queue_oldest_age_seconds", server, 20),
		steady("sandbox_omnia_claims", server+`, phase="Bound", reason="SandboxReady"`, 500),
		steady("sandbox_omnia_claims", server+`, phase="Failed", reason="ClassNotFound"`, 2),
		steady("sandbox_omnia_claims_weakened", server, 0), steady("sandbox_omnia_claims_egress_unresolved", server, 0),
		growing(ended, server+`, cause="Released"`, 2), growing(ended, server+`, cause="Idle"`, 0.5),
		growing(ended, server+`, cause="SandboxNeverReady"`, 0), growing(ended, server+`, cause="QueueWaitExceeded"`, 0),
		growing("sandbox_omnia_withdrawals_total", server+`, cause="hung_up"`, 0.1),
		steady("workqueue_longest_running_processor_seconds", controllers+`, controller="sandboxclaim"`, 0.1),
		steady("workqueue_depth", controllers+`, controller="sandboxclaim"`, 2),
		steady("apiserver_storage_size_bytes", server+`, storage_cluster_id="etcd-0"`, 5e7),
		growing(acquires+"_count", server+`, outcome="error"`, 0), growing(acquires+"_count", server+`, outcome="bound"`, 50),
		growing("etcd_requests_total", server+`, operation="get"`, 100),
	},
	observing(acquires, server+`, outcome="bound"`, "0.25", "0.5"),
	observing("sandbox_omnia_claim_time_to_bound_seconds", server, "1", "2.5"),
	observing("etcd_request_duration_seconds", server+`, operation="get"`, "0.005", "0.025"),
	ratio(fmt.Sprintf(requests, "503"), fmt.Sprintf(requests, "201"), 0),
	ratio(fmt.Sprintf(reconciles, "error"), fmt.Sprintf(reconciles, "success"), 1),
	ratio(fmt.Sprintf(toHost, "409"), fmt.Sprintf(toHost, "200"), 20),
)

var scenarios = map[string]scenario{
	"SandboxAPIServiceUnavailable": {
		fires: []string{steady("aggregator_unavailable_apiservice", `name="v1alpha1.sandbox.omnia"`, 1)},
		quiet: []string{steady("aggregator_unavailable_apiservice", `name="v1.another"`, 1)},
	},
	"SandboxServerAbsent": {
		fires: []string{steady(up, server, 0), steady(up, `job="another", metrics_path="/metrics"`, 1)},
		quiet: []string{steady(up, server, 0), steady(up, another, 1)},
	},
	"SandboxServerDown": {
		fires: []string{steady(up, server, 0), steady(up, another, 1)},
		quiet: []string{fmt.Sprintf("%s{%s} 0x%d 1 0x8", up, server, at-9)}, // one answer, nine minutes ago
	},
	"SandboxServerRestarts": {
		fires: []string{`process_start_time_seconds{` + server + `} 0x70 4300x15 5200x15 6100x20`},
		quiet: []string{`process_start_time_seconds{` + server + `} 0x70 4300x15 5200x35`, `process_start_time_seconds{` + another + `} 0x70 4300x50`},
	},
	"SandboxServingCertificateEnds": {
		fires: []string{steady("sandbox_omnia_serving_certificate_expiration_timestamp_seconds", server, 13*86400)},
		quiet: []string{steady("sandbox_omnia_serving_certificate_expiration_timestamp_seconds", server, 15*86400)},
	},
	"SandboxStoreUnconfirmed": {
		fires: []string{`sandbox_omnia_store_confirmed_timestamp_seconds{` + server + `} -310+60x120`},
		quiet: []string{`sandbox_omnia_store_confirmed_timestamp_seconds{` + server + `} -290+60x120`},
	},
	"SandboxRequestsFail": {
		fires: ratio(fmt.Sprintf(requests, "500"), fmt.Sprintf(requests, "201"), 6),
		quiet: ratio(fmt.Sprintf(requests, "409"), fmt.Sprintf(requests, "201"), 90),
	},
	"SandboxAcquiresFail": {
		fires: ratio(acquires+`_count{`+server+`, outcome="error"}`, acquires+`_count{`+another+`, outcome="bound"}`, 6),
		quiet: ratio(acquires+`_count{`+server+`, outcome="error"}`, acquires+`_count{`+another+`, outcome="MaxPerSession"}`, 4),
	},
	"SandboxAcquiresSlow": {
		fires: observing(acquires, server+`, outcome="bound"`, "10", "25"),
		quiet: observing(acquires, server+`, outcome="bound"`, "5", "10"),
	},
	"SandboxAcquiresUnbound": {
		fires: ratio(acquires+`_count{`+server+`, outcome="unbound"}`, acquires+`_count{`+server+`, outcome="bound"}`, 51),
		quiet: ratio(acquires+`_count{`+server+`, outcome="unbound"}`, acquires+`_count{`+server+`, outcome="bound"}`, 49),
	},
	"SandboxWaitersNearLimit": {
		fires: []string{steady("sandbox_omnia_waiting_acquires", server, 8001)},
		quiet: []string{steady("sandbox_omnia_waiting_acquires", server, 7000), steady("sandbox_omnia_waiting_acquires", another, 7000)},
	},
	"SandboxTimeToBoundLong": {
		fires: observing("sandbox_omnia_claim_time_to_bound_seconds", server, "60", "180"),
		quiet: observing("sandbox_omnia_claim_time_to_bound_seconds", server, "30", "60"),
	},
	"SandboxQueueOld": {
		fires: []string{growing("sandbox_omnia_queue_oldest_age_seconds", server, 60)},
		quiet: []string{steady("sandbox_omnia_queue_oldest_age_seconds", server, 590)},
	},
	"SandboxQueueDeep": {
		fires: []string{steady("sandbox_omnia_queue_depth", server, 101)},
		quiet: []string{steady("sandbox_omnia_queue_depth", server, 100)},
	},
	"SandboxQueueWaitExceeded": {
		fires: []string{growing(ended, server+`, cause="QueueWaitExceeded"`, 0.2)},
		quiet: []string{growing(ended, server+`, cause="QueueWaitExceeded"`, 0.05), growing(ended, server+`, cause="Released"`, 9)},
	},
	"SandboxesNeverReady": {
		fires: []string{growing(ended, server+`, cause="SandboxNeverReady"`, 0.2)},
		quiet: []string{growing(ended, server+`, cause="SandboxNeverReady"`, 0.05), growing(ended, server+`, cause="Idle"`, 9)},
	},
	"SandboxClaimsFailed": {
		fires: []string{steady("sandbox_omnia_claims", server+`, phase="Failed", reason="ClassNotFound"`, 11)},
		quiet: []string{
			steady("sandbox_omnia_claims", server+`, phase="Failed", reason="ClassNotFound"`, 10),
			steady("sandbox_omnia_claims", server+`, phase="Pending", reason="Unschedulable"`, 50),
		},
	},
	"SandboxesEndIdle": {
		fires: []string{growing(ended, server+`, cause="Idle"`, 1), growing(ended, server+`, cause="Released"`, 0.9)},
		quiet: []string{growing(ended, server+`, cause="Idle"`, 1), growing(ended, another+`, cause="Released"`, 1.1)},
	},
	"SandboxCallersGiveUp": {
		fires: []string{growing("sandbox_omnia_withdrawals_total", server+`, cause="lease_expired"`, 1)},
		quiet: []string{growing("sandbox_omnia_withdrawals_total", server+`, cause="session_limit"`, 9)},
	},
	"SandboxIsolationWeakened": {
		fires: []string{steady("sandbox_omnia_claims_weakened", server, 1)},
		quiet: []string{steady("sandbox_omnia_claims_weakened", server, 0)},
	},
	"SandboxEgressUnresolved": {
		fires: []string{steady("sandbox_omnia_claims_egress_unresolved", server, 1)},
		quiet: []string{fmt.Sprintf("sandbox_omnia_claims_egress_unresolved{%s} 0x%d 1x11", server, at-12)}, // not for long
	},
	"SandboxControllersWithoutLeader": {
		fires: []string{steady(up, server, 1), fmt.Sprintf("sandbox_omnia_queue_depth{%s} 0x100 stale", server)},
		quiet: []string{steady(up, server, 0)}, // nobody serves at all, which others tell
	},
	"SandboxControllersWithTwoLeaders": {
		fires: []string{steady("sandbox_omnia_queue_depth", server, 0), steady("sandbox_omnia_queue_depth", another, 0)},
		quiet: []string{ // the Lease changes hands
			fmt.Sprintf("sandbox_omnia_queue_depth{%s} 0x%d stale", server, at-2),
			fmt.Sprintf("sandbox_omnia_queue_depth{%s} _x%d 0x3", another, at-3),
		},
	},
	"SandboxReconcilesFail": {
		fires: ratio(fmt.Sprintf(reconciles, "error"), fmt.Sprintf(reconciles, "success"), 21),
		quiet: ratio(fmt.Sprintf(reconciles, "error"), fmt.Sprintf(reconciles, "requeue_after"), 19),
	},
	"SandboxReconcileStuck": {
		fires: []string{growing("workqueue_longest_running_processor_seconds", controllers+`, controller="sandboxclaim"`, 60)},
		quiet: []string{
			steady("workqueue_longest_running_processor_seconds", controllers+`, controller="sandboxclaim"`, 60),
			steady("workqueue_longest_running_processor_seconds", server+`, name="of the API server's own"`, 1000),
		},
	},
	"SandboxWorkqueueDeep": {
		fires: []string{steady("workqueue_depth", controllers+`, controller="sandboxclaim", priority="0"`, 60), steady("workqueue_depth", controllers+`, controller="sandboxclaim", priority="-100"`, 60)},
		quiet: []string{steady("workqueue_depth", controllers+`, controller="sandboxclaim", priority="0"`, 60), steady("workqueue_depth", controllers+`, controller="toolregistry", priority="0"`, 60)},
	},
	"SandboxHostRequestsFail": {
		fires: ratio(fmt.Sprintf(toHost, "<error>"), fmt.Sprintf(toHost, "200"), 6),
		quiet: ratio(fmt.Sprintf(toHost, "404"), fmt.Sprintf(toHost, "200"), 50),
	},
	"SandboxEtcdRequestsFail": {
		fires: []string{growing("etcd_request_errors_total", server+`, operation="create"`, 2), growing("etcd_requests_total", server+`, operation="create"`, 100)},
		quiet: []string{growing("etcd_request_errors_total", server+`, operation="create"`, 0.5), growing("etcd_requests_total", server+`, operation="create"`, 100)},
	},
	"SandboxEtcdSlow": {
		fires: observing("etcd_request_duration_seconds", server+`, operation="create"`, "0.6", "0.8"),
		quiet: observing("etcd_request_duration_seconds", server+`, operation="create"`, "0.2", "0.4"),
	},
	"SandboxStorageNearQuota": {
		fires: []string{steady("apiserver_storage_size_bytes", server+`, storage_cluster_id="etcd-0"`, 1.8e9)},
		quiet: []string{steady("apiserver_storage_size_bytes", server+`, storage_cluster_id="etcd-0"`, 1.7e9)},
	},
	"SandboxWatchersTerminated": {
		fires: []string{growing("apiserver_terminated_watchers_total", server+`, group="sandbox.omnia", resource="sandboxclaims"`, 1)},
		quiet: []string{growing("apiserver_terminated_watchers_total", server+`, group="sandbox.omnia", resource="sandboxclaims"`, 0.5)},
	},
}
