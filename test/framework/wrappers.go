package framework

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

const (
	// SandboxImage is the sample sandbox; `go run ./hack/demo images` builds and loads it.
	SandboxImage = "sandbox.omnia/sample-sandbox:dev"
	// AgentImage is the sample agent; `go run ./hack/demo images` builds and loads it.
	AgentImage = "sandbox.omnia/sample-agent:dev"
	// AttackerImage is the sandbox that wants out; LoadAttackerImage builds and loads it from AttackerPackage.
	AttackerImage   = "sandbox.omnia/attacker:dev"
	AttackerPackage = "./test/images/attacker"
	// AttackerFolder is a folder in the attacker's image that its user may write, as far as the image has a say.
	AttackerFolder = "/owned"

	// fakeNodeLabel and fakeNodeTaint mark the nodes that KWOK plays.
	fakeNodeLabel = "type"
	fakeNodeValue = "kwok"
	fakeNodeTaint = "kwok.x-k8s.io/node"
	// realNodeLabel marks the node that runs containers.
	realNodeLabel = "sandbox.omnia/node"
	realNodeValue = "real"

	// FakeNodes and RealNodes select the ones and the others.
	FakeNodes = fakeNodeLabel + "=" + fakeNodeValue
	RealNodes = realNodeLabel + "=" + realNodeValue
)

// RuntimeWrapper builds an AgentRuntime.
type RuntimeWrapper struct{ omniav1alpha1.AgentRuntime }

// MakeRuntime begins an AgentRuntime that may have sandboxes, with everything else unset.
func MakeRuntime(name, namespace string) *RuntimeWrapper {
	return &RuntimeWrapper{omniav1alpha1.AgentRuntime{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       omniav1alpha1.AgentRuntimeSpec{Sandbox: &omniav1alpha1.AgentRuntimeSandbox{Enabled: true}},
	}}
}

// Obj gives the AgentRuntime.
func (w *RuntimeWrapper) Obj() *omniav1alpha1.AgentRuntime { return &w.AgentRuntime }

// Clone gives a copy that can go its own way.
func (w *RuntimeWrapper) Clone() *RuntimeWrapper { return &RuntimeWrapper{*w.DeepCopy()} }

// ToolRegistry names the runtime's ToolRegistry.
func (w *RuntimeWrapper) ToolRegistry(name string) *RuntimeWrapper {
	w.Spec.ToolRegistryRef = &omniav1alpha1.ToolRegistryReference{Name: name}
	return w
}

// ServiceAccount names the runtime's ServiceAccount, in place of <runtime>-facade.
func (w *RuntimeWrapper) ServiceAccount(name string) *RuntimeWrapper {
	w.Spec.PodOverrides = &omniav1alpha1.PodOverrides{ServiceAccountName: name}
	return w
}

// Enabled says whether the runtime may have sandboxes.
func (w *RuntimeWrapper) Enabled(enabled bool) *RuntimeWrapper {
	w.Spec.Sandbox.Enabled = enabled
	return w
}

// MaxConcurrent bounds the runtime's admitted claims.
func (w *RuntimeWrapper) MaxConcurrent(n int32) *RuntimeWrapper {
	w.Spec.Sandbox.MaxConcurrent = ptr.To(n)
	return w
}

// MaxPerSession bounds one session's claims.
func (w *RuntimeWrapper) MaxPerSession(n int32) *RuntimeWrapper {
	w.Spec.Sandbox.MaxPerSession = ptr.To(n)
	return w
}

// IdleTimeout says how long a claim may go untouched.
func (w *RuntimeWrapper) IdleTimeout(d time.Duration) *RuntimeWrapper {
	w.Spec.Sandbox.IdleTimeout = &metav1.Duration{Duration: d}
	return w
}

// ReleaseGrace says how long a claim outlives its conversation.
func (w *RuntimeWrapper) ReleaseGrace(d time.Duration) *RuntimeWrapper {
	w.Spec.Sandbox.ReleaseGrace = &metav1.Duration{Duration: d}
	return w
}

// ToolRegistryWrapper builds a ToolRegistry.
type ToolRegistryWrapper struct{ omniav1alpha1.ToolRegistry }

// MakeToolRegistry begins a ToolRegistry without sandboxes.
func MakeToolRegistry(name, namespace string) *ToolRegistryWrapper {
	return &ToolRegistryWrapper{omniav1alpha1.ToolRegistry{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}}
}

// Obj gives the ToolRegistry.
func (w *ToolRegistryWrapper) Obj() *omniav1alpha1.ToolRegistry { return &w.ToolRegistry }

// Clone gives a copy that can go its own way.
func (w *ToolRegistryWrapper) Clone() *ToolRegistryWrapper {
	return &ToolRegistryWrapper{*w.DeepCopy()}
}

// Sandbox adds a sandbox of a ClusterSandboxClass.
func (w *ToolRegistryWrapper) Sandbox(name, clusterClass string) *ToolRegistryWrapper {
	return w.SandboxOf(name, v1alpha1.ClusterSandboxClassKind, clusterClass)
}

// SandboxOf adds a sandbox of a class of either kind.
func (w *ToolRegistryWrapper) SandboxOf(name string, kind v1alpha1.ClassKind, class string) *ToolRegistryWrapper {
	w.Spec.Sandboxes = append(w.Spec.Sandboxes, omniav1alpha1.RegistrySandbox{
		Name: name, ClassRef: omniav1alpha1.ClassReference{Name: class, Kind: string(kind)},
	})
	return w
}

