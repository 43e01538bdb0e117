package client

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// NotReadyError says that the deadline, the client's or ctx's, passed before the sandbox was bound. It unwraps to
// context.DeadlineExceeded.
type NotReadyError struct {
	// Claim is the claim's name; empty if the server never answered.
	Claim string
	// Phase, Reason and Message are the claim's when last heard of.
	Phase           v1alpha1.Phase
	Reason, Message string
	// Last is the last error of the server or of the way to it, if that was the last that was heard.
	Last error
	// Waited is how long Acquire waited in all.
	Waited time.Duration
}

// Error quotes the last that was heard.
func (e *NotReadyError) Error() string {
	var said strings.Builder
	said.WriteString("acquiring a sandbox: deadline passed after " + e.Waited.Round(time.Millisecond).String())
	if e.Claim != "" {
		fmt.Fprintf(&said, "; claim %s is %s", e.Claim, e.Phase)
		if e.Reason != "" {
			fmt.Fprintf(&said, " (%s): %s", e.Reason, e.Message)
		}
	}
	if e.Last != nil {
		fmt.Fprintf(&said, "; the last call failed: %v", e.Last)
	}
	return said.String()
}

// Unwrap makes the error a deadline's, and the last call's.
func (e *NotReadyError) Unwrap() []error {
	if e.Last == nil {
		return []error{context.DeadlineExceeded}
	}
	return []error{context.DeadlineExceeded, e.Last}
}

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

// GoneError says that the sandbox is no more: released, reaped, failed, or another one by now. Acquire again.
type GoneError struct {
	// Claim is the claim's name.
	Claim string
	// Err is the server's answer.
	Err error
}

// Error names the claim and quotes the server.
func (e *GoneError) Error() string { return fmt.Sprintf("sandbox %s is gone: %v", e.Claim, e.Err) }

// Unwrap gives the server's answer.
func (e *GoneError) Unwrap() error { return e.Err }
