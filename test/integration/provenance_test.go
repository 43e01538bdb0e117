package integration

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	claimclient "github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned/typed/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// writers are those who might be taken for the server, and may all do anything to the world's claims by RBAC.
func (w *world) writers() map[string]claimclient.SandboxClaimInterface {
	w.t.Helper()
	w.EveryoneWrites(w.t, w.namespace)
	impersonated := func(user string, groups ...string) *rest.Config {
		config := rest.CopyConfig(w.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		return config
	}
	server, err := w.AsServiceAccount(w.t.Context(), framework.SystemNamespace, framework.ServerName)
	require.NoError(w.t, err)
	facade, err := w.AsServiceAccount(w.t.Context(), w.namespace, runtimeName+"-facade")
	require.NoError(w.t, err)
	direct := w.servers.List[len(w.servers.List)-1].Direct
	out := map[string]claimclient.SandboxClaimInterface{}
	for who, config := range map[string]*rest.Config{
		"cluster-admin":                             w.Config,
		"system:apiserver of system:masters":        impersonated("system:apiserver", "system:masters"),
		"kube-controller-manager":                   impersonated("system:kube-controller-manager"),
		"the server's own ServiceAccount":           server,
		"the server's own ServiceAccount, directly": direct(server),
		"the runtime's ServiceAccount":              facade,
		"the runtime's ServiceAccount, directly":    direct(facade),
	} {
		set, err := versioned.NewForConfig(config)
		require.NoError(w.t, err)
		out[who] = set.SandboxV1alpha1().SandboxClaims(w.namespace)
	}
	return out
}

// patched is an object as the body of a patch.
func patched(t *testing.T, claim *v1alpha1.SandboxClaim) []byte {
	t.Helper()
	claim = claim.DeepCopy()
	claim.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SandboxClaim"}
	data, err := json.Marshal(claim)
	require.NoError(t, err)
	return data
}

func forcedApply(dryRun ...string) metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: "forger", Force: ptr.To(true), DryRun: dryRun}
}

func TestWhatOnlyAcquireWrites_WrittenByAnyoneElse_ForbiddenByEveryVerb(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	ways := map[string]struct {
		create func(context.Context, claimclient.SandboxClaimInterface, *v1alpha1.SandboxClaim) error
		absent bool // the verb never creates
	}{
		"create": {create: func(ctx context.Context, claims claimclient.SandboxClaimInterface, claim *v1alpha1.SandboxClaim) error {
			_, err := claims.Create(ctx, claim, metav1.CreateOptions{})
			return err
		}},
		"create of a generated name, dry run": {create: func(ctx context.Context, claims claimclient.SandboxClaimInterface, claim *v1alpha1.SandboxClaim) error {
			claim.Name, claim.GenerateName = "", "forged-"
			_, err := claims.Create(ctx, claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}},
		"server-side apply": {create: func(ctx context.Context, claims claimclient.SandboxClaimInterface, claim *v1alpha1.SandboxClaim) error {
			_, err := claims.Patch(ctx, claim.Name, types.ApplyPatchType, patched(t, claim), forcedApply())
			return err
		}},
		"server-side apply, dry run": {create: func(ctx context.Context, claims claimclient.SandboxClaimInterface, claim *v1alpha1.SandboxClaim) error {
			_, err := claims.Patch(ctx, claim.Name, types.ApplyPatchType, patched(t, claim), forcedApply(metav1.DryRunAll))
			return err
		}},
		"update": {absent: true, create: func(ctx context.Context, claims claimclient.SandboxClaimInterface, claim *v1alpha1.SandboxClaim) error {
			_, err := claims.Update(ctx, claim, metav1.UpdateOptions{})
			return err
		}},
		"merge patch": {absent: true, create: func(ctx context.Context, claims claimclient.SandboxClaimInterface, claim *v1alpha1.SandboxClaim) error {
			_, err := claims.Patch(ctx, claim.Name, types.MergePatchType, patched(t, claim), metav1.PatchOptions{})
			return err
		}},
		"server-side apply of the status": {absent: true, create: func(ctx context.Context, claims claimclient.SandboxClaimInterface, claim *v1alpha1.SandboxClaim) error {
			_, err := claims.Patch(ctx, claim.Name, types.ApplyPatchType, patched(t, claim), forcedApply(), "status")
			return err
		}},
	}
	for who, claims := range w.writers() {
		for how, way := range ways {
			t.Run(who+", "+how, func(t *testing.T) {
				for _, tt := range acquireOnly {
					claim := framework.MakeClaim("forged", w.namespace, runtimeName, w.class).Obj()
					tt.set(&claim.Spec)
					err := way.create(t.Context(), claims, claim)
					if way.absent {
						require.True(t, apierrors.IsNotFound(err), "%s: got %v", tt.field, err)
						continue
					}
					require.True(t, apierrors.IsForbidden(err), "%s: got %v", tt.field, err)
					assert.Contains(t, err.Error(), tt.field+" is written by the server alone")
					assert.Contains(t, err.Error(), "acquire the sandbox by sandboxclaims/-/acquire", "the remedy")
				}
			})
		}
	}
	left, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, left.Items)
}

