package claim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
)

// errChanged says that an object is no longer what was read of it, so that nothing can be said of the sandbox yet.
var errChanged = errors.New("changed since it was read")

// part is one of a sandbox's objects: as it was built, as it stands, and how the one is held against the other.
type part struct {
	kind   string
	built  client.Object
	stands client.Object
	// slot says that it is what holds the runtime's slot.
	slot bool
	// take has what the API server made of what was built stand.
	take func()
	// same says whether what stands is as it was built.
	same func() bool
	// mend makes what stands as it was built, keeping what is the cluster's.
	mend func()
	// owner says whose what stands is, where a claim's ownership does not.
	owner func() sandbox.Owner
	// follows says that what stands differs only where it follows what others have, who may have changed.
	follows func() bool
	// disowned says that what stands lacks an owner, which is to be put back.
	disowned bool
	// fresh builds it anew from what the API has, before it is written; nil for what is built from the claim alone.
	fresh func(context.Context) error
}

func (p *part) ownerOf(claim *v1alpha1.SandboxClaim) sandbox.Owner {
	if p.owner != nil {
		return p.owner()
	}
	return sandbox.OwnerOf(claim, p.stands)
}

// networkPolicyPart leaves what stands in the NetworkPolicy that is given.
func networkPolicyPart(policy, stands *networkingv1.NetworkPolicy) *part {
	return &part{
		kind: "NetworkPolicy", built: policy, stands: stands,
		take: func() { *stands = *policy },
		same: func() bool { return sandbox.SameNetworkPolicy(policy, stands) },
		mend: func() { stands.Spec = policy.Spec },
	}
}

// policyPart is the sandbox's own policy, which follows the Services that its class allows.
func (r *Reconciler) policyPart(w *work) *part {
	policy, stands := sandbox.NetworkPolicy(w.claim, w.reach.rules), &networkingv1.NetworkPolicy{}
	p := networkPolicyPart(policy, stands)
	p.fresh = func(ctx context.Context) error {
		reach, err := r.reachOf(ctx, r.HostLive, w.claim)
		if err == nil {
			w.reach, policy.Spec.Egress = reach, reach.rules
		}
		return err
	}
	p.follows = func() bool {
		followed := policy.DeepCopy()
		followed.Spec.Egress = stands.Spec.Egress
		return asksForEgress(w.claim) && sandbox.SameNetworkPolicy(followed, stands)
	}
	return p
}

// deploymentPart leaves what stands in the Deployment that is given.
func deploymentPart(claim *v1alpha1.SandboxClaim, stands *appsv1.Deployment) *part {
	deployment := sandbox.Deployment(claim)
	return &part{
		kind: "Deployment", built: deployment, stands: stands, slot: true,
		take: func() { *stands = *deployment },
		same: func() bool {
			return sandbox.SameDeployment(deployment, stands) || sandbox.Untouched(claim, stands) && sandbox.Labelled(deployment, stands)
		},
		mend: func() {
			if !sandbox.Untouched(claim, stands) {
				stands.Spec = deployment.Spec
			}
		},
	}
}

// servicePart leaves what stands in the Service that is given.
func servicePart(claim *v1alpha1.SandboxClaim, stands *corev1.Service) *part {
	service := sandbox.Service(claim)
	return &part{
		kind: "Service", built: service, stands: stands,
		take: func() { *stands = *service },
		same: func() bool { return sandbox.SameService(service, stands) },
		mend: func() {
			stands.Spec.Type, stands.Spec.Selector, stands.Spec.Ports = service.Spec.Type, service.Spec.Selector, service.Spec.Ports
			stands.Spec.ExternalIPs, stands.Spec.PublishNotReadyAddresses = nil, false
		},
	}
}

