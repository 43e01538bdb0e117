// Package client is the helper beside the generated clientset: one call that acquires a sandbox and returns when it can
// be used, a touch loop, and release. It hides that a server answers an acquire in pieces, that servers restart, and that
// a fresh address takes a moment to be routed. It refuses to speak the protocol on a sandbox's ports, and to retry what
// the server refused.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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
	Namespace, Name string
	UID             types.UID
	// Addresses is host:port by the port's name.
	Addresses map[string]string
	// Created is true if Acquire created the claim, rather than found it.
	Created bool

	client *Client
}

// NotReadyError says that the deadline passed before the sandbox was bound. It unwraps to context.DeadlineExceeded.
type NotReadyError struct {
	// Claim is the claim's name; empty if the server was never reached.
	Claim string
	// Phase, Reason and Message are the claim's when last heard of.
	Phase           v1alpha1.Phase
	Reason, Message string
	// Last is the last error of the server or of the way to it, if that was the last that was heard.
	Last error
}

// Error quotes the last that was heard.
func (e *NotReadyError) Error() string {
	switch {
	case e.Last != nil:
		return fmt.Sprintf("acquiring a sandbox: deadline passed: %v", e.Last)
	case e.Message != "":
		return fmt.Sprintf("acquiring sandbox %s: deadline passed while it was %s (%s): %s", e.Claim, e.Phase, e.Reason, e.Message)
	}
	return fmt.Sprintf("acquiring sandbox %s: deadline passed before it was looked at", e.Claim)
}

// Unwrap makes the error a deadline's.
func (e *NotReadyError) Unwrap() []error { return []error{context.DeadlineExceeded, e.Last} }

// UnreachableError says that a bound sandbox's port accepted no connection in time.
type UnreachableError struct {
	// Sandbox is the sandbox, to be released or acquired again.
	Sandbox *Sandbox
	// Address is what was dialled.
	Address string
	// Err is the last dial's error.
	Err error
}

// Error names the address.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("sandbox %s is bound, and %s accepts no connection: %v", e.Sandbox.Name, e.Address, e.Err)
}

// Unwrap gives the last dial's error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Acquire finds or creates the sandbox that spec describes and returns when it can be used. It gives the server's own
// error where that refuses (see v1alpha1's Is functions), a NotReadyError when the deadline passes, an UnreachableError
// when a port stays shut, and ctx's error when ctx ends. spec.WaitSeconds is the client's to set.
func (c *Client) Acquire(ctx context.Context, spec v1alpha1.SandboxAcquireSpec) (*Sandbox, error) {
	deadline := c.Clock.Now().Add(c.Deadline)
	retry := backoff()
	last := &NotReadyError{}
	created := false
	for {
		left := deadline.Sub(c.Clock.Now())
		if left <= 0 {
			return nil, last
		}
		answer, err := c.piece(ctx, spec, left)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var pause time.Duration
		switch {
		case err == nil && answer.Status.Phase == v1alpha1.PhaseBound:
			sandbox := &Sandbox{
				Namespace: c.namespace, Name: answer.Status.ClaimName, UID: answer.Status.ClaimUID,
				Addresses: answer.Status.Addresses, Created: created || answer.Status.Created, client: c,
			}
			if err := c.reachable(ctx, sandbox); err != nil {
				return nil, err
			}
			return sandbox, nil
		case err == nil:
			s := answer.Status
			created = created || s.Created
			last = &NotReadyError{Claim: s.ClaimName, Phase: s.Phase, Reason: s.Reason, Message: s.Message}
			retry, pause = backoff(), time.Duration(s.RetryAfterSeconds)*time.Second
		case passing(err):
			klog.FromContext(ctx).V(2).Info("Acquire failed; asking again", "err", err)
			last = &NotReadyError{Claim: last.Claim, Last: err}
			pause = retry.Step()
			if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
				pause = max(pause, time.Duration(seconds)*time.Second)
			}
		default:
			return nil, err
		}
		if err := c.sleep(ctx, min(pause, deadline.Sub(c.Clock.Now()))); err != nil {
			return nil, err
		}
	}
}

// piece asks once, to wait for what is left, as far as one call may wait.
func (c *Client) piece(ctx context.Context, spec v1alpha1.SandboxAcquireSpec, left time.Duration) (*v1alpha1.SandboxAcquire, error) {
	// Rounded up: to the server, 0 is a caller who does not wait, and whose claim it never withdraws.
	long := min((left + time.Second - 1).Truncate(time.Second), v1alpha1.MaxWaitSeconds*time.Second)
	spec.WaitSeconds = ptr.To(int32(long / time.Second))
	ctx, cancel := context.WithTimeout(ctx, long+c.callSlack)
	defer cancel()
	return c.claims.Acquire(ctx, v1alpha1.AnyClaim, &v1alpha1.SandboxAcquire{Spec: spec}, metav1.CreateOptions{})
}

func backoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 5 * time.Second}
}

// passing tells what may pass (a server or an aggregator that restarts, a full one, a broken connection) from a refusal.
func passing(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return true // the way to the server failed, not the server
	}
	switch {
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.IsServerTimeout(err),
		apierrors.IsTimeout(err), apierrors.IsInternalError(err), apierrors.IsUnexpectedServerError(err):
		return true
	}
	// While the group is not served, the aggregator knows no such resource; a claim that is not found is named.
	return status.Status().Code >= 500 || apierrors.IsNotFound(err) && (status.Status().Details == nil || status.Status().Details.Name == "" || apierrors.IsUnexpectedServerError(err))
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-c.Clock.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reachable waits until every port accepts a connection: a Service is routed a moment after its claim is bound.
func (c *Client) reachable(ctx context.Context, s *Sandbox) error {
	if c.DialTimeout <= 0 {
		return nil
	}
	deadline := c.Clock.Now().Add(c.DialTimeout)
	for _, address := range s.Addresses {
		retry := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Steps: 10, Cap: 500 * time.Millisecond}
		for {
			conn, err := c.Dialer.DialContext(ctx, "tcp", address)
			if err == nil {
				_ = conn.Close()
				break
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !c.Clock.Now().Before(deadline) {
				return &UnreachableError{Sandbox: s, Address: address, Err: err}
			}
			if err := c.sleep(ctx, retry.Step()); err != nil {
				return err
			}
		}
	}
	return nil
}
