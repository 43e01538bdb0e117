// Package client is the helper beside the generated clientset: one call that acquires a sandbox and returns when it can
// be used, a touch loop, and release. It hides that a server answers an acquire in pieces, that servers restart, and that
// a fresh address takes a moment to be routed. It refuses to speak the protocol on a sandbox's ports, and to retry what
// the server refused.
package client

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	sandboxv1alpha1 "github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned/typed/sandbox/v1alpha1"
)

const (
	// DefaultDeadline is how long Acquire waits for a sandbox in all.
	DefaultDeadline = 2*time.Minute + 45*time.Second
	// DefaultDialTimeout is how long Acquire waits for a bound sandbox's ports to accept a connection.
	DefaultDialTimeout = 30 * time.Second

	oneDial = 2 * time.Second
	// callSlack is how long past its wait a call may take before it is given up and asked again: a connection to a server
	// that vanished without a word would else outlast the deadline.
	callSlack = 15 * time.Second
	// answerSlack is how long past the deadline the last call's answer is waited for, since it says why.
	answerSlack = 2 * time.Second
)

// Dialer opens a connection, as net.Dialer does.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Client acquires sandboxes in one namespace. The zero value is not usable: see New.
type Client struct {
	claims    sandboxv1alpha1.SandboxClaimInterface
	namespace string

	// Deadline is how long Acquire waits in all; DefaultDeadline if New made the client.
	Deadline time.Duration
	// DialTimeout is how long Acquire waits for ports to accept; 0 does not look at them.
	DialTimeout time.Duration
	// Dialer opens the connections that find out; a plain net.Dialer if New made the client.
	Dialer Dialer
	// Clock tells the time.
	Clock clock.Clock

	callSlack time.Duration
}

// New gives a client of a namespace over the generated clientset, with the default times.
func New(clientset sandboxv1alpha1.SandboxClaimsGetter, namespace string) *Client {
	return &Client{
		claims: clientset.SandboxClaims(namespace), namespace: namespace,
		Deadline: DefaultDeadline, DialTimeout: DefaultDialTimeout, Dialer: &net.Dialer{Timeout: oneDial}, Clock: clock.RealClock{},
		callSlack: callSlack,
	}
}

// Sandbox is a sandbox that can be used.
type Sandbox struct {
	// Namespace, Name and UID say which claim it is.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Addresses is host:port by the port's name.
	Addresses map[string]string `json:"addresses"`
	// Created is true if Acquire created the claim, rather than found it. It is false too when the claim was created by a
	// call whose answer was lost.
	Created bool `json:"created"`

	client           *Client
	runtime, session string
}

// Acquire finds or creates the sandbox that spec describes and returns when it can be used. It gives the server's own
// error where that refuses (see v1alpha1's Is functions), a NotReadyError when the deadline passes, be it the client's or
// ctx's, an UnreachableError when a port stays shut, and ctx's error when ctx is cancelled. spec.WaitSeconds is the
// client's to set.
//
// What may pass is asked again until the deadline: a connection that is refused or breaks, an answer of 500 and above, a
// server that is full, a group that is not served. A 403 by which the cluster's authorizer refuses the call itself is asked
// again for five seconds, since a kube-apiserver that has just started refuses so until it knows the cluster's roles.
func (c *Client) Acquire(ctx context.Context, spec v1alpha1.SandboxAcquireSpec) (*Sandbox, error) {
	began := c.Clock.Now()
	deadline := began.Add(c.patience(ctx))
	log := klog.FromContext(ctx)
	delay := callBackoff()
	last, doubted := NotReadyError{}, doubt{}
	created := false
	for {
		left := deadline.Sub(c.Clock.Now())
		if left <= 0 {
			return nil, c.late(last, began)
		}
		answer, err := c.piece(ctx, spec, left)
		var pause time.Duration
		switch {
		case ctx.Err() != nil:
			return nil, c.ended(ctx, last, began)
		case err == nil && answer.Status.Phase == v1alpha1.PhaseBound:
			sandbox := c.sandbox(spec, answer.Status)
			sandbox.Created = created || sandbox.Created
			if err := c.reachable(ctx, sandbox); err != nil {
				return nil, err
			}
			return sandbox, nil
		case err == nil:
			s := answer.Status
			created = created || s.Created
			last = NotReadyError{Claim: s.ClaimName, Phase: s.Phase, Reason: s.Reason, Message: s.Message}
			delay, pause, doubted = callBackoff(), time.Duration(s.RetryAfterSeconds)*time.Second, doubt{}
			log.V(2).Info("Sandbox is not bound yet; asking again", "claim", klog.KRef(c.namespace, s.ClaimName), "phase", s.Phase, "reason", s.Reason)
		case doubted.passing(err, c.Clock.Now()):
			last.Last = err
			pause = pauseAfter(err, &delay)
			log.V(2).Info("Acquire failed; asking again", "after", pause, "err", err)
		default:
			return nil, err
		}
		if c.sleep(ctx, min(pause, deadline.Sub(c.Clock.Now()))) != nil {
			return nil, c.ended(ctx, last, began)
		}
	}
}