// policyAhead makes the sandbox's NetworkPolicy while the admission is put on record: it binds no pod yet, and is the
// claim's also where the admission comes to nothing. It gives what the sandbox may reach by it; nil means that the policy is for
// apply to make, or to say why it cannot.
func (r *Reconciler) policyAhead(ctx context.Context, claim *v1alpha1.SandboxClaim) <-chan *reach {
	claim, made := claim.DeepCopy(), make(chan *reach, 1)
	go func() {
		ctx, span := spans.StartApply(ctx, "NetworkPolicy", claim.Status.SandboxName)
		reach, err := r.reachOf(ctx, r.HostLive, claim)
		if err == nil {
			policy := sandbox.NetworkPolicy(claim, reach.rules)
			if err = r.keep(ctx, policy); err == nil {
				err = r.Host.Create(ctx, policy)
			}
		}
		span.End(err)
		if err != nil {
			reach = nil
		}
		made <- reach
	}()
	return made
}

// apply makes the sandbox's objects, mends those that were changed, and stops at the first that cannot be had: without
// its policy a sandbox is neither started nor called usable. It observes those objects that it left standing, and not what
// the cache has of them, which may be older.
func (r *Reconciler) apply(ctx context.Context, w *work) (lifecycle.Observed, time.Duration, error) {
	claim := w.claim
	r.building.begin(claim) // before the claim is confirmed, so that whoever is admitted after its end knows of this
	var seen lifecycle.Observed
	policyMade := w.reach != nil
	if !policyMade {
		var err error
		if w.reach, err = r.reachOf(ctx, r.Host, claim); err != nil {
			return seen, 0, err
		}
	}
	standing, routing := &appsv1.Deployment{}, &corev1.Service{}
	policy, deployment, service := r.policyPart(w), deploymentPart(claim, standing), servicePart(claim, routing)
	// The policies stand before the pod that they bind, and the Service is made while the pod is on its way.
	parts := []*part{policy, floorPart(claim), deployment, service}
	if policyMade {
		parts = parts[1:]
	}
	if err := r.keep(ctx, policy.built, deployment.built, service.built); err != nil {
		return seen, 0, err
	}
	after, err := r.ensureAll(ctx, w, parts, &seen)
	if err == nil && after == 0 && seen.Clearing == "" && seen.Rejected == "" {
		err = r.observe(ctx, claim, routing, standing, &seen)
	}
	if err == nil { // also of a sandbox that is not whole: its pod may run
		err = r.reportIsolation(ctx, w, policy)
	}
	return seen, after, err
}

// ensureAll has the parts stand, in order, up to the first that cannot be had.
func (r *Reconciler) ensureAll(ctx context.Context, w *work, parts []*part, seen *lifecycle.Observed) (time.Duration, error) {
	for _, p := range parts {
		after, err := r.ensure(ctx, w, p, seen)
		if err != nil {
			return 0, fmt.Errorf("applying %s %s/%s: %w", p.kind, p.built.GetNamespace(), p.built.GetName(), err)
		}
		if after > 0 || seen.Clearing != "" || seen.Rejected != "" {
			return after, nil
		}
	}
	return 0, nil
}

// ensure has one object stand as it was built, or notes in seen why it does not, with when to look again if no event will tell.
func (r *Reconciler) ensure(ctx context.Context, w *work, p *part, seen *lifecycle.Observed) (_ time.Duration, err error) {
	ctx, span := spans.StartApply(ctx, p.kind, p.built.GetName())
	defer func() { span.End(err) }()
	claim := w.claim
	key := client.ObjectKeyFromObject(p.built)
	err = r.Host.Get(ctx, key, p.stands)
	switch {
	case apierrors.IsNotFound(err):
		made, after, err := r.make(ctx, w, p, seen)
		if made || after > 0 || err != nil || seen.Rejected != "" {
			return after, err
		}
	case err != nil:
		return 0, err
	case p.slot:
		r.building.known(claim.UID)
	}
	name := fmt.Sprintf("%s %s/%s", p.kind, key.Namespace, key.Name)
	switch owner := p.ownerOf(claim); {
	case owner == sandbox.Foreign:
		seen.Taken = name
		return recheck, nil
	case p.stands.GetDeletionTimestamp() != nil:
		seen.Clearing = name
		return recheck, nil
	case owner == sandbox.Predecessor:
		seen.Clearing = name
		return recheck, r.removeLeft(ctx, client.ObjectKeyFromObject(claim), p.stands)
	}
	same := func() bool { return p.same() && !p.disowned }
	p.disowned = r.disowned(ctx, w, p)
	if same() {
		return 0, nil
	}
	if p.fresh != nil {
		if err := p.fresh(ctx); err != nil || same() {
			return 0, err // what stands goes by a newer Service than the cache has
		}
	}
	return r.repair(ctx, claim, p, seen)
}

