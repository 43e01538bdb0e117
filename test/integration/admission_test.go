package integration

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	claimclient "github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned/typed/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// onlyHere keeps what a test tells the whole cluster to its own namespace.
func (w *world) onlyHere() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}}
}

// creates matches creates of a resource of the group.
func creates(resource string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{resource},
		},
	}
}

func (w *world) match(resource string) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: w.onlyHere(), ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: creates(resource)}},
	}
}

// policy has a ValidatingAdmissionPolicy hold for creates of a resource in the world's namespace.
func (w *world) policy(resource string, actions []admissionregistrationv1.ValidationAction, validations ...admissionregistrationv1.Validation) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Name: w.namespace}
	w.CreateUntilEnd(w.t, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionregistrationv1.Fail), MatchConstraints: w.match(resource), Validations: validations,
	}}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: w.namespace, ValidationActions: actions,
	}})
}

// mutatingPolicy has a MutatingAdmissionPolicy change created claims of the world's namespace.
func (w *world) mutatingPolicy(mutation admissionregistrationv1.Mutation) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Name: w.namespace}
	w.CreateUntilEnd(w.t, &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionregistrationv1.Fail), MatchConstraints: w.match("sandboxclaims"),
		ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy, Mutations: []admissionregistrationv1.Mutation{mutation},
	}}, &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
		PolicyName: w.namespace,
	}})
}

func byJSONPatch(expression string) admissionregistrationv1.Mutation {
	return admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression}}
}

func byApplyConfiguration(expression string) admissionregistrationv1.Mutation {
	return admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: expression}}
}

// untilBites waits until every server has loaded what the test told the cluster: until a try of the agent's, which must
// store nothing, goes as it should then go.
func (w *world) untilBites(bites func(context.Context, claimclient.SandboxClaimInterface) bool) {
	w.t.Helper()
	config, err := w.AsServiceAccount(w.t.Context(), w.namespace, runtimeName+"-facade")
	require.NoError(w.t, err)
	for _, server := range w.servers.List {
		set, err := versioned.NewForConfig(server.Direct(config))
		require.NoError(w.t, err)
		framework.Eventually(w.t, framework.NoticeTimeout, "the policy is loaded", func(ctx context.Context) (bool, error) {
			return bites(ctx, set.SandboxV1alpha1().SandboxClaims(w.namespace)), nil
		}, func(bitten bool) bool { return bitten })
	}
}

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// tryAcquire is an acquire that stores nothing.
func tryAcquire(ctx context.Context, claims claimclient.SandboxClaimInterface, session string) error {
	_, err := claims.Acquire(ctx, v1alpha1.AnyClaim, framework.MakeAcquire(runtimeName, session, handle), dryRun)
	return err
}

// refusesAcquire says whether an acquire is refused in these words.
func refusesAcquire(session, words string) func(context.Context, claimclient.SandboxClaimInterface) bool {
	return func(ctx context.Context, claims claimclient.SandboxClaimInterface) bool {
		err := tryAcquire(ctx, claims, session)
		return err != nil && strings.Contains(err.Error(), words)
	}
}

// noClaims sees that nothing was stored.
func (w *world) noClaims() {
	w.t.Helper()
	list, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	assert.Empty(w.t, list.Items)
}

var deny = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}

