package chaos

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// leaseLasts is how long the leader's Lease outlives its last renewal.
const leaseLasts = 15 * time.Second

// fault is one thing that breaks, and is healed.
type fault struct {
	name string
	// short says that it takes seconds and belongs into the short form.
	short bool
	// inject breaks something and gives what heals it. A notPlayed error says why it could not.
	inject func(context.Context) (heal, error)
	// lasts is how long it stays broken before it is healed.
	lasts time.Duration
	// promised is for how long acquire may be refused at most; 0 promises nothing.
	promised time.Duration
	// sparesPods says that no sandbox may lose its pod by it.
	sparesPods bool
	// onRealNode says that the new sandbox after it is one whose container is started, since that is what is broken.
	onRealNode bool
}

type heal func(context.Context) error

func healsItself(context.Context) error { return nil }

// notPlayed is why a fault could not be injected on this machine.
type notPlayed string

func (n notPlayed) Error() string { return string(n) }

// threeServers are the faults of three servers as pods on an etcd of three members.
func threeServers(i *installed) []fault {
	return []fault{
		{name: "none", short: true, lasts: undisturbed, sparesPods: true, inject: func(context.Context) (heal, error) { return healsItself, nil }},
		{name: "kill -9 of the leader", short: true, promised: 5 * time.Second, sparesPods: true, inject: i.killServer(leads)},
		{name: "kill -9 of a follower", short: true, promised: time.Second, sparesPods: true, inject: i.killServer(follows)},
		{name: "kill -9 of etcd's leading member", short: true, lasts: 3 * time.Second, sparesPods: true, inject: i.killMember},
		{name: "kill -9 of kube-controller-manager", short: true, lasts: time.Second, sparesPods: true, inject: i.killComponent("kube-controller-manager")},
		{name: "the APIService deleted and restored", short: true, lasts: 3 * time.Second, sparesPods: true, inject: i.deleteAPIService},
		{name: "kill -9 of kube-apiserver", sparesPods: true, inject: i.killComponent("kube-apiserver")},
		{name: "SIGSTOP of the leader for twice its lease", lasts: 2 * leaseLasts, sparesPods: true, inject: i.stopServer},
		{name: "containerd killed and started", lasts: 3 * time.Second, sparesPods: true, onRealNode: true, inject: i.killComponent("containerd")},
		{name: "kubelet killed and started", lasts: 3 * time.Second, sparesPods: true, onRealNode: true, inject: i.killComponent("kubelet")},
		{name: "the servers' pods evicted", sparesPods: true, inject: i.evict},
		{name: "etcd's disk slow (each sync 0.1 s later)", lasts: 20 * time.Second, sparesPods: true, inject: i.slowDisk},
		{name: "the host's API gone for a minute", lasts: time.Minute, sparesPods: true, inject: i.killComponent("kube-apiserver")},
	}
}

// embedded are the faults of one server with its own etcd.
func embedded(servers *framework.Servers, w *world) []fault {
	server := servers.List[0]
	return []fault{{
		name: "embedded etcd killed in the middle of writes", short: true, sparesPods: true,
		inject: func(ctx context.Context) (heal, error) {
			return func(ctx context.Context) error { return server.Start(ctx) }, errors.Join(w.write(ctx), server.Kill())
		},
	}}
}

// write waits until something is written.
func (w *world) write(ctx context.Context) error {
	_, moved := w.Now()
	select {
	case <-moved:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killServer ends the server of a pod, whose container then is started again.
func (i *installed) killServer(which func(i *installed, ctx context.Context) (*serverPod, error)) func(context.Context) (heal, error) {
	return func(ctx context.Context) (heal, error) {
		pod, err := which(i, ctx)
		if err != nil {
			return healsItself, err
		}
		return func(ctx context.Context) error { return i.awaitServers(ctx, pod) }, pod.process.Kill()
	}
}

// stopServer has the leader stand still, as a machine does that is put to sleep.
func (i *installed) stopServer(ctx context.Context) (heal, error) {
	pod, err := leads(i, ctx)
	if err != nil {
		return healsItself, err
	}
	return func(ctx context.Context) error {
		if err := pod.process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		return i.awaitServers(ctx, nil)
	}, pod.process.Signal(syscall.SIGSTOP)
}

func (i *installed) killMember(ctx context.Context) (heal, error) {
	member, err := i.members.Leader(ctx)
	if err != nil {
		return healsItself, err
	}
	return member.Start, member.Kill()
}

func (i *installed) killComponent(program string) func(context.Context) (heal, error) {
	return func(ctx context.Context) (heal, error) {
		return func(ctx context.Context) error { return i.StartComponent(ctx, program) }, i.KillComponent(ctx, program)
	}
}

// deleteAPIService has the aggregator forget the group.
func (i *installed) deleteAPIService(ctx context.Context) (heal, error) {
	services := i.Aggregator.ApiregistrationV1().APIServices()
	was, err := services.Get(ctx, framework.APIServiceName, metav1.GetOptions{})
	if err != nil {
		return healsItself, err
	}
	again := was.DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{Name: was.Name, Labels: was.Labels, Annotations: was.Annotations}
	return func(ctx context.Context) error {
		if _, err := services.Create(ctx, again, metav1.CreateOptions{}); err != nil {
			return err
		}
		return i.WaitServed(ctx)
	}, services.Delete(ctx, was.Name, metav1.DeleteOptions{})
}