// make creates an object that the cache does not have, or notes in seen why it cannot. If it is there all the same, it gives
// false, and the object as it stands.
func (r *Reconciler) make(ctx context.Context, w *work, p *part, seen *lifecycle.Observed) (bool, time.Duration, error) {
	if err := r.confirm(ctx, w); err != nil {
		return false, 0, err
	}
	if p.fresh != nil {
		if err := p.fresh(ctx); err != nil {
			return false, 0, err
		}
	}
	if p.slot {
		r.building.ask(w.claim.UID)
	}
	err := r.Host.Create(ctx, p.built)
	switch {
	case err == nil:
		p.take()
		klog.FromContext(ctx).V(2).Info("Created", "kind", p.kind, "object", klog.KObj(p.stands))
		if w.claim.Status.BoundAt != nil { // it stood before
			r.tellRepair(w.claim, p, "was gone and is made anew")
		}
		return true, 0, nil
	case !apierrors.IsAlreadyExists(err):
		if p.slot && refusedForGood(err) {
			r.building.known(w.claim.UID)
		}
		after, err := refused(err, seen)
		return false, after, err
	}
	// It is there: too new for the cache, or somebody else's and so not in it.
	if err = r.HostLive.Get(ctx, client.ObjectKeyFromObject(p.built), p.stands); apierrors.IsNotFound(err) {
		err = errChanged
	}
	if p.slot && p.ownerOf(w.claim) != sandbox.Own {
		r.building.known(w.claim.UID)
	}
	return false, 0, err
}

// refusedForGood says whether an answer leaves no doubt that nothing was made.
func refusedForGood(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)
}

// confirm gives an error if the claim is no longer what the cache has of it. An object may be missing because its claim has
// gone a moment ago: what is made then is one sandbox more than the ceiling allows.
func (r *Reconciler) confirm(ctx context.Context, w *work) error {
	if w.confirmed {
		return nil
	}
	live := &v1alpha1.SandboxClaim{}
	err := r.ClaimsLive.Get(ctx, client.ObjectKeyFromObject(w.claim), live)
	switch {
	case apierrors.IsNotFound(err):
		return errChanged
	case err != nil:
		return fmt.Errorf("reading the claim before making anything for it: %w", err)
	case live.UID != w.claim.UID, live.DeletionTimestamp != nil:
		return errChanged
	}
	w.confirmed = true
	return nil
}

// repair makes an object of the claim's own as it was built again.
func (r *Reconciler) repair(ctx context.Context, claim *v1alpha1.SandboxClaim, p *part, seen *lifecycle.Observed) (time.Duration, error) {
	klog.FromContext(ctx).Info("Mending an object that was changed", "kind", p.kind, "object", klog.KObj(p.stands))
	labels := maps.Clone(p.stands.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, p.built.GetLabels())
	p.stands.SetLabels(labels)
	if p.disowned {
		sandbox.RestoreOwners(p.built, p.stands)
	}
	tell := func() { r.tellRepair(claim, p, "was changed and is made as it was") }
	if p.follows != nil && p.follows() {
		tell = func() { r.tellFollowed(claim, p) }
	}
	p.mend()
	stood := p.stands.GetResourceVersion()
	err := r.Host.Update(ctx, p.stands)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return 0, errChanged
	case err != nil:
		return refused(err, seen)
	}
	if p.stands.GetResourceVersion() != stood { // else a webhook has it its own way, each time
		tell()
	}
	return 0, nil
}

// refused tells a refusal for good from one that may pass.
func refused(err error, seen *lifecycle.Observed) (time.Duration, error) {
	status := apierrors.APIStatus(nil)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return recheck, nil // the claim goes with its namespace
	case !errors.As(err, &status):
		return 0, err
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		seen.Rejected = status.Status().Message
		return 0, nil
	case apierrors.IsForbidden(err), apierrors.IsInternalError(err): // a quota or a policy, or a webhook that does not answer
		seen.Refused = status.Status().Message
		return recheck, nil
	}
	return 0, err
}
