package sandbox

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// A sandbox's objects have two owners: the claim, whose they are, and their Namespace, which keeps them. Kubernetes' garbage
// collector deletes what has no owner left, and believes whoever answers 404 for one: kube-apiserver does so for every
// claim while the group's APIService is gone, and a server would whose store has lost its claims. With a second owner that stays, the collector merely takes
// the reference to the claim away; whether the claim has gone is then the controller's to say, and the objects its to
// remove.

// namespaceKind is the kind of the owner that keeps a sandbox's objects.
const namespaceKind = "Namespace"

// Keep makes the Namespace of this UID an owner of a sandbox's object besides its claim.
func Keep(object metav1.Object, namespace types.UID) {
	object.SetOwnerReferences(append(object.GetOwnerReferences(), metav1.OwnerReference{
		APIVersion: "v1", Kind: namespaceKind, Name: object.GetNamespace(), UID: namespace,
	}))
}

// LacksOwner says whether an object that stands lacks an owner that it was built with.
func LacksOwner(built, stands metav1.Object) bool {
	return slices.ContainsFunc(built.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return !hasOwner(stands, ref.UID) })
}

// LacksClaim says whether an object that stands lacks the reference to the claim that it was built for.
func LacksClaim(claim *v1alpha1.SandboxClaim, stands metav1.Object) bool {
	return !hasOwner(stands, claim.UID)
}

// RestoreOwners has an object that stands owned by all that it was built with. Other owners stay.
func RestoreOwners(built, stands metav1.Object) {
	refs := slices.DeleteFunc(slices.Clone(stands.GetOwnerReferences()), func(ref metav1.OwnerReference) bool { return hasOwner(built, ref.UID) })
	stands.SetOwnerReferences(append(slices.Clone(built.GetOwnerReferences()), refs...))
}

// Disown has an object owned neither by a claim nor kept for one any more: it is nobody's.
func Disown(object metav1.Object) {
	object.SetOwnerReferences(slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return keeps(ref) || ofClaim(&ref)
	}))
}

func hasOwner(object metav1.Object, uid types.UID) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == uid })
}

// Owner says whose an object is.
type Owner int

const (
	// Foreign means that the object is somebody else's: never adopted, never overwritten, never deleted.
	Foreign Owner = iota
	// Own means that the object is this claim's.
	Own
	// Predecessor means that the object is an earlier claim's of the same name: to be cleared away, never adopted.
	Predecessor
)

// String names the owner for a log.
func (o Owner) String() string {
	return [...]string{"Foreign", "Own", "Predecessor"}[o]
}

// OwnerOf says whose an object that bears the sandbox's name is.
func OwnerOf(claim *v1alpha1.SandboxClaim, object metav1.Object) Owner {
	name, uid := owningClaim(object)
	switch {
	case name == "", name != claim.Name:
		return Foreign
	case uid == claim.UID:
		return Own
	}
	return Predecessor
}

// ClaimOf is the name of the claim whose an object is; empty if it is none's.
func ClaimOf(object metav1.Object) string {
	name, _ := owningClaim(object)
	return name
}

// ClaimUIDOf is the UID of the claim whose an object is, be that claim still there or not; empty if it is none's.
func ClaimUIDOf(object metav1.Object) types.UID {
	_, uid := owningClaim(object)
	return uid
}

// owningClaim reads whose an object is from the reference to the claim that controls it and, where that was taken away from
// what its Namespace keeps, from the labels that it was built with.
func owningClaim(object metav1.Object) (name string, uid types.UID) {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
		if ofClaim(ref) {
			return ref.Name, ref.UID
		}
		return "", ""
	}
	labels := object.GetLabels()
	if labels[labelManagedBy] != sandboxManagedBy || !slices.ContainsFunc(object.GetOwnerReferences(), keeps) {
		return "", ""
	}
	return labels[v1alpha1.LabelClaim], types.UID(labels[v1alpha1.LabelClaimUID])
}

// ofClaim says whether a reference is to a claim, in whatever version of the group it was written.
func ofClaim(ref *metav1.OwnerReference) bool {
	if ref.Kind != claimKind {
		return false
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && version.Group == v1alpha1.GroupName
}

// keeps says whether a reference is the one that Keep adds.
func keeps(ref metav1.OwnerReference) bool {
	return ref.APIVersion == "v1" && ref.Kind == namespaceKind
}
