package store

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// ConfigMapName is the ConfigMap that remembers the store.
	ConfigMapName = "sandbox-apiserver-store"

	markKey   = "mark"
	component = "sandbox-apiserver"
)

// inHost is a mark as the host cluster holds it. Without one, both are nil.
type inHost struct {
	mark   *Mark
	object *corev1.ConfigMap
}

// hostMark reads and writes the mark in the host cluster, and tells events of it there.
type hostMark struct {
	client    kubernetes.Interface
	namespace string
	clock     clock.Clock
}

func (h *hostMark) name() string { return h.namespace + "/" + ConfigMapName }

func (h *hostMark) read(ctx context.Context) (inHost, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := h.client.CoreV1().ConfigMaps(h.namespace).Get(ctx, ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return inHost{}, nil
	}
	if err != nil {
		failed("host")
		return inHost{}, fmt.Errorf("reading ConfigMap %s of the store: %w", h.name(), err)
	}
	mark, err := decode([]byte(object.Data[markKey]))
	if err != nil {
		return inHost{}, fmt.Errorf("reading ConfigMap %s of the store: data.%s: %w (put back what stood there; or delete the ConfigMap, if etcd surely holds the right store, and it is made again)", h.name(), markKey, err)
	}
	return inHost{mark: &mark, object: object}, nil
}

// write puts a mark in the place of the one that was read. It says whether that still stood there.
func (h *hostMark) write(ctx context.Context, before inHost, mark Mark) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	configMaps := h.client.CoreV1().ConfigMaps(h.namespace)
	data := map[string]string{markKey: encode(mark)}
	var err error
	if before.object == nil {
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name:        ConfigMapName,
				Labels:      map[string]string{"app.kubernetes.io/part-of": "omnia-sandboxes"},
				Annotations: map[string]string{"kubernetes.io/description": "Which store the sandbox server serves. Where etcd holds another, an older or none, the server does not serve."},
			},
			Data: data,
		}, metav1.CreateOptions{FieldManager: component})
	} else {
		object := before.object.DeepCopy() // with its resourceVersion: a write since then is a conflict
		object.Data = data
		_, err = configMaps.Update(ctx, object, metav1.UpdateOptions{FieldManager: component})
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), before.object != nil && apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		failed("host")
		return false, fmt.Errorf("writing ConfigMap %s of the store: %w", h.name(), err)
	}
	return true, nil
}

// tell writes an Event beside the ConfigMap, before it returns: the process may be about to end. Where that fails, the log
// has the same words.
func (h *hostMark) tell(ctx context.Context, kind string, reason Reason, message string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: h.namespace, Name: ConfigMapName}
	// kubectl describe finds an Event by the UID as well.
	if object, err := h.client.CoreV1().ConfigMaps(h.namespace).Get(ctx, ConfigMapName, metav1.GetOptions{}); err == nil {
		about.UID, about.ResourceVersion = object.UID, object.ResourceVersion
	}
	now := metav1.NewTime(h.clock.Now())
	_, err := h.client.CoreV1().Events(h.namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: ConfigMapName + "."},
		InvolvedObject: about,
		Type:           kind, Reason: string(reason), Message: message,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Telling an Event of the store", "reason", reason)
	}
}
