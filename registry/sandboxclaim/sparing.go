package sandboxclaim

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
	"github.com/altairalabs/omnia-sandboxes/pkg/interned"
)

// remembered is how many values that claims have in common are remembered: some for each class and AgentRuntime.
const remembered = 4096

// sparing has claims that are read from etcd share what they have in common, above all the copy of their class, and which
// fields their writers own. The watch cache holds each claim whole, and for a while each state that it was in. Nobody
// changes what a stored object points to, since all who read it from that cache have the same.
type sparing struct {
	generic.RESTOptionsGetter
	pool *interned.Pool
}

// GetRESTOptions gives the options, with a codec that shares.
func (s sparing) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := s.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	config := *options.StorageConfig
	config.Codec = sparingCodec{config.Codec, s.pool}
	options.StorageConfig = &config
	return options, nil
}

type sparingCodec struct {
	runtime.Codec
	pool *interned.Pool
}

// Decode decodes, and shares.
func (c sparingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if claim, ok := object.(*sandbox.SandboxClaim); ok && err == nil {
		c.share(claim)
	}
	return object, kind, err
}

// share has the claim hold what it has in common with others as they hold it.
func (c sparingCodec) share(claim *sandbox.SandboxClaim) {
	text := c.pool.Text
	claim.Namespace, claim.Labels = text(claim.Namespace), c.pool.Keys(claim.Labels)
	for i := range claim.OwnerReferences {
		owner := &claim.OwnerReferences[i]
		owner.APIVersion, owner.Kind, owner.Name = text(owner.APIVersion), text(owner.Kind), text(owner.Name)
	}
	for i := range claim.ManagedFields {
		entry := &claim.ManagedFields[i]
		entry.Manager, entry.APIVersion, entry.Subresource = text(entry.Manager), text(entry.APIVersion), text(entry.Subresource)
		entry.Operation, entry.FieldsType = metav1.ManagedFieldsOperationType(text(string(entry.Operation))), text(entry.FieldsType)
		if entry.FieldsV1 != nil {
			*entry.FieldsV1 = interned.Of(c.pool, *entry.FieldsV1)
		}
	}
	claim.Status.Class = interned.Of(c.pool, claim.Status.Class)
	c.pool.Conditions(claim.Status.Conditions)
}
