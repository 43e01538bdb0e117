package apiserver

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/install"
)

var (
	// Scheme knows the kinds that the server serves.
	Scheme = runtime.NewScheme()
	// Codecs reads and writes them.
	Codecs = serializer.NewCodecFactory(Scheme)
)

func init() {
	install.Install(Scheme)
	// The generic server reads its own options and writes its own answers in the unversioned v1.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(Scheme, unversioned)
	Scheme.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
}

// withoutProtobuf offers the media types that the group's types can really be written in. To offer protobuf without
// having it makes the namespace controller ask for it, be refused, and hold up the deletion of every namespace.
type withoutProtobuf struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes leaves protobuf out.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}
