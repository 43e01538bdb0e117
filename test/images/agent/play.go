package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/altairalabs/omnia-sandboxes/pkg/client"
)

// releaseTimeout is how long the release of a play that failed, or was ended, may take.
const releaseTimeout = 10 * time.Second

// player plays the request to its end and tells of each step.
type player struct {
	*request
	out io.Writer
}

func play(ctx context.Context, args []string) error {
	r, err := parse("play", args)
	if err != nil {
		return err
	}
	c, err := r.client()
	if err != nil {
		return err
	}
	return (&player{request: r, out: os.Stdout}).play(ctx, c)
}

func (p *player) play(ctx context.Context, c *client.Client) error {
	var sandbox *client.Sandbox
	err := p.tell(fmt.Sprintf("acquire %s for session %s", p.spec.Handle, p.spec.SessionID), func() (string, error) {
		var err error
		if sandbox, err = c.Acquire(ctx, p.spec); err != nil {
			return "", err
		}
		return fmt.Sprintf("sandbox %s at %s (created: %t)", sandbox.Name, sandbox.Addresses[p.port], sandbox.Created), nil
	})
	if err != nil {
		return err
	}
	err = p.use(ctx, sandbox)
	if !p.release {
		return err
	}
	// Also after a step that failed, and after a signal: the sandbox is this play's own, and nobody else releases it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	return errors.Join(err, p.tell("release", func() (string, error) { return "the conversation has ended", sandbox.Release(ctx) }))
}

// use calls the sandbox's tools and touches it.
func (p *player) use(ctx context.Context, sandbox *client.Sandbox) error {
	if err := p.useTools(ctx, sandbox.Addresses[p.port]); err != nil {
		return err
	}
	return p.tell("touch", func() (string, error) { return "the sandbox is in use", sandbox.Touch(ctx) })
}

func (p *player) useTools(ctx context.Context, address string) error {
	if address == "" {
		return fmt.Errorf("the sandbox has no port named %s", p.port)
	}
	var session *mcp.ClientSession
	err := p.tell("connect by MCP", func() (string, error) {
		var err error
		session, err = connect(ctx, address)
		return "connected", err
	})
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	for _, line := range []string{"id", "echo hello from the sandbox > hello.txt", "cat hello.txt"} {
		if err := p.tell("shell: "+line, func() (string, error) { return shell(ctx, session, line) }); err != nil {
			return err
		}
	}
	if p.dial == "" {
		return nil
	}
	return p.tell("shell: dial "+p.dial, func() (string, error) {
		answer, err := shell(ctx, session, "dial "+p.dial)
		if err == nil && strings.HasPrefix(answer, "connected") {
			return "", fmt.Errorf("the sandbox reached %s: nothing stopped it", p.dial)
		}
		return answer, err
	})
}

// tell does one step and prints what was asked, what came back, and how long it took.
func (p *player) tell(asked string, do func() (string, error)) error {
	began := time.Now()
	answer, err := do()
	took := time.Since(began).Round(100 * time.Microsecond)
	if err != nil {
		answer = "failed: " + err.Error()
		err = fmt.Errorf("%s: %w", asked, err)
	}
	fmt.Fprintf(p.out, "  %-58s %10s\n      -> %s\n", asked, took, strings.TrimSpace(answer))
	return err
}
