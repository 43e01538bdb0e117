package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
	"github.com/altairalabs/omnia-sandboxes/test/judge"
)

func TestJudged(t *testing.T) {
	claims := schema.GroupResource{Group: "sandbox.omnia", Resource: "sandboxclaims"}
	of := func(code int32, reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason}}
	}
	for name, c := range map[string]struct {
		err  error
		want outcome
	}{
		"answered":                                 {nil, served},
		"no connection to kube-apiserver":          {errors.New("connection refused"), unheard},
		"kube-apiserver does not know the caller":  {apierrors.NewUnauthorized("no"), unheard},
		"kube-apiserver does not know what it may": {apierrors.NewForbidden(claims, "-", errors.New("no role")), unheard},
		"kube-apiserver does not know the group":   {of(http.StatusNotFound, metav1.StatusReasonNotFound), unheard},
		"no server is reached":                     {apierrors.NewServiceUnavailable("error trying to reach service"), unserved},
		"a server's admission has no caches yet":   {apierrors.NewForbidden(claims, "-", errors.New("not yet ready to handle request")), unserved},
		"no answer in time":                        {fmt.Errorf("Post: %w", context.DeadlineExceeded), unserved},
		"the session is full":                      {of(http.StatusForbidden, v1alpha1.StatusReasonMaxPerSession), refused},
		"the sandbox is unknown":                   {of(http.StatusUnprocessableEntity, v1alpha1.StatusReasonUnknownSandbox), refused},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, judged(c.err)) })
	}
}

func TestGone_LostUnlessSomebodyAskedForIt(t *testing.T) {
	waiting := func() *judge.Claim {
		claim := framework.MakeClaim("claim", "ns", agentName, "class").Obj()
		claim.UID = "uid"
		claim.Status.Wait = &v1alpha1.WaitLease{RenewTime: metav1.NowMicro(), DurationSeconds: 35}
		return &judge.Claim{SandboxClaim: claim}
	}
	bound := waiting()
	bound.Status.Phase = v1alpha1.PhaseBound
	late := waiting()
	late.Status.Wait.RenewTime = metav1.NewMicroTime(time.Now().Add(-time.Minute))
	for name, c := range map[string]struct {
		claim         *judge.Claim
		before, after func(*account)
		lost          int
	}{
		"Bound, and nobody asked":           {claim: bound, lost: 1},
		"Bound, and released":               {claim: bound, before: func(a *account) { a.release(bound.Key()) }},
		"Bound, and its caller was cut off": {claim: bound, before: func(a *account) { a.cutOff(bound.Key()) }, lost: 1},
		"it waited, as its caller does":     {claim: waiting(), lost: 1},
		"it waited, and its caller hears later than the server that it was cut off": {
			claim: waiting(), after: func(a *account) { a.cutOff(waiting().Key()) },
		},
		"it waited, and its wait was over": {claim: late},
	} {
		t.Run(name, func(t *testing.T) {
			a := &account{ledger: newLedger(), Events: judge.New(judge.Options{Say: t.Logf})}
			if c.before != nil {
				c.before(a)
			}
			a.Change(func() { a.gone(c.claim) })
			if c.after != nil {
				c.after(a)
			}
			a.settle()
			assert.Len(t, a.Broken(), c.lost)
		})
	}
}
