package sandbox

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

func TestOwnerOf(t *testing.T) {
	claim := claimOf(plain())
	object := func(change func(*metav1.OwnerReference)) *corev1.Service {
		s := Service(claim)
		change(&s.OwnerReferences[0])
		return s
	}
	assert.Equal(t, Own, OwnerOf(claim, object(func(*metav1.OwnerReference) {})))
	assert.Equal(t, Predecessor, OwnerOf(claim, object(func(r *metav1.OwnerReference) { r.UID = "earlier" })))
	assert.Equal(t, Foreign, OwnerOf(claim, object(func(r *metav1.OwnerReference) { r.Name = "another" })))
	assert.Equal(t, Foreign, OwnerOf(claim, object(func(r *metav1.OwnerReference) { r.Kind = "Sandbox" })))
	assert.Equal(t, Foreign, OwnerOf(claim, object(func(r *metav1.OwnerReference) { r.Controller = nil })))
	assert.Equal(t, Foreign, OwnerOf(claim, object(func(r *metav1.OwnerReference) { r.APIVersion = "extensions.agents.x-k8s.io/v1alpha1" })),
		"other projects have SandboxClaims too")
	assert.Equal(t, Own, OwnerOf(claim, object(func(r *metav1.OwnerReference) { r.APIVersion = "sandbox.omnia/v1" })), "a later version of ours wrote it")
	assert.Equal(t, Foreign, OwnerOf(claim, &corev1.Service{}))
}

// taken is a kept Service whose reference to its claim was taken away.
func taken(claim *v1alpha1.SandboxClaim, change func(*corev1.Service)) *corev1.Service {
	s := Service(claim)
	Keep(s, "namespace-uid")
	s.OwnerReferences = s.OwnerReferences[1:]
	change(s)
	return s
}

func TestOwnerOf_WhatWasTakenFromItsClaim(t *testing.T) {
	claim := claimOf(plain())
	earlier := claim.DeepCopy()
	earlier.UID = "earlier"
	asItIs := func(*corev1.Service) {}
	assert.Equal(t, Own, OwnerOf(claim, taken(claim, asItIs)))
	assert.Equal(t, Predecessor, OwnerOf(claim, taken(earlier, asItIs)))
	assert.Equal(t, Foreign, OwnerOf(claim, taken(claim, func(s *corev1.Service) { s.OwnerReferences = nil })), "nobody keeps it")
	assert.Equal(t, Foreign, OwnerOf(claim, taken(claim, func(s *corev1.Service) { delete(s.Labels, v1alpha1.LabelClaim) })))
	assert.Equal(t, Foreign, OwnerOf(claim, taken(claim, func(s *corev1.Service) { delete(s.Labels, labelManagedBy) })))
	assert.Equal(t, Foreign, OwnerOf(claim, taken(claim, func(s *corev1.Service) {
		s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "theirs", Controller: ptr.To(true)})
	})), "another controls it")
}

func TestKeep_LacksOwner_RestoreOwners(t *testing.T) {
	claim := claimOf(plain())
	built := Service(claim)
	Keep(built, "namespace-uid")
	stands := built.DeepCopy()
	theirs := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "theirs"}
	stands.OwnerReferences = append(stands.OwnerReferences, theirs)
	assert.False(t, LacksOwner(built, stands))
	assert.False(t, LacksClaim(claim, stands))

	for name, lacks := range map[string]types.UID{"the claim": claim.UID, "the Namespace": "namespace-uid"} {
		t.Run(name, func(t *testing.T) {
			s := stands.DeepCopy()
			s.OwnerReferences = slices.DeleteFunc(s.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == lacks })
			assert.True(t, LacksOwner(built, s))
			assert.Equal(t, lacks == claim.UID, LacksClaim(claim, s))
			RestoreOwners(built, s)
			assert.Equal(t, append(slices.Clone(built.OwnerReferences), theirs), s.OwnerReferences, "what others added stays")
			RestoreOwners(built, s)
			assert.Len(t, s.OwnerReferences, 3)
		})
	}
	Disown(stands)
	assert.Equal(t, []metav1.OwnerReference{theirs}, stands.OwnerReferences)
	assert.Equal(t, Foreign, OwnerOf(claim, stands))
}
