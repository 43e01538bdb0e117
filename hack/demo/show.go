package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	acquirePath = "/apis/sandbox.omnia/v1alpha1/namespaces/" + namespace + "/sandboxclaims/-/acquire"
	requestFile = "manifests/samples/request.json"
)

// show tells the whole story.
func show(ctx context.Context, out io.Writer) error {
	s := &story{out: out}
	s.begin("A Kubernetes of this machine's own")
	cluster, err := startCluster(ctx, s)
	if err != nil {
		return err
	}
	for _, chapter := range []struct {
		title string
		tell  func(context.Context, *story, *framework.Cluster) error
	}{
		{"A sandbox image and an agent image", loadImages},
		{"The sandbox server, behind the cluster's aggregator", installServer},
		{"An AgentRuntime that may have sandboxes, and a class of sandbox", applySamples},
		{"An agent's pod gets a sandbox and works in it", playAgent},
		{"The same by hand, twice: one handle is one sandbox", acquireByHand},
		{"What a person sees", look},
		{"Somebody else's ServiceAccount asks for the same sandbox", refuseStranger},
		{"What the sandbox can reach, and who can reach it", shutIn},
	} {
		s.begin(chapter.title)
		if err := chapter.tell(ctx, s, cluster); err != nil {
			return err
		}
	}
	next(s, cluster)
	return s.installation.Leave()
}

// playAgent runs the sample agent as Omnia would: in a pod with the runtime's ServiceAccount and labels.
func playAgent(ctx context.Context, s *story, c *framework.Cluster) error {
	args := []string{"play", "-runtime", runtimeName, "-session", "conversation-1", "-handle", "shell/main"}
	return s.ask("a pod with ServiceAccount "+facade+" runs: agent "+strings.Join(args, " "), func() (string, error) {
		code, err := runPod(ctx, c, pod("demo-agent", facade, agentLabels(), args...), func(line string) { s.say("log", line) })
		if err == nil && code != 0 {
			err = fmt.Errorf("the agent ended with exit code %d", code)
		}
		return "the agent ended well", err
	})
}

func acquireByHand(ctx context.Context, s *story, c *framework.Cluster) error {
	for _, created := range []bool{true, false} {
		err := s.ask("kubectl create --raw "+acquirePath+" -f "+requestFile, func() (string, error) {
			answer, err := acquire(ctx, c, c.Info.Kubeconfig())
			if err != nil {
				return "", err
			}
			if answer.Created != created {
				return "", fmt.Errorf("created is %t: expected %t", answer.Created, created)
			}
			return framework.Show(answer), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// acquire asks by kubectl, again while the answer says that the sandbox is not bound yet.
func acquire(ctx context.Context, c *framework.Cluster, kubeconfig string) (*v1alpha1.SandboxAcquireStatus, error) {
	created := false
	for {
		out, err := c.KubectlAs(ctx, kubeconfig, "create", "--raw", acquirePath, "-f", filepath.Join(c.Root, requestFile))
		if err != nil {
			return nil, err
		}
		var answer v1alpha1.SandboxAcquire
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			return nil, fmt.Errorf("reading the answer %q: %w", out, err)
		}
		created = created || answer.Status.Created
		if answer.Status.Phase == v1alpha1.PhaseBound {
			answer.Status.Created = created
			return &answer.Status, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("the sandbox is %s (%s): %w", answer.Status.Phase, answer.Status.Message, err)
		}
	}
}

func look(ctx context.Context, s *story, c *framework.Cluster) error {
	for _, args := range [][]string{
		{"get", "sbclaim", "--namespace", namespace, "--output", "wide"},
		{"get", "csbc"},
		{"get", "deployments,networkpolicies,services", "--namespace", namespace},
	} {
		if err := s.ask("kubectl "+strings.Join(args, " "), func() (string, error) { return c.Kubectl(ctx, args...) }); err != nil {
			return err
		}
	}
	return nil
}

// refuseStranger asks as a ServiceAccount that RBAC lets through and the server does not.
func refuseStranger(ctx context.Context, s *story, c *framework.Cluster) error {
	const stranger = "stranger"
	return s.ask("the same request, as ServiceAccount "+namespace+"/"+stranger, func() (string, error) {
		kubeconfig := filepath.Join(c.Info.Dir, "run", stranger+".kubeconfig")
		if err := c.WriteKubeconfig(ctx, kubeconfig, namespace, stranger); err != nil {
			return "", err
		}
		_, err := acquire(ctx, c, kubeconfig)
		if err == nil {
			return "", errors.New("the stranger got the sandbox")
		}
		_, said, _ := strings.Cut(err.Error(), "\n")
		if !strings.Contains(said, "Forbidden") {
			return "", err
		}
		return said, nil
	})
}
