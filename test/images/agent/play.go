package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/pkg/client"
)

const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// request is what play and acquire are told.
type request struct {
	namespace, kubeconfig string
	spec                  v1alpha1.SandboxAcquireSpec
	port                  string
	dial                  string
	release               bool
}

func parse(name string, args []string) (*request, error) {
	r := &request{}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&r.namespace, "namespace", "", "namespace of the runtime; by default the pod's own")
	flags.StringVar(&r.kubeconfig, "kubeconfig", "", "kubeconfig; by default the pod's own ServiceAccount")
	flags.StringVar(&r.spec.AgentRuntime, "runtime", "demo-agent", "the AgentRuntime that the pod is of")
	flags.StringVar(&r.spec.SessionID, "session", "session-1", "the session that the sandbox is for")
	flags.StringVar(&r.spec.Handle, "handle", "shell/default", "the sandbox's handle")
	flags.StringVar(&r.port, "port", "mcp", "the port that speaks MCP")
	flags.StringVar(&r.dial, "dial", "", "host:port that the sandbox is asked to reach")
	flags.BoolVar(&r.release, "release", true, "release the sandbox at the end")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if r.namespace == "" {
		own, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, fmt.Errorf("finding the pod's namespace (or give -namespace): %w", err)
		}
		r.namespace = strings.TrimSpace(string(own))
	}
	return r, nil
}

func (r *request) client() (*client.Client, error) {
	read := rest.InClusterConfig
	if r.kubeconfig != "" {
		read = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", r.kubeconfig) }
	}
	config, err := read()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	set, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the clientset: %w", err)
	}
	return client.New(set.SandboxV1alpha1(), r.namespace), nil
}

func acquire(ctx context.Context, args []string) error {
	r, err := parse("acquire", args)
	if err != nil {
		return err
	}
	c, err := r.client()
	if err != nil {
		return err
	}
	sandbox, err := c.Acquire(ctx, r.spec)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(sandbox)
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
	var sandbox *client.Sandbox
	err = tell(fmt.Sprintf("acquire %s for session %s", r.spec.Handle, r.spec.SessionID), func() (string, error) {
		if sandbox, err = c.Acquire(ctx, r.spec); err != nil {
			return "", err
		}
		return fmt.Sprintf("sandbox %s at %s (created: %t)", sandbox.Name, sandbox.Addresses[r.port], sandbox.Created), nil
	})
	if err != nil {
		return err
	}
	if err := r.useTools(ctx, sandbox); err != nil {
		return err
	}
	if err := tell("touch", func() (string, error) { return "the sandbox is in use", sandbox.Touch(ctx) }); err != nil {
		return err
	}
	if !r.release {
		return nil
	}
	return tell("release", func() (string, error) { return "the conversation has ended", sandbox.Release(ctx) })
}

func (r *request) useTools(ctx context.Context, sandbox *client.Sandbox) error {
	var session *mcp.ClientSession
	err := tell("connect by MCP", func() (string, error) {
		var err error
		session, err = connect(ctx, sandbox.Addresses[r.port])
		return "connected", err
	})
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	for _, line := range []string{"id", "echo hello from the sandbox > hello.txt", "cat hello.txt"} {
		if err := tell("shell: "+line, func() (string, error) { return shell(ctx, session, line) }); err != nil {
			return err
		}
	}
	if r.dial == "" {
		return nil
	}
	return tell("shell: dial "+r.dial, func() (string, error) {
		answer, err := shell(ctx, session, "dial "+r.dial)
		if err == nil && strings.Contains(answer, "connected") {
			return "", fmt.Errorf("the sandbox reached %s: nothing stopped it", r.dial)
		}
		return answer, err
	})
}

// tell does one step and prints what was asked, what came back, and how long it took.
func tell(asked string, do func() (string, error)) error {
	began := time.Now()
	answer, err := do()
	took := time.Since(began).Round(100 * time.Microsecond)
	if err != nil {
		return fmt.Errorf("%s: %w", asked, err)
	}
	fmt.Printf("  %-58s %10s\n      -> %s\n", asked, took, strings.TrimSpace(answer))
	return nil
}
