package main

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class := "hostpath"
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "42"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
	}
	if change != nil {
		change(c)
	}
	return c
}

func TestWantsVolume(t *testing.T) {
	other, block := "other", corev1.PersistentVolumeBlock
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"pending claim of the class": {claim(nil), true},
		"another class":              {claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &other }), false},
		"no class":                   {claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }), false},
		"has a volume":               {claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }), false},
		"block volume":               {claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wantsVolume(c.claim, "hostpath"); got != c.want {
				t.Errorf("wantsVolume = %v", got)
			}
		})
	}
}

// newProvisioner is one whose listers have the given objects.
func newProvisioner(t *testing.T, objects ...runtime.Object) *provisioner {
	t.Helper()
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	p := &provisioner{
		client: client, claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(),
		class: "hostpath", dir: t.TempDir(),
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	return p
}

func TestProvision_FolderIsOpenToEveryUser(t *testing.T) {
	p := newProvisioner(t, claim(nil))
	for range 2 { // The second time finds the volume made already.
		if err := p.provision(t.Context(), item{"ns", "data"}); err != nil {
			t.Fatal(err)
		}
	}
	volume, err := p.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-42", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(volume.Spec.HostPath.Path)
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("folder: %v, %v", info, err)
	}
}

func TestRemove_OnlyReleasedVolumesOfOurs(t *testing.T) {
	for name, c := range map[string]struct {
		phase   corev1.PersistentVolumePhase
		by      string
		removed bool
	}{
		"released":        {corev1.VolumeReleased, provisionerName, true},
		"still bound":     {corev1.VolumeBound, provisionerName, false},
		"somebody else's": {corev1.VolumeReleased, "other", false},
	} {
		t.Run(name, func(t *testing.T) {
			volume := buildVolume(claim(nil), "/")
			volume.Annotations[provisionedBy], volume.Status.Phase = c.by, c.phase
			p := newProvisioner(t, volume)
			folder := filepath.Join(p.dir, volume.Name)
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := p.remove(t.Context(), item{name: volume.Name}); err != nil {
				t.Fatal(err)
			}
			_, err := p.client.CoreV1().PersistentVolumes().Get(t.Context(), volume.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) != c.removed {
				t.Errorf("volume: %v", err)
			}
			if _, err := os.Stat(folder); os.IsNotExist(err) != c.removed {
				t.Errorf("folder: %v", err)
			}
		})
	}
}
