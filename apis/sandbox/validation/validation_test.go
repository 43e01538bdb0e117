package validation

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/install"
)

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
}

// asStored adds what the tags refuse to what the functions here refuse, as the store does with its strategies: a row of
// a table need not know which of the two carries its rule. A nil old is a create.
func asStored(errs field.ErrorList, obj, old runtime.Object, subresource string) field.ErrorList {
	op := operation.Create
	if old != nil {
		op = operation.Update
	}
	ctx := request.WithRequestInfo(context.Background(), &request.RequestInfo{
		APIGroup: sandbox.GroupName, APIVersion: "v1alpha1", Subresource: subresource})
	return rest.ValidateDeclarativelyWithMigrationChecks(ctx, scheme, obj, old, errs, op, rest.DeclarativeValidationConfig{})
}

// requireRefused wants errors on exactly these fields, one each, in this order; none: the object is good. Each error must
// say more than that the value is wrong.
func requireRefused(t *testing.T, errs field.ErrorList, fields ...string) {
	t.Helper()
	var got []string
	for _, err := range errs {
		got = append(got, err.Field)
		if err.Type == field.ErrorTypeInvalid || err.Type == field.ErrorTypeRequired || err.Type == field.ErrorTypeForbidden {
			assert.NotEmpty(t, err.Detail, "%s is refused without a remedy", err.Field)
		}
	}
	require.Equal(t, fields, got, "%v", errs)
}

// requireSays wants one error whose message holds the words.
func requireSays(t *testing.T, errs field.ErrorList, words string) {
	t.Helper()
	require.Len(t, errs, 1)
	require.Contains(t, errs[0].Error(), words)
}

func characters(n int) string { return strings.Repeat("a", n) }

func TestRefusalsOfOneObjectAlwaysReadTheSame(t *testing.T) {
	refuse := func() string {
		c, class := goodClaim(), goodClass()
		c.Labels, class.NodeSelector = map[string]string{}, map[string]string{}
		for _, bad := range []string{"-a", "-b", "-c", "-d", "-e"} {
			c.Labels[bad], class.NodeSelector[bad] = "x", "x"
		}
		errs := ValidateSandboxClaim(c)
		errs = append(errs, ValidateSandboxClass(&metav1.ObjectMeta{Name: "shell"}, class, false)...)
		return errs.ToAggregate().Error()
	}
	first := refuse()
	for range 20 {
		require.Equal(t, first, refuse())
	}
}
