package neighbours

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
)

// tellMissing says plainly, once, what of the neighbours' kinds the host cluster does not know. Without spec.sandbox in
// its CRD an AgentRuntime loses that field when it is written, and every sandbox is refused as disabled.
func (r *Reader) tellMissing(ctx context.Context) {
	log := klog.FromContext(ctx)
	client, err := discovery.NewDiscoveryClientForConfig(r.host.GetConfig())
	if err != nil {
		log.Error(err, "Asking the host cluster for the neighbours' kinds")
		return
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		log.Error(err, "Asking the host cluster for the neighbours' kinds")
		return
	}
	group, found := paths["apis/"+omniav1alpha1.SchemeGroupVersion.String()]
	if !found {
		log.Info("The host cluster has no Omnia CRDs: install Omnia, or apply manifests/omnia-crds. Until then nothing can be acquired", "group", omniav1alpha1.GroupName)
		return
	}
	document, err := group.Schema(runtime.ContentTypeJSON)
	if err != nil {
		log.Error(err, "Reading the neighbours' schema")
		return
	}
	known, err := knowsSandbox(document)
	switch {
	case err != nil:
		log.Error(err, "Reading the neighbours' schema")
	case !known:
		log.Info("The host cluster's AgentRuntime CRD does not know spec.sandbox, and drops it when a runtime is written: update Omnia to a version that has it", "group", omniav1alpha1.GroupName)
	}
}

// schema is as much of an OpenAPI schema as is looked at.
type schema struct {
	Properties       map[string]schema `json:"properties"`
	PreservesUnknown bool              `json:"x-kubernetes-preserve-unknown-fields"`
	Kinds            []struct {
		Kind string `json:"kind"`
	} `json:"x-kubernetes-group-version-kind"`
}

// knowsSandbox says whether the AgentRuntime of an OpenAPI v3 document has a spec.sandbox, or keeps what it does not know.
func knowsSandbox(document []byte) (bool, error) {
	var parsed struct {
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return false, fmt.Errorf("parsing OpenAPI: %w", err)
	}
	for _, s := range parsed.Components.Schemas {
		if len(s.Kinds) == 1 && s.Kinds[0].Kind == "AgentRuntime" {
			spec := s.Properties["spec"]
			_, named := spec.Properties["sandbox"]
			return named || spec.PreservesUnknown, nil
		}
	}
	return false, nil
}