var acquireOnly = []struct {
	field string
	set   func(*v1alpha1.SandboxClaimSpec)
}{
	{"spec.targetPath", func(s *v1alpha1.SandboxClaimSpec) { s.TargetPath = "projects/x" }},
	{"spec.mounts", func(s *v1alpha1.SandboxClaimSpec) {
		s.Mounts = []v1alpha1.SandboxMount{{Role: "project", ID: "x", Path: "arena/workspaces/x"}}
	}},
	{"spec.mounts", func(s *v1alpha1.SandboxClaimSpec) {
		s.Mounts = []v1alpha1.SandboxMount{{Role: v1alpha1.MountRoleSession}}
	}},
	{"spec.mount", func(s *v1alpha1.SandboxClaimSpec) {
		s.Mount = &v1alpha1.SandboxMount{Role: v1alpha1.MountRoleSession}
	}},
	{"spec.connections", func(s *v1alpha1.SandboxClaimSpec) {
		s.Connections = []v1alpha1.ConnectionBinding{{Role: "r", Connection: "c"}}
	}},
	{"spec.declaredBy", func(s *v1alpha1.SandboxClaimSpec) { s.DeclaredBy = "someone" }},
	{"spec.maxInstances", func(s *v1alpha1.SandboxClaimSpec) { s.MaxInstances = ptr.To[int32](9) }},
	{"spec.enrolment", func(s *v1alpha1.SandboxClaimSpec) {
		s.AgentRuntimeRef, s.Enrolment = nil, &v1alpha1.Enrolment{Connection: "c"}
	}},
}

func TestStatusGivenAtCreate_IsCleared(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	forged := framework.MakeClaim("forged", w.namespace, runtimeName, w.class).Obj()
	long := metav1.NewMicroTime(metav1.Now().AddDate(-1, 0, 0))
	forged.Status = v1alpha1.SandboxClaimStatus{
		ObservedGeneration: 7, Phase: v1alpha1.PhaseBound, Addresses: map[string]string{"mcp": "192.0.2.1:1"}, SandboxName: "kube-dns",
		Class: &v1alpha1.SandboxClassSpec{Image: "example.test/mine:1"}, QueuedAt: &long, BoundAt: &long, LastUsedAt: &long, Replaces: "x",
		Wait: &v1alpha1.WaitLease{RenewTime: long, DurationSeconds: 1}, Conditions: []metav1.Condition{provenance(metav1.ConditionTrue)},
	}
	dryRun := []string{metav1.DryRunAll}
	for how, create := range map[string]func() (*v1alpha1.SandboxClaim, error){
		"create": func() (*v1alpha1.SandboxClaim, error) {
			return claims.Create(t.Context(), forged, metav1.CreateOptions{DryRun: dryRun})
		},
		"server-side apply": func() (*v1alpha1.SandboxClaim, error) {
			return claims.Patch(t.Context(), forged.Name, types.ApplyPatchType, patched(t, forged), forcedApply(dryRun...))
		},
	} {
		t.Run(how, func(t *testing.T) {
			got, err := create()
			require.NoError(t, err)
			require.NotNil(t, got.Status.QueuedAt)
			assert.True(t, got.Status.QueuedAt.After(long.Time), "its place in the queue is not its writer's to choose")
			got.Status.QueuedAt = nil
			assert.Equal(t, v1alpha1.SandboxClaimStatus{}, got.Status)
		})
	}
}

// provenance is the condition as a forger would write it.
func provenance(status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionProvenanceVerified, Status: status, Reason: v1alpha1.ReasonWrittenByOperator,
		Message: "forged", LastTransitionTime: metav1.Now()}
}

