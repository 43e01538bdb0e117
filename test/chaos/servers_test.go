package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	installTimeout   = 5 * time.Minute
	uninstallTimeout = 4 * time.Minute
	replicas         = 3
	// slowBy is how much later each sync of a slow disk is done.
	slowBy = 100 * time.Millisecond
)

// installed are three servers as pods, by the ha overlay, on an etcd of their own.
type installed struct {
	*framework.Cluster
	members *framework.EtcdCluster
}

func install(t *testing.T, c *framework.Cluster, members *framework.EtcdCluster) *installed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), installTimeout)
	defer cancel()
	require.NoError(t, errors.Join(c.InstallOmnia(ctx), c.LoadSampleImages(ctx)))
	installation, err := c.InstallOverlay(ctx, "test/install/ha", func(ctx context.Context) error { return c.GiveEtcd(ctx, members.Access()) })
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), uninstallTimeout)
		defer cancel()
		if t.Failed() {
			logs, err := c.Kubectl(ctx, "--namespace", framework.SystemNamespace, "logs", "--prefix", "--tail=100", "--selector", selector)
			t.Log(logs, err)
		}
		assert.NoError(t, installation.Uninstall(ctx))
	})
	i := &installed{Cluster: c, members: members}
	require.NoError(t, i.awaitServers(ctx, nil))
	return i
}

const selector = "app.kubernetes.io/name=" + framework.ServerName

// serverPod is a pod of the server, with its process on this machine.
type serverPod struct {
	*corev1.Pod
	process *os.Process
}

func (i *installed) pods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := i.Kube.CoreV1().Pods(framework.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing the servers' pods: %w", err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

// leads and follows find the leader, and one of the others.
func leads(i *installed, ctx context.Context) (*serverPod, error)   { return i.server(ctx, true) }
func follows(i *installed, ctx context.Context) (*serverPod, error) { return i.server(ctx, false) }

func (i *installed) server(ctx context.Context, leader bool) (*serverPod, error) {
	holder, err := i.LeaseHolder(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := i.pods(ctx)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		// Who holds the Lease calls itself by its host's name, which is the pod's, and what is its own.
		if strings.HasPrefix(holder, pod.Name+"_") == leader {
			process, err := framework.ProcessOf(pod.UID, framework.ServerName)
			return &serverPod{Pod: &pod, process: process}, err
		}
	}
	return nil, fmt.Errorf("of %d servers none is found that leads: %t (the Lease is %q's)", len(pods), leader, holder)
}

// awaitServers waits until all replicas serve; where one was ended, until that is known and mended.
func (i *installed) awaitServers(ctx context.Context, ended *serverPod) error {
	last := errors.New("not asked yet")
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, framework.PodTimeout, true, func(ctx context.Context) (bool, error) {
		last = i.serve(ctx, ended)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the servers: %w (%w)", err, last)
	}
	return nil
}

func (i *installed) serve(ctx context.Context, ended *serverPod) error {
	pods, err := i.pods(ctx)
	if err != nil {
		return err
	}
	if len(pods) != replicas {
		return fmt.Errorf("there are %d servers", len(pods))
	}
	for _, pod := range pods {
		if !ready(&pod) {
			return fmt.Errorf("pod %s is not ready", pod.Name)
		}
		if ended != nil && pod.UID == ended.UID && restarts(&pod) == restarts(ended.Pod) {
			return fmt.Errorf("pod %s was not started again", pod.Name)
		}
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func restarts(pod *corev1.Pod) int32 {
	var sum int32
	for _, container := range pod.Status.ContainerStatuses {
		sum += container.RestartCount
	}
	return sum
}

// evict drains one server after the other away, the leader first, as far as their PodDisruptionBudget lets.
func (i *installed) evict(ctx context.Context) (heal, error) {
	first, err := leads(i, ctx)
	if err != nil {
		return healsItself, err
	}
	pods, err := i.pods(ctx)
	if err != nil {
		return healsItself, err
	}
	return func(ctx context.Context) error {
		for _, pod := range pods {
			if pod.UID == first.UID {
				continue
			}
			if err := i.evictOne(ctx, pod.Name); err != nil {
				return err
			}
		}
		return i.awaitServers(ctx, nil)
	}, i.evictOne(ctx, first.Name)
}

func (i *installed) evictOne(ctx context.Context, pod string) error {
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: framework.SystemNamespace, Name: pod}}
	return wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, framework.PodTimeout, true, func(ctx context.Context) (bool, error) {
		err := i.Kube.PolicyV1().Evictions(framework.SystemNamespace).Evict(ctx, eviction)
		if apierrors.IsTooManyRequests(err) || apierrors.IsConflict(err) { // not yet
			return false, nil
		}
		return err == nil, err
	})
}

// slowDisk has each sync of etcd's members take longer, by strace, which holds up the calls that do it.
func (i *installed) slowDisk(ctx context.Context) (heal, error) {
	program, err := exec.LookPath("strace")
	if err != nil {
		return healsItself, notPlayed("strace is not installed: `go run ./hack/cluster up` does, on Debian")
	}
	args := []string{"-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync",
		"-e", fmt.Sprintf("inject=fsync,fdatasync:delay_enter=%d", slowBy.Microseconds())}
	for _, member := range i.members.Members() {
		args = append(args, "-p", fmt.Sprint(member.PID()))
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	told, err := cmd.StderrPipe()
	if err != nil {
		return healsItself, err
	}
	if err := cmd.Start(); err != nil {
		return healsItself, err
	}
	stop := func(context.Context) error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return fmt.Errorf("strace ended early: %w", err)
		}
		_ = cmd.Wait() // It ends by the signal, which is no failure.
		return nil
	}
	attached, lines := 0, bufio.NewScanner(told)
	var said []string
	for attached < len(i.members.Members()) && lines.Scan() {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "attached") {
			attached++
		}
	}
	if attached < len(i.members.Members()) {
		_ = cmd.Wait()
		return healsItself, notPlayed("strace cannot attach to etcd: " + strings.Join(said, "; "))
	}
	go func() { // Whatever else it says would fill the pipe.
		for lines.Scan() {
		}
	}()
	return stop, nil
}
