package framework

import (
	"context"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/altairalabs/omnia-sandboxes/hack/image"
)

// Object is any Kubernetes object.
type Object = client.Object

// LoadSampleImages builds the sample sandbox and the sample agent and loads both on the real node.
func (c *Cluster) LoadSampleImages(ctx context.Context) error {
	return c.loadImages(ctx, map[string]image.Spec{
		"./test/images/sandbox": {Reference: SandboxImage},
		"./test/images/agent":   {Reference: AgentImage},
	})
}

// LoadAttackerImage builds the attacker and loads it on the real node, by its own name and others. Its program is setuid,
// so that it is root wherever a process may gain privileges, and AttackerFolder belongs to its user.
func (c *Cluster) LoadAttackerImage(ctx context.Context, aliases ...string) error {
	return c.loadImages(ctx, map[string]image.Spec{
		AttackerPackage: {Reference: AttackerImage, Aliases: aliases, Folders: []string{AttackerFolder}, Setuid: true},
	})
}

// loadImages builds images of main packages of this repository, by the packages' folders, and loads them on the node.
func (c *Cluster) loadImages(ctx context.Context, images map[string]image.Spec) error {
	var tarballs []string
	for folder, spec := range images {
		tarball := filepath.Join(c.Info.Dir, "images", filepath.Base(folder)+".tar")
		if _, err := image.WritePackage(ctx, c.Root, folder, tarball, spec); err != nil {
			return fmt.Errorf("building image %s: %w", spec.Reference, err)
		}
		tarballs = append(tarballs, tarball)
	}
	return c.launcher(ctx, append([]string{"load"}, tarballs...)...)
}
