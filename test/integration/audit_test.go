package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create]
  resources: [{group: sandbox.omnia}]
- level: None
`

// auditing gives the flags by which the package's servers write an audit log into a folder. The log is there before they
// are, so that both append to it.
func auditing(dir string) ([]string, error) {
	policy := filepath.Join(dir, "policy.yaml")
	shared.auditLog = filepath.Join(dir, "audit.log")
	for file, text := range map[string]string{policy: auditPolicy, shared.auditLog: ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + shared.auditLog}, nil
}

// audited waits for the event of the request with this audit ID.
func audited(t *testing.T, id types.UID) auditv1.Event {
	t.Helper()
	return framework.Eventually(t, framework.Shortly, "request "+string(id)+" is in the audit log", func(context.Context) (auditv1.Event, error) {
		data, err := os.ReadFile(shared.auditLog)
		if err != nil {
			return auditv1.Event{}, err
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, len(data)+1)
		for lines.Scan() {
			var event auditv1.Event
			if json.Unmarshal(lines.Bytes(), &event) == nil && event.AuditID == id {
				return event, nil
			}
		}
		return auditv1.Event{}, lines.Err()
	}, func(event auditv1.Event) bool { return event.AuditID == id })
}

// call does an action as the agent, and gives the answer and the audit ID, which the front proxy hands on.
func (w *world) call(name, action string, body any) (rest.Result, types.UID) {
	w.t.Helper()
	id := uuid.NewUUID()
	data, err := json.Marshal(body)
	require.NoError(w.t, err)
	return w.agent.SandboxV1alpha1().RESTClient().Post().Namespace(w.namespace).Resource("sandboxclaims").Name(name).SubResource(action).
		SetHeader(auditv1.HeaderAuditID, string(id)).SetHeader("Content-Type", "application/json").Body(data).Do(w.t.Context()), id
}

func TestAudit_SaysWhichClaimAnActionMeant(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	first, second := w.bound("s"), w.boundAs("s", "shell/second")
	session := v1alpha1.SandboxRelease{Spec: v1alpha1.SandboxReleaseSpec{AgentRuntime: runtimeName, SessionID: "s"}}
	none := v1alpha1.SandboxRelease{Spec: v1alpha1.SandboxReleaseSpec{AgentRuntime: runtimeName, SessionID: "none"}}
	unknown := framework.MakeAcquire(runtimeName, "s", "unknown/default")
	for _, tt := range []struct {
		what, name, action string
		body               any
		code               int32
		want               []string
	}{
		{"acquire of -: the claim that it found", v1alpha1.AnyClaim, "acquire", framework.MakeAcquire(runtimeName, "s", handle), 201, []string{first.Name}},
		{"acquire by name: that claim", second.Name, "acquire", framework.MakeAcquire(runtimeName, "s", "shell/second"), 201, []string{second.Name}},
		{"acquire of what is not declared: none", v1alpha1.AnyClaim, "acquire", unknown, 422, nil},
		{"touch: the URL says it", first.Name, "touch", v1alpha1.SandboxTouch{}, 201, nil},
		{"release of - without claims: none", v1alpha1.AnyClaim, "release", none, 201, nil},
		{"release of -: the session's claims", v1alpha1.AnyClaim, "release", session, 201, []string{first.Name, second.Name}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			_, id := w.call(tt.name, tt.action, tt.body)
			event := audited(t, id)
			require.Equal(t, tt.code, event.ResponseStatus.Code)
			assert.Equal(t, tt.action, event.ObjectRef.Subresource)
			assert.Equal(t, tt.name, event.ObjectRef.Name)
			assert.Equal(t, "system:serviceaccount:"+w.namespace+":"+runtimeName+"-facade", event.User.Username)
			said, annotated := event.Annotations["sandbox.omnia/claim"]
			require.Equal(t, tt.want != nil, annotated, "annotations: %v", event.Annotations)
			if annotated {
				assert.ElementsMatch(t, tt.want, strings.Split(said, ","))
			}
		})
	}
}

// boundAs acquires a handle until its claim is Bound.
func (w *world) boundAs(session, handle string) *v1alpha1.SandboxClaim {
	w.t.Helper()
	got, err := w.agent.SandboxV1alpha1().SandboxClaims(w.namespace).Acquire(w.t.Context(), v1alpha1.AnyClaim,
		framework.MakeAcquire(runtimeName, session, handle), metav1.CreateOptions{})
	require.NoError(w.t, err)
	return w.Claim(w.t, w.namespace, got.Status.ClaimName, framework.Bound)
}

func TestValidatingPolicy_ThatWarnsAndAudits_IsHeardOfTheCreateThatAcquireImplies(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	w.policy("sandboxclaims", []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit},
		admissionregistrationv1.Validation{Expression: `!object.spec.sessionID.startsWith("odd")`, Message: "an odd session"})
	var id types.UID
	asked := 0
	framework.Eventually(t, framework.NoticeTimeout, "the policy warns", func(context.Context) (string, error) {
		// A session each: a claim of before the policy was heard of would be found again, and nothing created.
		asked++
		body := framework.MakeAcquire(runtimeName, fmt.Sprintf("odd-%d", asked), handle)
		body.Spec.WaitSeconds = ptr.To[int32](0)
		var result rest.Result
		result, id = w.call(v1alpha1.AnyClaim, "acquire", body)
		if err := result.Error(); err != nil {
			return "", err
		}
		var said []string
		for _, warning := range result.Warnings() {
			said = append(said, warning.Text)
		}
		return strings.Join(said, "; "), nil
	}, func(said string) bool { return strings.Contains(said, "an odd session") })
	assert.Contains(t, audited(t, id).Annotations["validation.policy.admission.k8s.io/validation_failure"], "an odd session")
}
