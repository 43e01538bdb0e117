// Command hostpath-provisioner gives the local cluster's PersistentVolumeClaims folders of this machine.
//
// Every folder is open to all users, because a container under the restricted Pod Security Standard is not root and
// Kubernetes does not change the owner of a hostPath volume. It refuses block volumes, and it does not hold anybody to
// the size asked for.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

// provisionedBy is the annotation that says whose volume one is, as all provisioners write it.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

const provisionerName = "sandbox.omnia/hostpath"

// provisioner makes a volume for each pending claim of its class, and removes released ones.
type provisioner struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	class   string
	dir     string
	queue   workqueue.TypedRateLimitingInterface[item]
}

// item is a claim, or a volume if it has no namespace.
type item struct{ namespace, name string }

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach kube-apiserver")
	class := flag.String("storage-class", "", "the StorageClass whose claims get volumes")
	dir := flag.String("dir", "", "folder for the volumes")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, *kubeconfig, *class, *dir); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, class, dir string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 10*time.Minute)
	core := factory.Core().V1()
	p := &provisioner{
		client:  client,
		claims:  core.PersistentVolumeClaims().Lister(),
		volumes: core.PersistentVolumes().Lister(),
		class:   class,
		dir:     dir,
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[item]()),
	}
	for _, informer := range []cache.SharedIndexInformer{
		core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    p.enqueue,
			UpdateFunc: func(_, now any) { p.enqueue(now) },
		}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		p.queue.ShutDown()
	}()
	for p.next(ctx) {
	}
	return nil
}

func (p *provisioner) enqueue(obj any) {
	if object, ok := obj.(metav1.Object); ok {
		p.queue.Add(item{object.GetNamespace(), object.GetName()})
	}
}

// next works on one item; false means that the queue was shut down.
func (p *provisioner) next(ctx context.Context) bool {
	it, shutdown := p.queue.Get()
	if shutdown {
		return false
	}
	defer p.queue.Done(it)
	reconcile := p.provision
	if it.namespace == "" {
		reconcile = p.remove
	}
	if err := reconcile(ctx, it); err != nil {
		fmt.Fprintf(os.Stderr, "%s/%s: %v (trying again)\n", it.namespace, it.name, err)
		p.queue.AddRateLimited(it)
		return true
	}
	p.queue.Forget(it)
	return true
}

// provision makes the volume of a claim that waits for one.
func (p *provisioner) provision(ctx context.Context, it item) error {
	claim, err := p.claims.PersistentVolumeClaims(it.namespace).Get(it.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !wantsVolume(claim, p.class) {
		return nil
	}
	volume := buildVolume(claim, p.dir)
	folder := volume.Spec.HostPath.Path
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o777); err != nil { // The umask took something away.
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// wantsVolume tells whether a claim is of the class and has no volume yet.
func wantsVolume(claim *corev1.PersistentVolumeClaim, class string) bool {
	block := claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock
	return claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName == class &&
		claim.Spec.VolumeName == "" && claim.DeletionTimestamp.IsZero() && !block
}

// buildVolume is the volume of a claim, in a folder of its own below dir.
func buildVolume(claim *corev1.PersistentVolumeClaim, dir string) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	kind := corev1.HostPathDirectory
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisionerName}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              *claim.Spec.StorageClassName,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(dir, name), Type: &kind},
			},
		},
	}
}

// remove deletes a volume of ours whose claim is gone, and its folder.
func (p *provisioner) remove(ctx context.Context, it item) error {
	volume, err := p.volumes.Get(it.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !removable(volume) {
		return nil
	}
	// Made from the volume's name, not read from its spec: anyone who may write volumes could put "/" there.
	if err := os.RemoveAll(filepath.Join(p.dir, filepath.Base(volume.Name))); err != nil {
		return err
	}
	err = p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// removable tells whether a volume is ours, nobody's any more and not to be kept.
func removable(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[provisionedBy] == provisionerName &&
		volume.Status.Phase == corev1.VolumeReleased &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		volume.DeletionTimestamp.IsZero()
}
