package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// storageClass is the default StorageClass, backed by folders on this machine.
const storageClass = "hostpath"

// provisioner makes the volumes. kube-controller-manager has a hostPath provisioner too, but its folders belong to root
// with mode 0750 and lie in /tmp, so that no pod under the restricted Pod Security Standard could write to them.
func (c *cluster) provisioner() component {
	return component{
		name: hostpathProvisioner,
		args: []string{
			"--kubeconfig=" + c.kubeconfig(hostpathProvisioner),
			"--storage-class=" + storageClass,
			"--dir=" + c.state("volumes"),
		},
		ready: func(context.Context) error { return nil }, // A claim waits for it; nobody else does.
	}
}

// installStorage makes the StorageClass. Volumes bind at once: all nodes share this machine's folders.
func installStorage(ctx context.Context, client kubernetes.Interface) error {
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        storageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       "sandbox.omnia/" + storageClass,
		ReclaimPolicy:     &reclaim,
		VolumeBindingMode: &binding,
	}
	_, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making StorageClass %s: %w", storageClass, err)
	}
	return nil
}
