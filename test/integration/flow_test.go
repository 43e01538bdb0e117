package integration

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const acquireFlow = "sandbox-acquire"

func TestPriorityAndFairness_AcquireAloneHasItsOwnFlow(t *testing.T) {
	w := newWorld(t, onFakeNodes)
	schema, err := w.Kube.FlowcontrolV1().FlowSchemas().Get(t.Context(), acquireFlow, metav1.GetOptions{})
	require.NoError(t, err)
	config, err := w.AsServiceAccount(t.Context(), w.namespace, runtimeName+"-facade")
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	claim := w.bound("s")

	classified := func(action, body string) string {
		answer, err := client.Post(config.Host+"/apis/sandbox.omnia/v1alpha1/namespaces/"+w.namespace+"/sandboxclaims/"+action, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, answer.StatusCode)
		require.NoError(t, answer.Body.Close())
		return answer.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
	}
	assert.Equal(t, string(schema.UID), classified("-/acquire", `{"spec":{"agentRuntime":"agent","sessionID":"s","handle":"shell/default"}}`))
	touched := classified(claim.Name+"/touch", `{}`)
	assert.NotEmpty(t, touched)
	assert.NotEqual(t, string(schema.UID), touched, "a touch does not wait, and does not queue behind those who do")
}

// A hundred acquires that wait hold seats of their own level and of no other, so nobody else's requests queue for them.
func TestPriorityAndFairness_HundredWait_NoOtherLevelIsHeld(t *testing.T) {
	const callers = 100
	w := newWorld(t, unplaceable)
	ctx, hangUp := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range callers {
		waiting.Go(func() {
			// A call waits for 25 s, and the caller asks again until it hangs up.
			for ctx.Err() == nil {
				_, _ = w.agent.SandboxV1alpha1().SandboxClaims(w.namespace).Acquire(ctx, v1alpha1.AnyClaim,
					framework.MakeAcquire(runtimeName, "s", handle), metav1.CreateOptions{})
			}
		})
	}
	defer waiting.Wait()
	defer hangUp()
	// A level gets back the seats that it lent within 10 seconds.
	seats := framework.Eventually(t, framework.NoticeTimeout, "a hundred seats are held", w.Seats, func(seats map[string]int) bool { return seats[acquireFlow] >= callers })
	for level, held := range seats {
		if level != acquireFlow {
			assert.Less(t, held, callers/4, "level %s", level)
		}
	}
	claims, err := w.Sandbox.SandboxV1alpha1().SandboxClaims(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, claims.Items, 1, "the callers wait for one claim")
}
