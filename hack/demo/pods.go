package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	namespace   = "agents-demo"
	runtimeName = "demo-agent"
	facade      = runtimeName + "-facade"

	demoLabel  = "sandbox.omnia/demo"
	podTimeout = 4 * time.Minute
)

// agentLabels are those of the runtime's pods, and the demo's own.
func agentLabels() map[string]string {
	labels := framework.AgentLabels(runtimeName)
	labels[demoLabel] = "agent"
	return labels
}

// strangerLabels are those of a pod that is no agent's.
func strangerLabels() map[string]string { return map[string]string{demoLabel: "stranger"} }

// pod runs the agent's image once.
func pod(name, serviceAccount string, labels map[string]string, args ...string) *corev1.Pod {
	return framework.AgentPod(namespace, name, serviceAccount, labels, args...)
}

// runPod runs a pod to its end, handing on each line of its log, and removes it. The exit code is the container's.
func runPod(ctx context.Context, c *framework.Cluster, p *corev1.Pod, line func(string)) (exitCode int32, err error) {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	pods := c.Kube.CoreV1().Pods(p.Namespace)
	if err := removePod(ctx, c, p.Name); err != nil {
		return 0, err
	}
	if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("making pod %s: %w", p.Name, err)
	}
	defer func() { err = errors.Join(err, removePod(context.WithoutCancel(ctx), c, p.Name)) }()
	if _, err := awaitPod(ctx, c, p.Name, func(status corev1.PodStatus) bool { return status.Phase != corev1.PodPending }); err != nil {
		return 0, err
	}
	if err := follow(ctx, c, p.Name, line); err != nil {
		return 0, err
	}
	ended, err := awaitPod(ctx, c, p.Name, func(status corev1.PodStatus) bool {
		return len(status.ContainerStatuses) == 1 && status.ContainerStatuses[0].State.Terminated != nil
	})
	if err != nil {
		return 0, err
	}
	return ended.ContainerStatuses[0].State.Terminated.ExitCode, nil
}

// startPod starts a pod that runs until it is removed.
func startPod(ctx context.Context, c *framework.Cluster, p *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	if err := removePod(ctx, c, p.Name); err != nil {
		return err
	}
	if _, err := c.Kube.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making pod %s: %w", p.Name, err)
	}
	_, err := awaitPod(ctx, c, p.Name, func(status corev1.PodStatus) bool { return status.Phase == corev1.PodRunning })
	return err
}

func awaitPod(ctx context.Context, c *framework.Cluster, name string, wanted func(corev1.PodStatus) bool) (corev1.PodStatus, error) {
	var last corev1.PodStatus
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		p, err := c.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = p.Status
		return wanted(p.Status), nil
	})
	if err != nil {
		return last, fmt.Errorf("waiting for pod %s: %w; its status:\n%s", name, err, framework.Show(last))
	}
	return last, nil
}

// follow hands on a pod's log while it is written.
func follow(ctx context.Context, c *framework.Cluster, name string, line func(string)) error {
	stream, err := c.Kube.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("reading the log of pod %s: %w", name, err)
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		line(lines.Text())
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the log of pod %s: %w", name, err)
	}
	return nil
}

func removePod(ctx context.Context, c *framework.Cluster, name string) error {
	pods := c.Kube.CoreV1().Pods(namespace)
	if err := pods.Delete(ctx, name, atOnce()); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("removing pod %s: %w", name, err)
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// atOnce deletes without waiting for a container that may not listen.
func atOnce() metav1.DeleteOptions { return metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)} }
