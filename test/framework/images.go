package framework

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/hack/image"
)

// Object is any Kubernetes object.
type Object = client.Object

// sampleImages are the images of this repository's sample programs, by the folder that they are built from.
var sampleImages = []struct{ folder, reference string }{
	{"./test/images/sandbox", SandboxImage},
	{"./test/images/agent", AgentImage},
}

// LoadSampleImages builds the sample sandbox and the sample agent and loads both on the real node.
func (c *Cluster) LoadSampleImages(ctx context.Context) error {
	args := []string{"run", "./hack/cluster", "load"}
	for _, sample := range sampleImages {
		tarball := filepath.Join(c.Info.Dir, "images", filepath.Base(sample.folder)+".tar")
		if err := image.WritePackage(ctx, c.Root, sample.folder, tarball, image.Spec{Reference: sample.reference}); err != nil {
			return fmt.Errorf("building image %s: %w", sample.reference, err)
		}
		args = append(args, tarball)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = c.Root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("loading the sample images: %w\n%s", err, output)
	}
	return nil
}
