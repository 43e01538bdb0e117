package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	// connected is what both `dial`s print when a connection came about.
	connected = "connected to "
	// agentPod and strangerPod sleep; connections are tried from within them.
	agentPod    = "an-agent"
	strangerPod = "a-stranger"
	// policyLag is how long a network plugin may take to know a new pod.
	policyLag = 15 * time.Second
)

// attempt is a connection that somebody tries.
type attempt struct {
	asked   string
	from    string // the pod in which command runs
	command []string
	reaches bool
	says    string // what the answer begins with
}

// shutIn shows that the sandbox's NetworkPolicy holds in both directions, each beside a connection that is allowed: a
// refusal alone could as well be a network that does not work.
func shutIn(ctx context.Context, s *story, c *framework.Cluster) (err error) {
	answer, err := acquire(ctx, c, c.Info.Kubeconfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clearStage(context.WithoutCancel(ctx), c)) }()
	outside, err := setStage(ctx, s, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, outside.Close()) }()
	attempts, err := attemptsAt(answer.Addresses["mcp"], outside.Address)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		if err := s.ask(a.asked, func() (string, error) { return a.try(ctx, c) }); err != nil {
			return err
		}
	}
	return nil
}

// setStage makes the outside and two pods that run until they are told what to do.
func setStage(ctx context.Context, s *story, c *framework.Cluster) (*framework.Outside, error) {
	var outside *framework.Outside
	err := s.ask("a network namespace with a server, in the internet's place; an agent's pod; a stranger's pod", func() (string, error) {
		if err := startPod(ctx, c, pod(agentPod, facade, agentLabels(), "sleep")); err != nil {
			return "", err
		}
		if err := startPod(ctx, c, pod(strangerPod, "stranger", strangerLabels(), "sleep")); err != nil {
			return "", err
		}
		var err error
		if outside, err = c.OpenOutside(ctx); err != nil {
			return "", err
		}
		return "the server answers on " + outside.Address + ", the pods run", nil
	})
	return outside, err
}

func clearStage(ctx context.Context, c *framework.Cluster) error {
	return errors.Join(removePod(ctx, c, agentPod), removePod(ctx, c, strangerPod))
}

// attemptsAt are the connections to and from a sandbox. The allowed one comes first: once it came about, the policy is
// enforced, and a refusal afterwards is its doing.
func attemptsAt(sandbox, outside string) ([]attempt, error) {
	dial, err := json.Marshal(map[string]string{"command": "dial " + outside})
	if err != nil {
		return nil, err
	}
	tool := []string{"call", "-address", sandbox, "-tool", "shell", "-args", string(dial)}
	return []attempt{
		{asked: "agent's pod -> its sandbox: dial " + sandbox, from: agentPod, command: []string{"dial", sandbox}, reaches: true, says: connected},
		{asked: "stranger's pod -> the sandbox: dial " + sandbox, from: strangerPod, command: []string{"dial", sandbox}, says: "agent: dial"},
		{asked: "agent's pod -> outside: dial " + outside, from: agentPod, command: []string{"dial", outside}, reaches: true, says: connected},
		{asked: "sandbox -> outside, by its shell tool: dial " + outside, from: agentPod, command: tool, says: "dial: dial"},
	}, nil
}

// try runs the command in its pod, and errs unless the connection came about or was stopped as it should.
func (a attempt) try(ctx context.Context, c *framework.Cluster) (string, error) {
	args := append([]string{"exec", "--namespace", namespace, a.from, "--", "/agent"}, a.command...)
	for deadline := time.Now().Add(policyLag); ; time.Sleep(200 * time.Millisecond) {
		said, err := c.Kubectl(ctx, args...)
		if err != nil {
			_, said, _ = strings.Cut(err.Error(), "\n")
		}
		said, _, _ = strings.Cut(said, "\n")
		reached := strings.HasPrefix(said, connected)
		switch {
		case reached && !a.reaches:
			return "", fmt.Errorf("%s: nothing stopped it (does kube-router run? see `go run ./hack/cluster status`)", said)
		case strings.HasPrefix(said, a.says) && reached == a.reaches:
			return said, nil
		case ctx.Err() != nil || time.Now().After(deadline):
			return "", fmt.Errorf("expected an answer that begins with %q, got: %s", a.says, said)
		}
	}
}