// MaxInstances bounds the instances of the sandbox that was added last.
func (w *ToolRegistryWrapper) MaxInstances(n int32) *ToolRegistryWrapper {
	w.Spec.Sandboxes[len(w.Spec.Sandboxes)-1].MaxInstances = ptr.To(n)
	return w
}

// TargetPath names the project of the sandbox that was added last.
func (w *ToolRegistryWrapper) TargetPath(path string) *ToolRegistryWrapper {
	w.Spec.Sandboxes[len(w.Spec.Sandboxes)-1].TargetPath = path
	return w
}

// Handler adds a handler that addresses a port of a sandbox; an empty port is the only one.
func (w *ToolRegistryWrapper) Handler(name, sandbox, port string) *ToolRegistryWrapper {
	w.Spec.Handlers = append(w.Spec.Handlers, omniav1alpha1.RegistryHandler{
		Name: name, Sandbox: &omniav1alpha1.HandlerSandbox{Name: sandbox, Port: port},
	})
	return w
}

// ClassWrapper builds a class of either kind.
type ClassWrapper struct {
	meta metav1.ObjectMeta
	spec v1alpha1.SandboxClassSpec
}

// MakeClass begins a class of the sample sandbox, for any node: a port mcp, and small limits.
func MakeClass(name string) *ClassWrapper {
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	return &ClassWrapper{
		meta: metav1.ObjectMeta{Name: name},
		spec: v1alpha1.SandboxClassSpec{
			Image:           SandboxImage,
			ImagePullPolicy: corev1.PullIfNotPresent,
			Ports:           []v1alpha1.ClassPort{{Name: "mcp", Port: 8080}},
			Readiness:       &v1alpha1.Readiness{Port: "mcp", HTTPGet: &v1alpha1.HTTPGet{Path: "/healthz"}},
			Resources:       corev1.ResourceRequirements{Requests: small, Limits: limits},
		},
	}
}

// Cluster gives a ClusterSandboxClass.
func (w *ClassWrapper) Cluster() *v1alpha1.ClusterSandboxClass {
	return &v1alpha1.ClusterSandboxClass{ObjectMeta: *w.meta.DeepCopy(), Spec: *w.spec.DeepCopy()}
}

// In gives a SandboxClass of a namespace.
func (w *ClassWrapper) In(namespace string) *v1alpha1.SandboxClass {
	meta := *w.meta.DeepCopy()
	meta.Namespace = namespace
	return &v1alpha1.SandboxClass{ObjectMeta: meta, Spec: *w.spec.DeepCopy()}
}

// Clone gives a copy that can go its own way.
func (w *ClassWrapper) Clone() *ClassWrapper {
	return &ClassWrapper{meta: *w.meta.DeepCopy(), spec: *w.spec.DeepCopy()}
}

// OnFakeNodes lets the sandboxes run only where KWOK plays them: Ready at once, without a container.
func (w *ClassWrapper) OnFakeNodes() *ClassWrapper {
	w.spec.NodeSelector = map[string]string{fakeNodeLabel: fakeNodeValue}
	w.spec.Tolerations = []corev1.Toleration{{Key: fakeNodeTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	return w
}

// OnRealNodes lets the sandboxes run only where there are containers.
func (w *ClassWrapper) OnRealNodes() *ClassWrapper {
	w.spec.NodeSelector = map[string]string{realNodeLabel: realNodeValue}
	w.spec.Tolerations = nil
	return w
}

// Image sets the image.
func (w *ClassWrapper) Image(image string) *ClassWrapper {
	w.spec.Image = image
	return w
}

// With changes what has no method of its own.
func (w *ClassWrapper) With(change func(*v1alpha1.SandboxClassSpec)) *ClassWrapper {
	change(&w.spec)
	return w
}

// ClaimWrapper builds a SandboxClaim, as a person would write it.
type ClaimWrapper struct{ v1alpha1.SandboxClaim }

// MakeClaim begins a claim of session-1 of a runtime, for a ClusterSandboxClass.
func MakeClaim(name, namespace, runtime, clusterClass string) *ClaimWrapper {
	return &ClaimWrapper{v1alpha1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1alpha1.SandboxClaimSpec{
			AgentRuntimeRef: &v1alpha1.AgentRuntimeReference{Name: runtime},
			ClassRef:        v1alpha1.ClassReference{Name: clusterClass, Kind: v1alpha1.ClusterSandboxClassKind},
			SessionID:       "session-1",
		},
	}}
}

// Obj gives the claim.
func (w *ClaimWrapper) Obj() *v1alpha1.SandboxClaim { return &w.SandboxClaim }

// Clone gives a copy that can go its own way.
func (w *ClaimWrapper) Clone() *ClaimWrapper { return &ClaimWrapper{*w.DeepCopy()} }

// Session sets the session.
func (w *ClaimWrapper) Session(id string) *ClaimWrapper {
	w.Spec.SessionID = id
	return w
}

// Handle sets the handle.
func (w *ClaimWrapper) Handle(handle string) *ClaimWrapper {
	w.Spec.Handle = handle
	return w
}

// MakeAcquire is the body of an acquire of a runtime's sandbox.
func MakeAcquire(runtime, session, handle string) *v1alpha1.SandboxAcquire {
	return &v1alpha1.SandboxAcquire{Spec: v1alpha1.SandboxAcquireSpec{AgentRuntime: runtime, SessionID: session, Handle: handle}}
}
