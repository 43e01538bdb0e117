// Package sandbox says what a sandbox is made of: it turns a claim, with the class that its status holds, into a
// Deployment, a Service and a NetworkPolicy, and says whether one that stands is still as it was built. It is pure: the
// same claim gives the same objects whenever and wherever it is asked. It refuses to read anything else, the clock and
// the cluster included.
package sandbox

import (
	"fmt"
	"net"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

const (
	// nameSuffix makes a claim's name its sandbox's.
	nameSuffix = "-sandbox"
	// claimKind is the kind of the owner of a sandbox's objects.
	claimKind = "SandboxClaim"

	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelComponent = "omnia.altairalabs.ai/component"

	sandboxAppName   = "omnia-sandbox"
	sandboxManagedBy = "sandbox-apiserver"
)

// Name is the name that a new claim's objects get. It is made here and kept in status.sandboxName, which is where
// everything else reads it.
func Name(claim *v1alpha1.SandboxClaim) string { return claim.Name + nameSuffix }

// selector is the sandbox's own identity. It holds neither session nor runtime, so that it stays true whatever session
// a sandbox is given to.
func selector(claim *v1alpha1.SandboxClaim) map[string]string {
	return map[string]string{v1alpha1.LabelClaimUID: string(claim.UID)}
}

func labels(claim *v1alpha1.SandboxClaim) map[string]string {
	return map[string]string{
		labelName:                  sandboxAppName,
		labelManagedBy:             sandboxManagedBy,
		v1alpha1.LabelClaim:        claim.Name,
		v1alpha1.LabelClaimUID:     string(claim.UID),
		v1alpha1.LabelSession:      claim.Spec.SessionID,
		v1alpha1.LabelAgentRuntime: claim.RuntimeName(),
	}
}

// IsBuiltLabel says whether a sandbox's objects bear a label of this key, by what they are built from.
func IsBuiltLabel(key string) bool {
	switch key {
	case labelName, labelManagedBy, v1alpha1.LabelClaim, v1alpha1.LabelClaimUID, v1alpha1.LabelSession, v1alpha1.LabelAgentRuntime:
		return true
	}
	return false
}

// meta is what the three objects have in common: the claim owns them, so deleting it removes them. Where they stand, Keep
// adds who keeps them meanwhile.
func meta(claim *v1alpha1.SandboxClaim) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: claim.Namespace,
		Name:      claim.Status.SandboxName,
		Labels:    labels(claim),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: claimKind, Name: claim.Name, UID: claim.UID,
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}
}

// Addresses gives host:port by the port's name, for a Service with this cluster IP.
func Addresses(claim *v1alpha1.SandboxClaim, clusterIP string) map[string]string {
	out := make(map[string]string, len(claim.Status.Class.Ports))
	for _, p := range claim.Status.Class.Ports {
		out[p.Name] = net.JoinHostPort(clusterIP, strconv.Itoa(int(p.Port)))
	}
	return out
}

func class(claim *v1alpha1.SandboxClaim) *v1alpha1.SandboxClassSpec {
	if claim.Status.Class == nil || claim.Status.SandboxName == "" {
		// A claim is built from what was written when it was admitted; asking earlier is a programming error.
		panic(fmt.Sprintf("building the sandbox of claim %s/%s, which was not admitted", claim.Namespace, claim.Name))
	}
	return claim.Status.Class
}
