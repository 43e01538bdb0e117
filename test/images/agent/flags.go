package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

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
