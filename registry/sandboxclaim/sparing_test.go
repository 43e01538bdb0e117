package sandboxclaim

import (
	"fmt"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	cacherstore "k8s.io/apiserver/pkg/storage/cacher/store"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/install"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/interned"
)

// codecs gives the codec that claims are stored by, plain and sparing.
func codecs() (plain, sparing runtime.Codec) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	plain = serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
	return plain, sparingCodec{plain, interned.NewPool(remembered)}
}

func decoded(t *testing.T, codec runtime.Codec, claim *sandbox.SandboxClaim) *sandbox.SandboxClaim {
	t.Helper()
	stored, err := runtime.Encode(codec, claim)
	require.NoError(t, err)
	out := &sandbox.SandboxClaim{}
	require.NoError(t, runtime.DecodeInto(codec, stored, out))
	return out
}

const (
	specFields = `{"f:metadata":{"f:labels":{".":{},"f:omnia.altairalabs.ai/sandbox-agent-runtime":{},"f:omnia.altairalabs.ai/sandbox-session":{}},` +
		`"f:ownerReferences":{".":{},"k:{\"uid\":\"runtime-uid\"}":{}}},"f:spec":{"f:agentRuntimeRef":{".":{},"f:name":{}},` +
		`"f:classRef":{".":{},"f:kind":{},"f:name":{}},"f:handle":{},"f:maxInstances":{},"f:sessionID":{}}}`
	statusFields = `{"f:status":{"f:addresses":{".":{},"f:mcp":{}},"f:boundAt":{},"f:class":{".":{},"f:image":{},"f:imagePullPolicy":{},` +
		`"f:ports":{".":{},"k:{\"name\":\"mcp\"}":{".":{},"f:name":{},"f:port":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}}}},` +
		`"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},` +
		`"f:deployment":{".":{},"f:generation":{},"f:uid":{}},"f:lastUsedAt":{},"f:observedGeneration":{},"f:phase":{},"f:sandboxName":{}}}`
)

// boundClaim is a claim that acquire made, with all that it has once it is Bound.
func boundClaim(i int) *sandbox.SandboxClaim {
	name, session, at := fmt.Sprintf("my-agent-sbx-%013d", i), fmt.Sprintf("50000000-0000-4000-8000-%012d", i), &metav1.MicroTime{Time: began}
	entry := func(subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: fieldManagerName, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1alpha1.SchemeGroupVersion.String(),
			Time: &metav1.Time{Time: began}, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource}
	}
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	return &sandbox.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("a0000000-0000-4000-8000-%012d", i)), Generation: 1, CreationTimestamp: metav1.Time{Time: began},
			Labels:          map[string]string{v1alpha1.LabelAgentRuntime: "my-agent", v1alpha1.LabelSession: session},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "omnia.altairalabs.ai/v1alpha1", Kind: "AgentRuntime", Name: "my-agent", UID: "runtime-uid"}},
			ManagedFields:   []metav1.ManagedFieldsEntry{entry("", specFields), entry("status", statusFields)},
		},
		Spec: sandbox.SandboxClaimSpec{
			AgentRuntimeRef: &sandbox.AgentRuntimeReference{Name: "my-agent"}, ClassRef: sandbox.ClassReference{Name: "shell", Kind: sandbox.ClusterSandboxClassKind},
			SessionID: session, Handle: "shell/default", MaxInstances: ptr.To[int32](1),
		},
		Status: sandbox.SandboxClaimStatus{
			ObservedGeneration: 1, Phase: sandbox.PhaseBound, Addresses: map[string]string{"mcp": "10.0.0.1:8080"}, SandboxName: name + "-sandbox",
			Class: &sandbox.SandboxClassSpec{
				Image: "example.test/shell:1", ImagePullPolicy: corev1.PullIfNotPresent, Ports: []sandbox.ClassPort{{Name: "mcp", Port: 8080}},
				Resources: corev1.ResourceRequirements{Requests: resources, Limits: resources},
			},
			Deployment: &sandbox.DeploymentRecord{UID: types.UID(session), Generation: 1}, QueuedAt: at, BoundAt: at, LastUsedAt: at,
			Conditions: []metav1.Condition{
				provenance(1, metav1.Time{Time: began}),
				{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSandboxReady,
					Message: "the sandbox answers at its addresses", LastTransitionTime: metav1.Time{Time: began}},
			},
		},
	}
}

