package meter

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const requestsBefore = `# HELP apiserver_request_total [STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="PATCH",version="v1"} 100
apiserver_request_total{code="201",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="POST",version="v1"} 10
apiserver_request_total{code="200",component="apiserver",dry_run="",group="networking.k8s.io",resource="networkpolicies",scope="resource",subresource="",verb="APPLY",version="v1"} 9
apiserver_request_total{code="0",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="WATCH",version="v1"} 5
`

const requestsAfter = `# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="PATCH",version="v1"} 103
apiserver_request_total{code="409",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="PATCH",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="All",group="apps",resource="deployments",scope="resource",subresource="",verb="PATCH",version="v1"} 40
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="status",verb="PUT",version="v1"} 8
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="namespace",subresource="",verb="LIST",version="v1"} 50
apiserver_request_total{code="201",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="POST",version="v1"} 14
apiserver_request_total{code="403",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="500",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="networking.k8s.io",resource="networkpolicies",scope="resource",subresource="",verb="APPLY",version="v1"} 9
apiserver_request_total{code="201",component="apiserver",dry_run="",group="networking.k8s.io",resource="networkpolicies",scope="resource",subresource="",verb="APPLY",version="v1"} 4
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="DELETE",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="DELETE",version="v1"} 1
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 4
apiserver_request_total{code="101",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="exec",verb="CONNECT",version="v1"} 2
apiserver_request_total{code="0",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="WATCH",version="v1"} 6
apiserver_request_total{code="429",component="apiserver",dry_run="",group="",resource="services",scope="resource",subresource="",verb="POST",version="v1"} 2
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 6
apiserver_request_total{code="200",component="apiserver",dry_run="",group="events.k8s.io",resource="events",scope="resource",subresource="",verb="PATCH",version="v1"} 1
apiserver_request_total{code="429",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="POST",version=""} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 99
apiserver_request_total{code="201",component="apiserver",dry_run="",group="authentication.k8s.io",resource="tokenreviews",scope="resource",subresource="",verb="POST",version="v1"} 99
apiserver_request_total{code="201",component="apiserver",dry_run="",group="authorization.k8s.io",resource="subjectaccessreviews",scope="resource",subresource="",verb="POST",version="v1"} 99
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="serviceaccounts",scope="resource",subresource="token",verb="POST",version="v1"} 99
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="serviceaccounts",scope="resource",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 1
`

func TestHostWrites(t *testing.T) {
	c := between(t, requestsBefore, requestsAfter)
	assert.Equal(t, []Write{
		{Group: "apps", Resource: "deployments", Subresource: "status", Verb: "PUT", Count: 8},
		{Resource: "events", Verb: "POST", Count: 6},
		{Group: "apps", Resource: "deployments", Verb: "POST", Count: 4, Refused: 2},
		{Resource: "pods", Subresource: "binding", Verb: "POST", Count: 4},
		{Group: "networking.k8s.io", Resource: "networkpolicies", Verb: "APPLY", Count: 4},
		{Group: "apps", Resource: "deployments", Verb: "PATCH", Count: 3, Conflicts: 2},
		{Resource: "pods", Verb: "DELETE", Count: 3},
		{Resource: "pods", Verb: "DELETECOLLECTION", Count: 1},
		{Resource: "serviceaccounts", Verb: "POST", Count: 1},
		{Group: "events.k8s.io", Resource: "events", Verb: "PATCH", Count: 1},
		{Group: "example.com", Resource: "leases", Verb: "PUT", Count: 1},
		{Resource: "services", Verb: "POST", Refused: 2},
	}, c.HostWrites())
	assert.Equal(t, 8+6+6+4+4+5+3+1+1+1+1+2, c.IdleWrites())
}

func TestNoWrites(t *testing.T) {
	for name, c := range map[string]*Change{
		"nothing is told":   between(t, "", ""),
		"nothing has grown": between(t, requestsAfter+etcdAfter+ownAfter, requestsAfter+etcdAfter+ownAfter),
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, c.HostWrites())
			assert.Empty(t, c.EtcdWrites())
			assert.Empty(t, c.OwnWrites())
			assert.Zero(t, c.IdleWrites())
		})
	}
}

const etcdBefore = `# TYPE etcd_request_duration_seconds histogram
etcd_request_duration_seconds_bucket{group="sandbox.omnia",operation="update",resource="sandboxclaims",le="+Inf"} 7
etcd_request_duration_seconds_sum{group="sandbox.omnia",operation="update",resource="sandboxclaims"} 0.01
etcd_request_duration_seconds_count{group="sandbox.omnia",operation="update",resource="sandboxclaims"} 7
`