func TestValidatingPolicy_OnClaims_BitesCreateAndTheCreateThatAcquireImplies(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.EveryoneWrites(t, w.namespace)
	told := `"session " + object.spec.sessionID + " of " + request.userInfo.username + " is not welcome"`
	w.policy("sandboxclaims", deny,
		admissionregistrationv1.Validation{Expression: `object.spec.sessionID != "forbidden"`, MessageExpression: told, Reason: ptr.To(metav1.StatusReasonForbidden)},
		admissionregistrationv1.Validation{Expression: `object.spec.sessionID != "invalid"`, MessageExpression: told})
	w.untilBites(refusesAcquire("forbidden", "is not welcome"))
	agent := "system:serviceaccount:" + w.namespace + ":" + runtimeName + "-facade"
	for session, is := range map[string]func(error) bool{"forbidden": apierrors.IsForbidden, "invalid": apierrors.IsInvalid} {
		claim := framework.MakeClaim("by-hand", w.namespace, runtimeName, w.class).Session(session).Obj()
		_, created := w.agent.SandboxV1alpha1().SandboxClaims(w.namespace).Create(t.Context(), claim, metav1.CreateOptions{})
		_, acquired := w.acquireNow(w.agent, session)
		for how, err := range map[string]error{"create": created, "acquire": acquired} {
			t.Run(how+" of the session "+session, func(t *testing.T) {
				require.True(t, is(err), "got %v", err)
				assert.ErrorContains(t, err, "session "+session+" of "+agent+" is not welcome", "the policy saw the caller and the claim")
			})
		}
	}
	w.noClaims()
	welcome, err := w.acquireNow(w.agent, "welcome")
	require.NoError(t, err)
	assert.True(t, welcome.Created)
}

func TestValidatingPolicy_OnAcquire_SeesTheSandboxAcquire(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.EveryoneWrites(t, w.namespace)
	w.policy("sandboxclaims/acquire", deny, admissionregistrationv1.Validation{
		Expression:        `object.spec.sessionID != "denied" || object.spec.handle != "shell/default"`,
		MessageExpression: `"a " + request.kind.kind + " of " + object.spec.agentRuntime + " by " + request.subResource + " is denied"`,
	})
	w.untilBites(refusesAcquire("denied", "is denied"))
	_, err := w.acquireNow(w.agent, "denied")
	require.True(t, apierrors.IsInvalid(err), "got %v", err)
	require.ErrorContains(t, err, "a SandboxAcquire of agent by acquire is denied")
	w.noClaims()

	claim := framework.MakeClaim("by-hand", w.namespace, runtimeName, w.class).Session("denied").Handle(handle).Obj()
	_, err = w.agent.SandboxV1alpha1().SandboxClaims(w.namespace).Create(t.Context(), claim, dryRun)
	require.NoError(t, err, "a plain create is not an acquire")
}

func TestMutatingPolicy_AddsALabel_TheAcquiredClaimHasIt(t *testing.T) {
	for name, mutation := range map[string]admissionregistrationv1.Mutation{
		"by apply configuration": byApplyConfiguration(`Object{metadata: Object.metadata{labels: {"team": "blue"}}}`),
		"by JSON patch":          byJSONPatch(`[JSONPatch{op: "add", path: "/metadata/labels/team", value: "blue"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, onFakeNodes)
			w.EveryoneWrites(t, w.namespace)
			w.mutatingPolicy(mutation)
			w.untilBites(func(ctx context.Context, claims claimclient.SandboxClaimInterface) bool {
				claim := framework.MakeClaim("by-hand", w.namespace, runtimeName, w.class).Obj()
				claim.Labels = map[string]string{"of": "mine"}
				got, err := claims.Create(ctx, claim, dryRun)
				return err == nil && got.Labels["team"] == "blue"
			})
			claim := w.bound("s")
			assert.Equal(t, map[string]string{"team": "blue", v1alpha1.LabelAgentRuntime: runtimeName, v1alpha1.LabelSession: "s"}, claim.Labels)
			assert.NotNil(t, provenanceOf(claim))
		})
	}
}

const specChanged = "changed the name, the owner or the spec of an acquired claim: exempt sandboxclaims from it"

func TestMutatingPolicy_ChangesWhatAcquireDecided_RefusedAndNothingStored(t *testing.T) {
	for name, mutation := range map[string]admissionregistrationv1.Mutation{
		"the class, by apply configuration": byApplyConfiguration(`Object{spec: Object.spec{classRef: Object.spec.classRef{name: "another"}}}`),
		"the target, by JSON patch":         byJSONPatch(`[JSONPatch{op: "add", path: "/spec/targetPath", value: "projects/x"}]`),
		"the name, by JSON patch":           byJSONPatch(`[JSONPatch{op: "replace", path: "/metadata/name", value: "another"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, onFakeNodes)
			w.mutatingPolicy(mutation)
			w.untilBites(refusesAcquire("s", specChanged))
			_, err := w.acquireNow(w.agent, "s")
			require.True(t, apierrors.IsForbidden(err), "got %v", err)
			require.ErrorContains(t, err, specChanged)
			w.noClaims()
		})
	}
}