func provenanceOf(claim *v1alpha1.SandboxClaim) *metav1.Condition {
	return meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.ConditionProvenanceVerified)
}

type writeConditions func(ctx context.Context, claims claimclient.SandboxClaimInterface, name string, conditions []metav1.Condition) error

// conditionWrites are the ways to write a claim's conditions; nil removes them.
func conditionWrites(t *testing.T) map[string]writeConditions {
	type put = func(context.Context, *v1alpha1.SandboxClaim, metav1.UpdateOptions) (*v1alpha1.SandboxClaim, error)
	update := func(putOf func(claimclient.SandboxClaimInterface) put) writeConditions {
		return func(ctx context.Context, claims claimclient.SandboxClaimInterface, name string, conditions []metav1.Condition) error {
			return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				claim, err := claims.Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				claim.Status.Conditions = conditions
				_, err = putOf(claims)(ctx, claim, metav1.UpdateOptions{})
				return err
			})
		}
	}
	ways := map[string]writeConditions{
		"update":        update(func(c claimclient.SandboxClaimInterface) put { return c.Update }),
		"update status": update(func(c claimclient.SandboxClaimInterface) put { return c.UpdateStatus }),
	}
	for on, subresources := range map[string][]string{"": nil, " status": {"status"}} {
		patch := func(kind types.PatchType, options metav1.PatchOptions, body func([]metav1.Condition) any) writeConditions {
			return func(ctx context.Context, claims claimclient.SandboxClaimInterface, name string, conditions []metav1.Condition) error {
				data, err := json.Marshal(body(conditions))
				require.NoError(t, err)
				_, err = claims.Patch(ctx, name, kind, data, options, subresources...)
				return err
			}
		}
		merge := func(c []metav1.Condition) any { return map[string]any{"status": map[string]any{"conditions": c}} }
		ways["merge patch"+on] = patch(types.MergePatchType, metav1.PatchOptions{}, merge)
		ways["strategic merge patch"+on] = patch(types.StrategicMergePatchType, metav1.PatchOptions{}, merge)
		ways["JSON patch"+on] = patch(types.JSONPatchType, metav1.PatchOptions{}, func(c []metav1.Condition) any {
			return []any{map[string]any{"op": "add", "path": "/status/conditions", "value": c}}
		})
		ways["forced apply"+on] = patch(types.ApplyPatchType, forcedApply(), func(c []metav1.Condition) any {
			return map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "SandboxClaim", "status": map[string]any{"conditions": c}}
		})
	}
	return ways
}

func TestProvenanceVerified_NobodySetsChangesOrRemovesIt(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	acquired := w.bound("acquired")
	w.Create(t, framework.MakeClaim("by-hand", w.namespace, runtimeName, w.class).Obj())
	byHand := w.Claim(t, w.namespace, "by-hand", framework.Bound)
	require.NotNil(t, provenanceOf(acquired))
	require.Nil(t, provenanceOf(byHand))
	attempts := [][]metav1.Condition{{provenance(metav1.ConditionTrue)}, {provenance(metav1.ConditionFalse)}, nil}
	writes := conditionWrites(t)
	for who, claims := range w.writers() {
		for how, write := range writes {
			t.Run(who+", "+how, func(t *testing.T) {
				for _, claim := range []*v1alpha1.SandboxClaim{acquired, byHand} {
					for _, conditions := range attempts {
						require.NoError(t, write(t.Context(), claims, claim.Name, conditions))
						now, err := claims.Get(t.Context(), claim.Name, metav1.GetOptions{})
						require.NoError(t, err)
						require.Equal(t, provenanceOf(claim), provenanceOf(now), "claim %s", claim.Name)
					}
				}
			})
		}
	}
}

func TestAcquiredClaim_CopiedByHand_IsNotVerified(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	text, err := w.Kubectl(t.Context(), "--namespace", w.namespace, "get", "sbclaim", claim.Name, "--output=yaml")
	require.NoError(t, err)
	var copied map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &copied))
	copied["metadata"].(map[string]any)["name"] = "copied"
	delete(copied["metadata"].(map[string]any), "resourceVersion")
	file := filepath.Join(t.TempDir(), "claim.yaml")
	create := func() error {
		require.NoError(t, os.WriteFile(file, []byte(framework.Show(copied)), 0o600))
		_, err := w.Kubectl(t.Context(), "create", "--filename", file)
		return err
	}
	require.ErrorContains(t, create(), "spec.maxInstances is written by the server alone")
	delete(copied["spec"].(map[string]any), "maxInstances")
	require.NoError(t, create())
	stands := w.Claim(t, w.namespace, "copied", framework.Bound)
	assert.Nil(t, provenanceOf(stands))
	assert.NotEqual(t, claim.UID, stands.UID)
}

