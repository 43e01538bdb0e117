package sandboxclaim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/validation"
)

func TestClaimName(t *testing.T) {
	tests := map[string]struct{ runtime, session, handle, want string }{
		"a plain runtime: its name leads":            {"my-agent", "s-1", "shell/default", "my-agent-sbx-"},
		"dots: become dashes":                        {"my.agent", "s-1", "shell/default", "my-agent-sbx-"},
		"a leading digit: a letter is put before it": {"7zip", "s-1", "shell/default", "r7zip-sbx-"},
		"a long runtime: is cut":                     {strings.Repeat("a", 63), "s-1", "shell/default", strings.Repeat("a", 37) + "-sbx-"},
		"a cut that ends in a dash: no double dash":  {strings.Repeat("a", 36) + "-b", "s-1", "shell/default", strings.Repeat("a", 36) + "-sbx-"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ClaimName(tt.runtime, tt.session, tt.handle)
			assert.True(t, strings.HasPrefix(got, tt.want), "%s does not begin with %s", got, tt.want)
			assert.Len(t, strings.TrimPrefix(got, tt.want), nameDigits)
			assert.Empty(t, validation.ValidateClaimName(got, false))
			assert.Equal(t, got, ClaimName(tt.runtime, tt.session, tt.handle), "the same key has the same name")
		})
	}
}

func TestClaimNameTellsKeysApart(t *testing.T) {
	keys := []key{{"a", "b", "c/d"}, {"a", "b", "c/e"}, {"a", "bc", "/d"}, {"ab", "", "c/d"}, {"a", "b-c", "d/e"}, {"a-b", "c", "d/e"}}
	seen := map[string]key{}
	for _, k := range keys {
		name := k.claimName()
		assert.NotContains(t, seen, name)
		seen[name] = k
	}
}

// FuzzClaimName wants a name that a Service can extend, whatever a runtime may be called.
func FuzzClaimName(f *testing.F) {
	f.Fuzz(func(t *testing.T, runtime, session, handle string) {
		acquire := &sandbox.SandboxAcquire{Spec: sandbox.SandboxAcquireSpec{AgentRuntime: runtime, SessionID: "s", Handle: "h/d"}}
		if len(validation.ValidateSandboxAcquire(acquire)) > 0 {
			return // no runtime is called so
		}
		got := ClaimName(runtime, session, handle)
		assert.Empty(t, validation.ValidateClaimName(got, false), "%q of runtime %q", got, runtime)
		assert.Empty(t, utilvalidation.IsDNS1035Label(got+"-sandbox"))
		assert.LessOrEqual(t, len(got), validation.MaxClaimNameLength)
		assert.Equal(t, got, ClaimName(runtime, session, handle), "the same key has the same name")
		assert.NotEqual(t, got, ClaimName(runtime, session+"x", handle), "another key has another")
	})
}