// recorder notes what a webhook was asked.
type recorder struct {
	mu    sync.Mutex
	asked []*admissionv1.AdmissionRequest
}

func (r *recorder) note(request *admissionv1.AdmissionRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, request)
}

// last is the request about a dry run or about a real one that was noted last; nil if there was none.
func (r *recorder) last(dryRun bool) *admissionv1.AdmissionRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, asked := range slices.Backward(r.asked) {
		if ptr.Deref(asked.DryRun, false) == dryRun {
			return asked
		}
	}
	return nil
}

// mutatingWebhook has a webhook of the test's patch the creates of a resource in the world's namespace.
func (w *world) mutatingWebhook(resource, patch string) *recorder {
	w.t.Helper()
	seen := &recorder{}
	client := w.Webhook(w.t, func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		seen.note(request)
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: ptr.To(admissionv1.PatchTypeJSONPatch)}
	})
	w.CreateUntilEnd(w.t, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutates.example.test", ClientConfig: client, NamespaceSelector: w.onlyHere(), AdmissionReviewVersions: []string{"v1"},
			Rules:       []admissionregistrationv1.RuleWithOperations{creates(resource)},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		}}})
	return seen
}

// validatingWebhook asks a webhook about the creates of a resource in the world's namespace.
func (w *world) validatingWebhook(resource string, client admissionregistrationv1.WebhookClientConfig) {
	w.t.Helper()
	w.CreateUntilEnd(w.t, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validates.example.test", ClientConfig: client, NamespaceSelector: w.onlyHere(), AdmissionReviewVersions: []string{"v1"},
			Rules:       []admissionregistrationv1.RuleWithOperations{creates(resource)},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			TimeoutSeconds: ptr.To[int32](5),
		}}})
}

func TestMutatingWebhook_AddsAnAnnotation_TheAcquiredClaimHasIt(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	seen := w.mutatingWebhook("sandboxclaims", `[{"op":"add","path":"/metadata/annotations","value":{"note":"seen"}}]`)
	w.untilBites(func(ctx context.Context, claims claimclient.SandboxClaimInterface) bool {
		before := seen.count()
		require.NoError(t, tryAcquire(ctx, claims, "s"))
		return seen.count() > before
	})
	w.noClaims()
	require.NotNil(t, seen.last(true), "a webhook is told of a dry run")

	claim := w.bound("s")
	assert.Equal(t, map[string]string{"note": "seen"}, claim.Annotations)
	asked := seen.last(false)
	require.NotNil(t, asked)
	assert.Equal(t, "system:serviceaccount:"+w.namespace+":"+runtimeName+"-facade", asked.UserInfo.Username)
	assert.Equal(t, metav1.GroupVersionKind{Group: "sandbox.omnia", Version: "v1alpha1", Kind: "SandboxClaim"}, asked.Kind)
	assert.Equal(t, claim.Name, asked.Name)
	assert.Empty(t, asked.SubResource)
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

func TestMutatingWebhook_ChangesTheSpec_AcquireIsRefused(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.mutatingWebhook("sandboxclaims", `[{"op":"replace","path":"/spec/sessionID","value":"another"}]`)
	w.untilBites(refusesAcquire("s", specChanged))
	_, err := w.acquireNow(w.agent, "s")
	require.True(t, apierrors.IsForbidden(err), "got %v", err)
	require.ErrorContains(t, err, specChanged)
	w.noClaims()
}

func TestMutatingWebhook_OnAcquire_ChangesWhatIsAsked(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.mutatingWebhook("sandboxclaims/acquire", `[{"op":"add","path":"/spec/requestedBy","value":{"agent":"told-by-the-webhook"}}]`)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	framework.Eventually(t, framework.NoticeTimeout, "the webhook is loaded", func(ctx context.Context) (*v1alpha1.RequestedBy, error) {
		got, err := claims.Acquire(ctx, v1alpha1.AnyClaim, framework.MakeAcquire(runtimeName, "s", handle), dryRun)
		if err != nil {
			return nil, err
		}
		return got.Spec.RequestedBy, nil
	}, func(by *v1alpha1.RequestedBy) bool { return by != nil && by.Agent == "told-by-the-webhook" })
}

func TestValidatingWebhook_Denies_AcquireShowsItsMessage(t *testing.T) {
	for _, resource := range []string{"sandboxclaims", "sandboxclaims/acquire"} {
		t.Run("on "+resource, func(t *testing.T) {
			w := newWorld(t, onFakeNodes)
			w.validatingWebhook(resource, w.Webhook(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "not on a Friday", Code: 403}}
			}))
			w.untilBites(refusesAcquire("s", "not on a Friday"))
			_, err := w.acquireNow(w.agent, "s")
			require.True(t, apierrors.IsForbidden(err), "got %v", err)
			require.ErrorContains(t, err, `admission webhook "validates.example.test" denied the request: not on a Friday`)
			w.noClaims()
		})
	}
}