// patience is how long Acquire waits. It ends a little before ctx does, so that the last call's answer, which says why,
// still arrives.
func (c *Client) patience(ctx context.Context) time.Duration {
	ends, ok := ctx.Deadline()
	if !ok {
		return c.Deadline
	}
	left := time.Until(ends)
	if left > 2*answerSlack {
		left -= answerSlack / 2
	}
	return min(c.Deadline, left)
}

// piece asks once, to wait for what is left, as far as one call may wait.
func (c *Client) piece(ctx context.Context, spec v1alpha1.SandboxAcquireSpec, left time.Duration) (*v1alpha1.SandboxAcquire, error) {
	// Rounded up: to the server, 0 is a caller who does not wait, and whose claim it never withdraws.
	long := min((left + time.Second - 1).Truncate(time.Second), v1alpha1.MaxWaitSeconds*time.Second)
	spec.WaitSeconds = ptr.To(int32(long / time.Second))
	ctx, cancel := context.WithTimeout(ctx, min(long+c.callSlack, left+answerSlack))
	defer cancel()
	return c.claims.Acquire(ctx, v1alpha1.AnyClaim, &v1alpha1.SandboxAcquire{Spec: spec}, metav1.CreateOptions{})
}

func (c *Client) sandbox(spec v1alpha1.SandboxAcquireSpec, s v1alpha1.SandboxAcquireStatus) *Sandbox {
	return &Sandbox{
		Namespace: c.namespace, Name: s.ClaimName, UID: s.ClaimUID, Addresses: s.Addresses, Created: s.Created,
		client: c, runtime: spec.AgentRuntime, session: spec.SessionID,
	}
}

// late is the error of a deadline that passed.
func (c *Client) late(last NotReadyError, began time.Time) error {
	last.Waited = c.Clock.Since(began)
	return &last
}

// ended is the error of a ctx that ended: what was waited for, if it was its deadline that passed.
func (c *Client) ended(ctx context.Context, last NotReadyError, began time.Time) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return c.late(last, began)
	}
	return ctx.Err()
}

// reachable waits until every port accepts a connection: a Service is routed a moment after its claim is bound.
func (c *Client) reachable(ctx context.Context, s *Sandbox) error {
	if c.DialTimeout <= 0 {
		return nil
	}
	deadline := c.Clock.Now().Add(c.DialTimeout)
	for _, port := range slices.Sorted(maps.Keys(s.Addresses)) {
		if err := c.accepts(ctx, s, s.Addresses[port], deadline); err != nil {
			return err
		}
	}
	return nil
}

// accepts dials one address until it accepts or the deadline passes, but at least once.
func (c *Client) accepts(ctx context.Context, s *Sandbox, address string, deadline time.Time) error {
	delay := dialBackoff()
	for {
		conn, err := c.Dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
			return nil
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		if ctx.Err() != nil || !c.Clock.Now().Before(deadline) {
			return &UnreachableError{Sandbox: s, Address: address, Err: err}
		}
		pause := delay.Step()
		klog.FromContext(ctx).V(2).Info("Sandbox accepts no connection yet; dialling again", "address", address, "after", pause, "err", err)
		if err := c.sleep(ctx, pause); errors.Is(err, context.Canceled) {
			return err
		}
	}
}
