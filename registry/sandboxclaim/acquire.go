package sandboxclaim

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/validation"
	"github.com/altairalabs/omnia-sandboxes/pkg/lifecycle"
	"github.com/altairalabs/omnia-sandboxes/pkg/spans"
	"github.com/altairalabs/omnia-sandboxes/registry/refusal"
)

// auditClaim is the audit annotation that says which claim, or claims of a session, "-" resolved to.
const auditClaim = "sandbox.omnia/claim"

// AcquireREST serves sandboxclaims/{name}/acquire: it finds the claim of a runtime, session and handle, or creates it,
// and waits for it to be Bound.
type AcquireREST struct {
	claims     *claims
	callers    *callers
	neighbours Neighbours
	waiters    *Waiters
	clock      clock.Clock
}

var (
	_ rest.NamedCreater = &AcquireREST{}
)

// New gives an empty body.
func (*AcquireREST) New() runtime.Object { return &sandbox.SandboxAcquire{} }

// Destroy does nothing: the store is the claims' own, which destroys it.
func (*AcquireREST) Destroy() {}

// Create acquires. name is a claim's name, or - for the claim that the body describes.
func (r *AcquireREST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	body, ok := obj.(*sandbox.SandboxAcquire)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is a %T: send a SandboxAcquire", obj))
	}
	began := r.clock.Now()
	spanned, span := spans.Start(ctx, spans.Acquire)
	answer, err := r.acquire(spanned, span, name, body, admit, options)
	span.End(err)
	if !dryrun.IsDryRun(options.DryRun) {
		acquireDuration.WithLabelValues(outcomeOf(ctx, answer, err)).Observe(r.clock.Since(began).Seconds())
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// acquire answers with the body, its status filled in.
func (r *AcquireREST) acquire(ctx context.Context, span spans.Span, name string, body *sandbox.SandboxAcquire, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (*sandbox.SandboxAcquire, error) {
	if err := r.check(ctx, name, body, admit); err != nil {
		return nil, err
	}
	namespace := request.NamespaceValue(ctx)
	owner, err := r.callers.speaksFor(ctx, namespace, body.Spec.AgentRuntime)
	if err != nil {
		return nil, err
	}
	plan, err := r.plan(ctx, owner, body)
	if err != nil {
		return nil, err
	}
	a := &acquisition{AcquireREST: r, plan: *plan, options: options, dryRun: dryrun.IsDryRun(options.DryRun)}
	if name == v1alpha1.AnyClaim {
		a.name = plan.key.claimName()
	} else {
		a.name, a.mustExist, a.named = name, true, true
	}
	audit.AddAuditAnnotation(ctx, auditClaim, a.name)
	span.Claim(namespace, a.name)
	claim, err := a.run(ctx)
	if err != nil {
		return nil, err
	}
	body.Status = answer(claim, a.created == claim.UID)
	span.Stands(string(claim.UID), string(claim.Status.Phase), body.Status.Reason)
	body.ManagedFields = nil // the answer is stored nowhere, so nobody owns its fields
	return body, nil
}

// check looks at the body alone, then asks admission about it.
func (r *AcquireREST) check(ctx context.Context, name string, body *sandbox.SandboxAcquire, admit rest.ValidateObjectFunc) error {
	if err := checkName("SandboxAcquire", body.Name, name); err != nil {
		return err
	}
	if errs := validation.ValidateSandboxAcquire(body); len(errs) > 0 {
		return apierrors.NewInvalid(sandbox.Kind("SandboxAcquire"), name, errs)
	}
	if body.Spec.Declaration != nil {
		return refusal.NotYetSupported("sandboxclaims", name, "spec.declaration", "acquire without it, and the sandbox is scratch space")
	}
	if admit != nil {
		return admit(ctx, body.DeepCopyObject())
	}
	return nil
}

// checkName holds a body's name against the URL's; an empty one is the URL's.
func checkName(kind, inBody, inURL string) error {
	if inBody != "" && inBody != inURL {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.name of the %s is %q, the URL says %q: leave it empty or make it the same", kind, inBody, inURL))
	}
	return nil
}

// plan is what an acquire is about, once it is known to be allowed.
type plan struct {
	key         key
	owner       *omniav1alpha1.AgentRuntime
	sandbox     omniav1alpha1.RegistrySandbox
	requestedBy *sandbox.RequestedBy
	mustExist   bool
	waitSeconds int32
}

// plan looks up what the handle names. Everything that can be refused without looking at claims is refused here.
func (r *AcquireREST) plan(ctx context.Context, owner *omniav1alpha1.AgentRuntime, body *sandbox.SandboxAcquire) (*plan, error) {
	if !owner.SandboxesEnabled() {
		return nil, refusal.New(v1alpha1.StatusReasonSandboxesDisabled, "",
			"AgentRuntime %s/%s may not have sandboxes: set its spec.sandbox.enabled to true", owner.Namespace, owner.Name)
	}
	declared, err := r.declaredSandbox(ctx, owner, body.Spec.Handle)
	if err != nil {
		return nil, err
	}
	return &plan{
		key:         key{runtime: owner.Name, session: body.Spec.SessionID, handle: body.Spec.Handle},
		owner:       owner,
		sandbox:     *declared,
		requestedBy: body.Spec.RequestedBy,
		mustExist:   body.Spec.MustExist,
		waitSeconds: waitOf(body.Spec.WaitSeconds),
	}, nil
}

func waitOf(asked *int32) int32 {
	if asked == nil || *asked > v1alpha1.MaxWaitSeconds {
		return v1alpha1.MaxWaitSeconds
	}
	return *asked
}

// declaredSandbox is the ToolRegistry's sandbox that the handle's first segment names.
func (r *AcquireREST) declaredSandbox(ctx context.Context, owner *omniav1alpha1.AgentRuntime, handle string) (*omniav1alpha1.RegistrySandbox, error) {
	name := lifecycle.SandboxOf(handle)
	registry, err := r.neighbours.ToolRegistry(ctx, owner)
	switch {
	case apierrors.IsNotFound(err):
		return nil, refusal.New(v1alpha1.StatusReasonUnknownSandbox, "",
			"sandbox %q is not declared: AgentRuntime %s/%s has no ToolRegistry; set its spec.toolRegistryRef to one that lists the sandbox", name, owner.Namespace, owner.Name)
	case err != nil:
		return nil, fmt.Errorf("reading the ToolRegistry of AgentRuntime %s/%s: %w", owner.Namespace, owner.Name, err)
	}
	declared, found := registry.Sandbox(name)
	if !found {
		return nil, refusal.New(v1alpha1.StatusReasonUnknownSandbox, "",
			"sandbox %q is not declared: add it to spec.sandboxes of ToolRegistry %s/%s, or ask for one that is there", name, registry.Namespace, registry.Name)
	}
	if err := servable(registry, declared); err != nil {
		return nil, err
	}
	return &declared, nil
}

// servable refuses a sandbox whose declaration asks for what is not served, or cannot be made a claim of.
func servable(registry *omniav1alpha1.ToolRegistry, declared omniav1alpha1.RegistrySandbox) error {
	for _, part := range []struct {
		field string
		set   bool
	}{
		{"targetPath", declared.TargetPath != ""},
		{"workspace", declared.Workspace != "" && declared.Workspace != sandbox.MountRoleScratch},
		{"connections", len(declared.Connections) > 0},
	} {
		if part.set {
			return refusal.NotYetSupported("sandboxclaims", "", "spec.sandboxes["+declared.Name+"]."+part.field,
				fmt.Sprintf("drop it from ToolRegistry %s/%s", registry.Namespace, registry.Name))
		}
	}
	if errs := validation.ValidateDeclaredClass(classOf(declared)); len(errs) > 0 {
		return refusal.New(v1alpha1.StatusReasonUnknownSandbox, "", "sandbox %q of ToolRegistry %s/%s cannot be made: %v: mend it there",
			declared.Name, registry.Namespace, registry.Name, errs.ToAggregate())
	}
	return nil
}

// classOf is the class of a declared sandbox.
func classOf(declared omniav1alpha1.RegistrySandbox) sandbox.ClassReference {
	ref := lifecycle.ClassOf(declared)
	return sandbox.ClassReference{Name: ref.Name, Kind: sandbox.ClassKind(ref.Kind)}
}

// answer is what the caller is told of the claim as it stands.
func answer(claim *sandbox.SandboxClaim, created bool) sandbox.SandboxAcquireStatus {
	status := sandbox.SandboxAcquireStatus{
		ClaimName: claim.Name, ClaimUID: claim.UID, Phase: claim.Status.Phase, Created: created,
	}
	ready := v1alpha1.ReadyCondition(claim.Status.Conditions)
	status.Reason, status.Message = ready.Reason, ready.Message
	if claim.Status.Phase == sandbox.PhaseBound {
		status.Addresses = claim.Status.Addresses
	} else {
		status.RetryAfterSeconds = retryAfterSeconds
	}
	return status
}

// retryAfterSeconds is when an unbound caller should ask again: at once, in effect, since the next call waits too.
const retryAfterSeconds = 1

// notYours refuses a claim's name that stands for another key than the body's.
func notYours(claim *sandbox.SandboxClaim) error {
	return apierrors.NewConflict(sandbox.Resource("sandboxclaims"), claim.Name,
		errors.New("the claim of this name is another runtime's, session's or handle's: acquire with - in place of the name"))
}