func TestWebhook_Down_AcquireSaysWhichAndStoresNothing(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	client := w.Webhook(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return nil })
	client.URL = ptr.To("https://" + w.Info.NodeIP + ":9/") // nothing listens there
	w.validatingWebhook("sandboxclaims", client)
	w.untilBites(refusesAcquire("s", "failed calling webhook"))
	_, err := w.acquireNow(w.agent, "s")
	require.True(t, apierrors.IsInternalError(err), "got %v", err)
	require.ErrorContains(t, err, `failed calling webhook "validates.example.test"`)
	require.ErrorContains(t, err, "connection refused")
	w.noClaims()
}

func TestNamespace_Ending_TakesNoClaims(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	keep := func(finalizers string) error {
		ctx := context.WithoutCancel(t.Context())
		for _, kind := range []string{"agentruntime/" + runtimeName, "toolregistry/tools"} {
			if _, err := w.Kubectl(ctx, "--namespace", w.namespace, "patch", kind, "--type=merge", "--patch", `{"metadata":{"finalizers":`+finalizers+`}}`); err != nil {
				return err
			}
		}
		return nil
	}
	require.NoError(t, keep(`["example.test/keep"]`))
	t.Cleanup(func() { assert.NoError(t, keep("null"), "the namespace stays for ever") })
	require.NoError(t, w.Kube.CoreV1().Namespaces().Delete(t.Context(), w.namespace, metav1.DeleteOptions{}))

	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	for how, write := range map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error { return tryAcquire(ctx, claims, "s") },
		"create": func(ctx context.Context) error {
			_, err := claims.Create(ctx, framework.MakeClaim("late", w.namespace, runtimeName, w.class).Obj(), dryRun)
			return err
		},
		"server-side apply": func(ctx context.Context) error {
			_, err := claims.Patch(ctx, "late", types.ApplyPatchType, patched(t, framework.MakeClaim("late", w.namespace, runtimeName, w.class).Obj()), forcedApply(metav1.DryRunAll))
			return err
		},
	} {
		t.Run(how, func(t *testing.T) {
			// Either server may answer, and hears of the namespace's end by itself.
			framework.Eventually(t, framework.NoticeTimeout, "it is refused because of the namespace", func(ctx context.Context) (string, error) {
				err := write(ctx)
				if err == nil || !apierrors.IsForbidden(err) {
					return "", err
				}
				return err.Error(), nil
			}, func(said string) bool { return strings.Contains(said, "because it is being terminated") })
		})
	}
	w.noClaims()
}