const etcdAfter = `# TYPE etcd_request_duration_seconds histogram
etcd_request_duration_seconds_bucket{group="sandbox.omnia",operation="create",resource="sandboxclaims",le="+Inf"} 2
etcd_request_duration_seconds_sum{group="sandbox.omnia",operation="create",resource="sandboxclaims"} 0.02
etcd_request_duration_seconds_count{group="sandbox.omnia",operation="create",resource="sandboxclaims"} 2
etcd_request_duration_seconds_bucket{group="sandbox.omnia",operation="delete",resource="sandboxclaims",le="+Inf"} 1
etcd_request_duration_seconds_sum{group="sandbox.omnia",operation="delete",resource="sandboxclaims"} 0.01
etcd_request_duration_seconds_count{group="sandbox.omnia",operation="delete",resource="sandboxclaims"} 1
etcd_request_duration_seconds_bucket{group="sandbox.omnia",operation="get",resource="sandboxclaims",le="+Inf"} 30
etcd_request_duration_seconds_sum{group="sandbox.omnia",operation="get",resource="sandboxclaims"} 0.03
etcd_request_duration_seconds_count{group="sandbox.omnia",operation="get",resource="sandboxclaims"} 30
etcd_request_duration_seconds_bucket{group="sandbox.omnia",operation="listWithCount",resource="sandboxclaims",le="+Inf"} 5
etcd_request_duration_seconds_sum{group="sandbox.omnia",operation="listWithCount",resource="sandboxclaims"} 0.01
etcd_request_duration_seconds_count{group="sandbox.omnia",operation="listWithCount",resource="sandboxclaims"} 5
etcd_request_duration_seconds_bucket{group="sandbox.omnia",operation="update",resource="sandboxclaims",le="+Inf"} 10
etcd_request_duration_seconds_sum{group="sandbox.omnia",operation="update",resource="sandboxclaims"} 0.02
etcd_request_duration_seconds_count{group="sandbox.omnia",operation="update",resource="sandboxclaims"} 10
etcd_request_duration_seconds_bucket{group="coordination.k8s.io",operation="update",resource="leases",le="+Inf"} 99
etcd_request_duration_seconds_sum{group="coordination.k8s.io",operation="update",resource="leases"} 0.2
etcd_request_duration_seconds_count{group="coordination.k8s.io",operation="update",resource="leases"} 99
etcd_request_duration_seconds_bucket{group="",operation="update",resource="apiServerIPInfo",le="+Inf"} 99
etcd_request_duration_seconds_sum{group="",operation="update",resource="apiServerIPInfo"} 0.2
etcd_request_duration_seconds_count{group="",operation="update",resource="apiServerIPInfo"} 99
`

func TestEtcdWrites(t *testing.T) {
	c := between(t, etcdBefore, etcdAfter)
	assert.Equal(t, []Write{
		{Group: "sandbox.omnia", Resource: "sandboxclaims", Verb: "update", Count: 3},
		{Group: "sandbox.omnia", Resource: "sandboxclaims", Verb: "create", Count: 2},
		{Group: "sandbox.omnia", Resource: "sandboxclaims", Verb: "delete", Count: 1},
	}, c.EtcdWrites())
	assert.Equal(t, 6, c.IdleWrites())
}

const ownBefore = `# TYPE sandbox_omnia_controller_writes_total counter
sandbox_omnia_controller_writes_total{cluster="host",resource="deployments",verb="create"} 7
`

const ownAfter = `# HELP sandbox_omnia_controller_writes_total [ALPHA] Requests of the controllers that write, by cluster, verb, and resource with its subresource.
# TYPE sandbox_omnia_controller_writes_total counter
sandbox_omnia_controller_writes_total{cluster="host",resource="deployments",verb="create"} 8
sandbox_omnia_controller_writes_total{cluster="host",resource="services",verb="create"} 1
sandbox_omnia_controller_writes_total{cluster="host",resource="events",verb="create"} 2
sandbox_omnia_controller_writes_total{cluster="host",resource="leases",verb="update"} 99
sandbox_omnia_controller_writes_total{cluster="own",resource="sandboxclaims/status",verb="patch"} 3
`

func TestOwnWrites(t *testing.T) {
	c := between(t, ownBefore, ownAfter)
	assert.Equal(t, []Write{
		{Cluster: "own", Resource: "sandboxclaims", Subresource: "status", Verb: "patch", Count: 3},
		{Cluster: "host", Resource: "events", Verb: "create", Count: 2},
		{Cluster: "host", Resource: "deployments", Verb: "create", Count: 1},
		{Cluster: "host", Resource: "services", Verb: "create", Count: 1},
	}, c.OwnWrites())
	assert.Equal(t, 7, c.IdleWrites())
}

func TestWrite(t *testing.T) {
	for want, test := range map[string]struct {
		write Write
		event bool
	}{
		"PATCH deployments.apps/status": {Write{Group: "apps", Resource: "deployments", Subresource: "status", Verb: "PATCH"}, false},
		"POST pods/binding":             {Write{Resource: "pods", Subresource: "binding", Verb: "POST"}, false},
		"POST events":                   {Write{Resource: "events", Verb: "POST"}, true},
		"PATCH events.events.k8s.io":    {Write{Group: "events.k8s.io", Resource: "events", Verb: "PATCH"}, true},
		"POST events.example.com":       {Write{Group: "example.com", Resource: "events", Verb: "POST"}, false},
		"create events":                 {Write{Cluster: "host", Resource: "events", Verb: "create"}, true},
	} {
		t.Run(want, func(t *testing.T) {
			assert.Equal(t, want, test.write.String())
			assert.Equal(t, test.event, test.write.Event())
		})
	}
}
