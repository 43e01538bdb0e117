package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// ask is a request as no client library would make it.
type ask struct {
	// method is POST if empty; path is under the world's sandboxclaims.
	method, path string
	// contentType is application/json if empty; accept is everything if empty.
	contentType, accept string
	body                string
}

// reply is what is answered to an ask.
type reply struct {
	code     int
	status   metav1.Status
	body     string
	warnings []string
}

// send asks. An answer that takes longer than Shortly is a failure.
func (w *world) send(t *testing.T, config *rest.Config, a ask) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Shortly)
	defer cancel()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	if a.method == "" {
		a.method = http.MethodPost
	}
	if a.contentType == "" {
		a.contentType = "application/json"
	}
	url := fmt.Sprintf("%s/apis/%s/namespaces/%s/sandboxclaims%s", config.Host, v1alpha1.SchemeGroupVersion, w.namespace, a.path)
	request, err := http.NewRequestWithContext(ctx, a.method, url, strings.NewReader(a.body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", a.contentType)
	request.Header.Set("Accept", a.accept)
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	out := reply{code: response.StatusCode, body: string(body), warnings: response.Header.Values("Warning")}
	_ = json.Unmarshal(body, &out.status) // An answer that is no Status is seen by its kind.
	return out
}

// routes are the ways of the runtime's ServiceAccount, who may write claims here, to the server.
func (w *world) routes() map[string]*rest.Config {
	w.t.Helper()
	w.EveryoneWrites(w.t, w.namespace)
	config, err := w.AsServiceAccount(w.t.Context(), w.namespace, runtimeName+"-facade")
	require.NoError(w.t, err)
	return map[string]*rest.Config{"through the aggregator": config, "directly": w.servers.List[0].Direct(config)}
}

// claimJSON is a claim of the world's class, with this in its metadata and in its spec.
func (w *world) claimJSON(metadata, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"sandbox.omnia/v1alpha1","kind":"SandboxClaim","metadata":{%s},"spec":{"agentRuntimeRef":{"name":"agent"},"classRef":{"name":%q,"kind":"ClusterSandboxClass"},%s}}`, metadata, w.class, spec)
}

func acquireJSON(spec string) string {
	return `{"apiVersion":"sandbox.omnia/v1alpha1","kind":"SandboxAcquire","spec":{"agentRuntime":"agent",` + spec + `}}`
}

// deep is a value within a value within a value.
func deep(open, inmost, shut string) string {
	const levels = 20000
	return strings.Repeat(open, levels) + inmost + strings.Repeat(shut, levels)
}

// bomb is YAML that is small until its aliases are followed.
func bomb() string {
	var text bytes.Buffer
	text.WriteString("apiVersion: sandbox.omnia/v1alpha1\nkind: SandboxAcquire\na0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&text, "a%d: &a%d [", i, i)
		for range 8 {
			fmt.Fprintf(&text, "*a%d,", i-1)
		}
		fmt.Fprintf(&text, "*a%d]\n", i-1)
	}
	return text.String()
}

const (
	session = `"sessionID":"s","handle":"shell/default"`
	named   = `"name":"odd"`
)

// badRequests are what is refused, and what is said.
func (w *world) badRequests() map[string]struct {
	ask
	code int
	says string
} {
	const acquire = "/-/acquire"
	type bad = struct {
		ask
		code int
		says string
	}
	claim := w.claimJSON(named, `"sessionID":"s"`)
	return map[string]bad{
		"a body of over 3 MiB":            {ask{path: acquire, body: acquireJSON(session + `,"x":"` + strings.Repeat("x", 4<<20) + `"`)}, 413, "limit is 3145728"},
		"a claim of over 3 MiB":           {ask{body: w.claimJSON(named+`,"annotations":{"x":"`+strings.Repeat("x", 4<<20)+`"}`, `"sessionID":"s"`)}, 413, "limit is 3145728"},
		"annotations of over 256 KiB":     {ask{body: w.claimJSON(named+`,"annotations":{"x":"`+strings.Repeat("x", 300<<10)+`"}`, `"sessionID":"s"`)}, 422, "metadata.annotations: Too long"},
		"truncated JSON":                  {ask{path: acquire, body: acquireJSON(session)[:60]}, 400, "unexpected end of JSON input"},
		"an empty body to acquire":        {ask{path: acquire}, 400, "unexpected end of JSON input"},
		"an empty body":                   {ask{}, 400, "unexpected end of JSON input"},
		"no object":                       {ask{path: acquire, body: `[]`}, 400, "cannot unmarshal array"},
		"arrays without end":              {ask{path: acquire, body: acquireJSON(session + `,"x":` + deep("[", "", "]"))}, 400, "exceeded max depth"},
		"objects without end":             {ask{body: w.claimJSON(named, `"sessionID":"s","x":`+deep(`{"x":`, "1", "}"))}, 400, "exceeded max depth"},
		"managed fields without end":      {ask{body: w.claimJSON(named+`,"managedFields":[{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":`+deep(`{"f:x":`, "{}", "}")+`}]`, `"sessionID":"s"`)}, 400, "exceeded max depth"},
		"YAML without end":                {ask{path: acquire, contentType: "application/yaml", body: "x: " + deep("[", "", "]")}, 400, "exceeded max depth"},
		"an alias bomb":                   {ask{path: acquire, contentType: "application/yaml", body: bomb()}, 400, "document contains excessive aliasing"},
		"protobuf":                        {ask{path: acquire, contentType: "application/vnd.kubernetes.protobuf", body: "k8s\x00"}, 415, "application/json"},
		"CBOR":                            {ask{contentType: "application/cbor", body: "\xd9\xd9\xf7\xa0"}, 415, "application/json"},
		"plain text":                      {ask{path: acquire, contentType: "text/plain", body: "please"}, 415, "application/json"},
		"an answer in CBOR":               {ask{path: acquire, accept: "application/cbor", body: acquireJSON(session)}, 406, "application/json"},
		"an answer in HTML":               {ask{method: http.MethodGet, accept: "text/html"}, 406, "application/json"},
		"a patch of an unknown kind":      {ask{method: http.MethodPatch, path: "/odd", body: "{}"}, 415, "Unsupported Media Type"},
		"another kind":                    {ask{body: strings.Replace(claim, "SandboxClaim", "SandboxClass", 1)}, 400, "SandboxClass"},
		"an unknown kind":                 {ask{body: strings.Replace(claim, "SandboxClaim", "Sandbox", 1)}, 400, `no kind "Sandbox" is registered`},
		"another group":                   {ask{body: strings.Replace(claim, "sandbox.omnia/", "omnia.altairalabs.ai/", 1)}, 400, `omnia.altairalabs.ai/v1alpha1`},
		"another version":                 {ask{path: acquire, body: strings.Replace(acquireJSON(session), "v1alpha1", "v9", 1)}, 400, "sandbox.omnia/v9"},
		"another namespace":               {ask{body: w.claimJSON(named+`,"namespace":"default"`, `"sessionID":"s"`)}, 400, "namespace of the provided object does not match"},
		"another namespace to acquire":    {ask{path: acquire, body: strings.Replace(acquireJSON(session), `"spec"`, `"metadata":{"namespace":"default"},"spec"`, 1)}, 400, "namespace of the provided object does not match"},
		"another name to acquire":         {ask{path: acquire, body: strings.Replace(acquireJSON(session), `"spec"`, `"metadata":{"name":"x"},"spec"`, 1)}, 400, `metadata.name of the SandboxAcquire is "x", the URL says "-"`},
		"another name":                    {ask{method: http.MethodPut, path: "/even", body: claim}, 400, "does not match"},
		"a SandboxAcquire among claims":   {ask{body: acquireJSON(session)}, 400, "SandboxAcquire"},
		"a claim to acquire":              {ask{path: acquire, body: claim}, 400, "SandboxClaim"},
		"a touch to release":              {ask{path: "/odd/release", body: `{"apiVersion":"sandbox.omnia/v1alpha1","kind":"SandboxTouch"}`}, 400, "SandboxTouch"},
		"NUL in the session":              {ask{path: acquire, body: acquireJSON(`"sessionID":"a\u0000b","handle":"shell/default"`)}, 422, "spec.sessionID"},
		"invalid UTF-8 in the session":    {ask{path: acquire, body: acquireJSON("\"sessionID\":\"a\xff\",\"handle\":\"shell/default\"")}, 422, "spec.sessionID"},
		"NUL in the handle":               {ask{path: acquire, body: acquireJSON(`"sessionID":"s","handle":"shell/\u0000"`)}, 422, "spec.handle"},
		"a string for a number":           {ask{path: acquire, body: acquireJSON(session + `,"waitSeconds":"5"`)}, 400, "waitSeconds"},
		"a number for a string":           {ask{path: acquire, body: acquireJSON(`"sessionID":7,"handle":"shell/default"`)}, 400, "sessionID"},
		"a number beyond int32":           {ask{path: acquire, body: acquireJSON(session + `,"waitSeconds":99999999999`)}, 400, "waitSeconds"},
		"a number beyond all":             {ask{path: acquire, body: acquireJSON(session + `,"waitSeconds":1e999`)}, 400, "1e999"},
		"half a second":                   {ask{path: acquire, body: acquireJSON(session + `,"waitSeconds":0.5`)}, 400, "waitSeconds"},
		"a negative wait":                 {ask{path: acquire, body: acquireJSON(session + `,"waitSeconds":-1`)}, 422, "must not be negative: 0 does not wait"},
		"a name too long":                 {ask{body: w.claimJSON(`"name":"`+strings.Repeat("x", 56)+`"`, `"sessionID":"s"`)}, 422, "no more than 55 characters"},
		"a name much too long to acquire": {ask{path: "/" + strings.Repeat("x", 3000) + "/acquire", body: acquireJSON(session)}, 404, "not found"},
		"an unknown field, strictly":      {ask{path: acquire + "?fieldValidation=Strict", body: acquireJSON(session + `,"waitSecond":5`)}, 400, `strict decoding error: unknown field "spec.waitSecond"`},
		"a doubled field, strictly":       {ask{path: "?fieldValidation=Strict", body: w.claimJSON(named, `"sessionID":"s","sessionID":"t"`)}, 400, `strict decoding error: duplicate field "spec.sessionID"`},
		"an unknown validation":           {ask{path: "?fieldValidation=Sometimes", body: claim}, 422, "fieldValidation"},
	}
}

func TestBadRequest_IsRefusedWithAHelpfulStatusAndStoresNothing(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	routes := w.routes()
	for name, tt := range w.badRequests() {
		for route, config := range routes {
			t.Run(name+", "+route, func(t *testing.T) {
				got := w.send(t, config, tt.ask)
				require.Equal(t, tt.code, got.code, "it said: %.500s", got.body)
				assert.Equal(t, "Status", got.status.Kind, "it said: %.500s", got.body)
				assert.Equal(t, metav1.StatusFailure, got.status.Status)
				assert.Equal(t, int32(tt.code), got.status.Code)
				assert.NotEmpty(t, got.status.Reason)
				assert.Contains(t, got.status.Message, tt.says)
				assert.Less(t, len(got.body), 16<<10, "an answer does not echo all it was sent")
			})
		}
	}
	w.noClaims()
	for _, server := range w.servers.List {
		require.True(t, server.Running())
		require.NoError(t, server.WaitReady(t.Context()))
	}
}

func TestFieldValidation_UnknownAndDoubledFields(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	routes := w.routes()
	w.Create(t, framework.MakeClaim("stands", w.namespace, runtimeName, w.class).Obj())
	const acquire, merge = "/-/acquire", "application/merge-patch+json"
	unknown, doubled := `unknown field \"spec.colour\"`, `duplicate field \"spec.sessionID\"`
	both := `"sessionID":"t","sessionID":"s","colour":"blue","handle":"shell/default"`
	asks := map[string]struct {
		ask
		warnings []string
	}{
		"create":  {ask{body: w.claimJSON(named, both)}, []string{doubled, unknown}},
		"acquire": {ask{path: acquire, body: acquireJSON(both)}, []string{doubled, unknown}},
		"create of YAML": {ask{contentType: "application/yaml", body: "apiVersion: sandbox.omnia/v1alpha1\nkind: SandboxClaim\nmetadata: {name: odd}\nspec:\n" +
			"  agentRuntimeRef: {name: agent}\n  classRef: {name: " + w.class + ", kind: ClusterSandboxClass}\n  colour: blue\n  sessionID: t\n  sessionID: s\n"}, []string{unknown}},
		"merge patch": {ask{method: http.MethodPatch, path: "/stands", contentType: merge, body: `{"spec":{"colour":"blue"},"metadata":{"labels":{"a":"b"}}}`}, []string{unknown}},
		"JSON patch": {ask{method: http.MethodPatch, path: "/stands", contentType: "application/json-patch+json",
			body: `[{"op":"add","path":"/spec/colour","value":"blue"}]`}, []string{unknown}},
	}
	for name, tt := range asks {
		for route, config := range routes {
			for _, validation := range []string{metav1.FieldValidationWarn, metav1.FieldValidationIgnore, metav1.FieldValidationStrict} {
				t.Run(name+", "+validation+", "+route, func(t *testing.T) {
					a := tt.ask
					a.path += "?dryRun=All&fieldValidation=" + validation
					got := w.send(t, config, a)
					warned := strings.Join(got.warnings, "\n")
					switch validation {
					case metav1.FieldValidationStrict:
						require.Contains(t, []int{400, 422}, got.code, "it said: %.500s", got.body)
						assert.Contains(t, got.status.Message, `unknown field "spec.colour"`)
					case metav1.FieldValidationWarn:
						require.Contains(t, []int{200, 201}, got.code, "it said: %.500s", got.body)
						for _, want := range tt.warnings {
							assert.Contains(t, warned, want)
						}
					default:
						require.Contains(t, []int{200, 201}, got.code, "it said: %.500s", got.body)
						assert.Empty(t, warned)
					}
				})
			}
		}
	}
}

func TestYAML_IsUnderstoodAndAnswered(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	for route, config := range w.routes() {
		t.Run(route, func(t *testing.T) {
			got := w.send(t, config, ask{path: "/-/acquire?dryRun=All", contentType: "application/yaml", accept: "application/yaml",
				body: "apiVersion: sandbox.omnia/v1alpha1\nkind: SandboxAcquire\nspec: {agentRuntime: agent, sessionID: s, handle: shell/default}\n"})
			require.Equal(t, http.StatusCreated, got.code, "it said: %.500s", got.body)
			assert.Contains(t, got.body, "kind: SandboxAcquire\n")
			assert.Contains(t, got.body, "  created: true\n")
		})
	}
	w.noClaims()
}
