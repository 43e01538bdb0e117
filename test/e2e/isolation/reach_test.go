package isolation

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/altairalabs/omnia-sandboxes/test/images/attacker/report"
)

// target is something that can be reached, by an attempt that tells a token.
type target struct {
	promise string
	attempt func(token string) []string
}

func tcp(promise, address string) target {
	return target{promise, func(token string) []string { return []string{"tcp", address, token} }}
}

func udp(promise, address string) target {
	return target{promise, func(token string) []string { return []string{"udp", address, token} }}
}

func dns(promise, network, address string) target {
	return target{promise, func(token string) []string { return []string{"dns", network, address, token} }}
}

func ping(promise, host string) target {
	return target{promise, func(token string) []string { return []string{"icmp", host, token} }}
}

// source is a pod from which attempts are made.
type source struct{ who, namespace, pod string }

func (s *sandbox) source() source { return source{"sandbox", s.namespace, s.pod.Name} }

// all makes every attempt once, each with a token of its own.
func (w *world) all(from source, targets []target) (verdicts []report.Verdict, tokens []string) {
	w.t.Helper()
	attempts, tokens := attemptsOf(targets)
	return w.tryIn(from.namespace, from.pod, attempts...), tokens
}

func attemptsOf(targets []target) (attempts [][]string, tokens []string) {
	for _, target := range targets {
		tokens = append(tokens, token())
		attempts = append(attempts, target.attempt(tokens[len(tokens)-1]))
	}
	return attempts, tokens
}

// until makes every attempt again and again until each succeeds, or each fails, and gives the last verdicts: a network
// plugin takes a moment to learn of a pod or a policy. It judges nothing, and gives up after a while.
func (w *world) until(succeed bool, from source, targets []target) []report.Verdict {
	w.t.Helper()
	began := time.Now()
	var last []report.Verdict
	var lastErr error
	_ = wait.PollUntilContextTimeout(w.t.Context(), 200*time.Millisecond, enforced, true, func(ctx context.Context) (bool, error) {
		attempts, _ := attemptsOf(targets)
		verdicts, err := w.tried(ctx, from.namespace, from.pod, attempts...)
		if ctx.Err() == nil { // What was tried before it was cut off says more.
			last, lastErr = verdicts, err
		}
		return err == nil && every(verdicts, succeed), nil
	})
	require.NoError(w.t, lastErr)
	require.Len(w.t, last, len(targets))
	w.t.Logf("%s: all of %d attempts succeed is %t after %s", from.pod, len(targets), every(last, true), time.Since(began).Round(time.Millisecond))
	return last
}

func every(verdicts []report.Verdict, succeeded bool) bool {
	for _, v := range verdicts {
		if v.Succeeded != succeeded {
			return false
		}
	}
	return true
}

// wide is a policy that opens every pod of its namespace, in both directions.
func wide(namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wide-open-" + rand.String(5)},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{}},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{}},
		},
	}
}

// open adds a policy that opens the world's namespace, and gives what takes it away again.
func (w *world) open() (name string, shut func()) {
	w.t.Helper()
	policy := wide(w.namespace)
	w.Create(w.t, policy)
	return policy.Name, func() {
		w.t.Helper()
		require.NoError(w.t, w.Client.Delete(w.t.Context(), policy))
	}
}

// proveEach begins a row for each target.
func proveEach(t testing.TB, targets []target) []*proof {
	t.Helper()
	var proofs []*proof
	for _, target := range targets {
		proofs = append(proofs, prove(t, target.promise))
	}
	return proofs
}

// unreached begins a row for each target, by the attempt that must fail and of which nothing must be heard outside.
func (s *sandbox) unreached(t testing.TB, targets []target) []*proof {
	t.Helper()
	proofs := proveEach(t, targets)
	s.until(false, s.source(), targets) // Now the policy holds, and what is tried once more is judged.
	verdicts, tokens := s.all(s.source(), targets)
	for i, v := range verdicts {
		proofs[i].denied("in the sandbox", v)
		if heard := s.heard(tokens[i]); len(heard) > 0 {
			proofs[i].attempted(false, "heard outside: %+v", heard)
		}
	}
	return proofs
}

// shut proves of each target that a sandbox does not reach it and nothing of the attempt is heard outside, while the same
// attempt from the same sandbox succeeds once somebody's policy opens it.
func (s *sandbox) shut(t testing.TB, targets []target) {
	t.Helper()
	proofs := s.unreached(t, targets)
	_, shut := s.open()
	for i, v := range s.until(true, s.source(), targets) {
		proofs[i].allowed("the same, with a policy that opens it", v)
	}
	shut()
}