func TestClaimsThatAreRead_AreAsTheyAreStored_AndShareWhatTheyHaveInCommon(t *testing.T) {
	plain, sparing := codecs()
	first, second := decoded(t, sparing, boundClaim(1)), decoded(t, sparing, boundClaim(2))
	assert.Equal(t, decoded(t, plain, boundClaim(1)), first)
	assert.Equal(t, decoded(t, plain, boundClaim(2)), second)
	assert.Same(t, first.Status.Class, second.Status.Class)
	assert.Same(t, &first.ManagedFields[1].FieldsV1.GetRawBytes()[0], &second.ManagedFields[1].FieldsV1.GetRawBytes()[0])
	other := boundClaim(3)
	other.Status.Class.Image = "example.test/shell:2"
	assert.Equal(t, decoded(t, plain, other), decoded(t, sparing, other))
	bare := &sandbox.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "bare", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	assert.Equal(t, decoded(t, plain, bare), decoded(t, sparing, bare))
}

func TestWhatOneClaimsStatusBecomes_IsNotAnothers(t *testing.T) {
	w := newWorld(t, 10)
	for i := range 2 {
		bound := boundClaim(i)
		claim := &sandbox.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: bound.Name}, Spec: sandbox.SandboxClaimSpec{
			AgentRuntimeRef: bound.Spec.AgentRuntimeRef, ClassRef: bound.Spec.ClassRef, SessionID: "s"}}
		claim, err := w.byHand(claim)
		require.NoError(t, err)
		w.set(claim.Name, func(s *sandbox.SandboxClaimStatus) { s.Class = bound.Status.Class })
	}
	list, err := w.writes.bySession(w.agent(), "my-agent", "s")
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Same(t, list[0].Status.Class, list[1].Status.Class, "the watch cache holds their class once")

	w.set(list[0].Name, func(s *sandbox.SandboxClaimStatus) {
		s.Class.Image, s.Class.Ports[0].Port = "example.test/shell:2", 9090
	})
	list, err = w.writes.bySession(w.agent(), "my-agent", "s")
	require.NoError(t, err)
	assert.Equal(t, "example.test/shell:2", list[0].Status.Class.Image)
	assert.Equal(t, boundClaim(1).Status.Class, list[1].Status.Class)
	assert.Equal(t, boundClaim(1).Status.Class, w.get(list[1].Name).Status.Class)
}

// What is asserted is far from what is measured, since that differs with Go and Kubernetes: it is what there would be if
// nothing were shared.
func TestMemoryOfAClaimThatStands(t *testing.T) {
	const claims = 500
	plain, sparing := codecs()
	decoded(t, sparing, boundClaim(0)) // what is made once for all is not counted
	measure := func(codec runtime.Codec) float64 {
		before := live()
		held := cacherstore.NewIndexer(&cache.Indexers{sessionField: func(o any) ([]string, error) { return []string{o.(*sandbox.SandboxClaim).Spec.SessionID}, nil }})
		for i := range claims {
			claim := decoded(t, codec, boundClaim(i))
			labels, fields, err := getAttrs(claim)
			require.NoError(t, err)
			key := "/registry/sandbox.omnia/sandboxclaims/" + namespace + "/" + claim.Name
			require.NoError(t, held.Add(&cacherstore.Element{Key: key, Object: claim, Labels: labels, Fields: fields}))
		}
		defer goruntime.KeepAlive(held)
		return float64(live()-before) / claims
	}
	whole, shared := measure(plain), measure(sparing)
	t.Logf("in the watch cache: whole %.0f bytes, shared %.0f", whole, shared)
	assert.Less(t, shared, whole*7/10)
}

// live is how many bytes of the heap are in use.
func live() int64 {
	goruntime.GC()
	goruntime.GC() // what the first found to be finished with is freed
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