func TestSpec_OfAnyClaim_IsImmutableForEveryone(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.Create(t, framework.MakeClaim("by-hand", w.namespace, runtimeName, w.class).Obj())
	stand := []*v1alpha1.SandboxClaim{w.bound("acquired"), w.Claim(t, w.namespace, "by-hand", framework.Bound)}
	changes := []string{
		`{"sessionID":"another"}`, `{"handle":"shell/another"}`, `{"classRef":{"name":"another"}}`, `{"agentRuntimeRef":{"name":"another"}}`,
		`{"targetPath":"projects/x"}`, `{"mounts":[{"role":"session"}]}`, `{"mount":{"role":"scratch"}}`, `{"maxInstances":9}`, `{"declaredBy":"x"}`,
		`{"requestedBy":{"agent":"x"}}`, `{"connections":[{"role":"r","connection":"c"}]}`, `{"enrolment":{"connection":"c"}}`, `null`,
	}
	applied := []byte(`{"apiVersion":"sandbox.omnia/v1alpha1","kind":"SandboxClaim","spec":{"sessionID":"another"}}`)
	for who, claims := range w.writers() {
		t.Run(who, func(t *testing.T) {
			for _, before := range stand {
				for _, change := range changes {
					_, err := claims.Patch(t.Context(), before.Name, types.MergePatchType, []byte(`{"spec":`+change+`}`), metav1.PatchOptions{})
					require.True(t, apierrors.IsInvalid(err), "%s: got %v", change, err)
					require.ErrorContains(t, err, "is immutable: delete the claim and create it again")
					_, err = claims.Patch(t.Context(), before.Name, types.MergePatchType, []byte(`{"spec":`+change+`}`), metav1.PatchOptions{}, "status")
					require.NoError(t, err, "a write of the status leaves the spec out")
				}
				_, err := claims.Patch(t.Context(), before.Name, types.ApplyPatchType, applied, forcedApply())
				require.True(t, apierrors.IsInvalid(err), "got %v", err)
				after, err := claims.Get(t.Context(), before.Name, metav1.GetOptions{})
				require.NoError(t, err)
				assert.Equal(t, before.Spec, after.Spec)
				assert.Equal(t, before.Generation, after.Generation)
				after.Spec.SessionID = "another"
				_, err = claims.Update(t.Context(), after, metav1.UpdateOptions{})
				require.True(t, apierrors.IsInvalid(err), "got %v", err)
			}
		})
	}
}

func TestLabelsAnnotationsFinalizers_OfAnAcquiredClaim_StayEditable(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	claim := w.bound("s")
	claims := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace)
	edit := func(metadata string) (*v1alpha1.SandboxClaim, error) {
		return claims.Patch(context.WithoutCancel(t.Context()), claim.Name, types.MergePatchType, []byte(`{"metadata":`+metadata+`}`), metav1.PatchOptions{})
	}
	t.Cleanup(func() {
		_, err := edit(`{"finalizers":null}`)
		assert.NoError(t, err, "the namespace cannot go with a claim that is kept")
	})
	edited, err := edit(`{"labels":{"team":"blue","` + v1alpha1.LabelSession + `":null},"annotations":{"note":"x"},"finalizers":["example.test/keep"]}`)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"team": "blue", v1alpha1.LabelAgentRuntime: runtimeName}, edited.Labels)
	assert.Equal(t, map[string]string{"note": "x"}, edited.Annotations)
	assert.Equal(t, []string{"example.test/keep"}, edited.Finalizers)
	assert.Equal(t, claim.Generation, edited.Generation)

	again, err := w.acquire(w.agent, "s")
	require.NoError(t, err)
	assert.Equal(t, claim.UID, again.ClaimUID, "a claim is not found by its labels")
	_, err = edit(`{"labels":null,"annotations":null,"finalizers":null}`)
	require.NoError(t, err)
}
