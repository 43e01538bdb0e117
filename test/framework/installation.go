package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/altairalabs/omnia-sandboxes/hack/image"
	"github.com/altairalabs/omnia-sandboxes/pkg/sandbox"
)

const (
	// ServerImage is the image of the server that the local overlay runs.
	ServerImage = "sandbox.omnia/sandbox-apiserver:dev"
	// LocalOverlay is the installation that the demo makes.
	LocalOverlay = "manifests/overlays/local"
)

// Installation is the server installed as people do it: by an overlay, as pods of the cluster.
type Installation struct {
	cluster *Cluster
	overlay string
	lock    *os.File
}

// InstallOverlay waits for its turn, removes what an earlier installation left, lets prepare make what the overlay asks
// for beside Omnia's CRDs (it may be nil), and installs: the server's image on the node, the overlay applied, its pods
// ready, the group served.
func (c *Cluster) InstallOverlay(ctx context.Context, overlay string, prepare func(context.Context) error) (*Installation, error) {
	return c.installation(ctx, overlay, func() error {
		if err := c.stopInstallation(ctx); err != nil {
			return err
		}
		if _, err := c.Kubectl(ctx, "delete", "namespace", SystemNamespace, "--ignore-not-found"); err != nil {
			return err
		}
		if prepare == nil {
			return nil
		}
		return prepare(ctx)
	})
}

// UpdateOverlay is InstallOverlay over an earlier installation by the same overlay, if there is one: its data stay.
func (c *Cluster) UpdateOverlay(ctx context.Context, overlay string) (*Installation, error) {
	return c.installation(ctx, overlay, func() error {
		earlier, err := c.serverWorkload(ctx)
		if err == nil && earlier == "" {
			err = c.forgetStore(ctx)
		}
		return errors.Join(err, c.clearEndpoints(ctx, madeEndpoints))
	})
}

func (c *Cluster) installation(ctx context.Context, overlay string, before func() error) (*Installation, error) {
	lock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(before(), c.LoadServerImage(ctx)); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := c.applyOverlay(ctx, overlay); err != nil {
		// Announced and not served, the group would hold up everybody else's namespaces.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, c.unregister(ending), lock.Close())
	}
	return &Installation{cluster: c, overlay: overlay, lock: lock}, nil
}

func (c *Cluster) applyOverlay(ctx context.Context, overlay string) error {
	earlier, err := c.serverWorkload(ctx)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, overlay); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	if earlier != "" { // The image's tag stays the same when what it names changes.
		if err := c.rollout(ctx, "restart", earlier); err != nil {
			return err
		}
	}
	workload, err := c.serverWorkload(ctx)
	if err != nil {
		return err
	}
	if err := c.rollout(ctx, "status", workload, "--timeout=180s"); err != nil {
		return err
	}
	return c.WaitServed(ctx)
}

func (c *Cluster) rollout(ctx context.Context, args ...string) error {
	_, err := c.Kubectl(ctx, append([]string{"--namespace", SystemNamespace, "rollout"}, args...)...)
	return err
}

// serverWorkload is the Deployment or StatefulSet that runs the server, as kubectl names it; empty if there is none.
func (c *Cluster) serverWorkload(ctx context.Context) (string, error) {
	out, err := c.Kubectl(ctx, "--namespace", SystemNamespace, "get", "statefulsets,deployments",
		"--selector", "app.kubernetes.io/name="+ServerName, "--output", "name")
	workload, _, _ := strings.Cut(out, "\n")
	return workload, err
}

// Leave lets the installation be and gives others their turn: the next set of servers ends it.
func (i *Installation) Leave() error { return i.lock.Close() }

// Uninstall removes the installation as docs/operations.md says to, and gives others their turn.
func (i *Installation) Uninstall(ctx context.Context) error {
	return errors.Join(i.cluster.uninstall(ctx, i.overlay), i.lock.Close())
}

func (c *Cluster) uninstall(ctx context.Context, overlay string) error {
	for _, step := range [][]string{
		// Nobody acquires any more; then the sandboxes go while there is still somebody who knows whose they are.
		{"delete", "clusterrole", "omnia-sandboxes:acquire", "--ignore-not-found"},
		{"delete", "sandboxclaims.sandbox.omnia", "--all", "--all-namespaces", "--cascade=foreground"},
		// A group that is not served any more holds up the deletion of every namespace, so it goes before its server.
		{"delete", "apiservice", APIServiceName},
		{"delete", "--kustomize", filepath.Join(c.Root, overlay), "--ignore-not-found"},
		// The server itself would have removed these within seconds after the last sandbox.
		{"delete", "networkpolicies", "--all-namespaces", "--field-selector", "metadata.name=" + sandbox.FloorName},
	} {
		if _, err := c.Kubectl(ctx, step...); err != nil {
			return fmt.Errorf("uninstalling: %w", err)
		}
	}
	return nil
}

// StopInstallation waits for its turn, and ends the server that a demo left running, if there is one.
func (c *Cluster) StopInstallation(ctx context.Context) error {
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	return errors.Join(c.stopInstallation(ctx), lock.Close())
}

// stopInstallation ends a server that runs as pods, with its data: APIService first.
func (c *Cluster) stopInstallation(ctx context.Context) error {
	if err := c.unregister(ctx); err != nil {
		return err
	}
	workload, err := c.serverWorkload(ctx)
	if err != nil {
		return err
	}
	if workload == "" {
		return c.forgetStore(ctx)
	}
	for _, args := range [][]string{
		{"delete", "--cascade=foreground", workload},
		{"delete", "persistentvolumeclaims", "--all"},
	} {
		if _, err := c.Kubectl(ctx, append([]string{"--namespace", SystemNamespace}, args...)...); err != nil {
			return fmt.Errorf("ending an earlier installation: %w", err)
		}
	}
	return c.forgetStore(ctx)
}

// LoadServerImage builds the server's image and loads it on the real node.
func (c *Cluster) LoadServerImage(ctx context.Context) error {
	return c.loadImages(ctx, map[string]image.Spec{serverMain: {Reference: ServerImage}})
}
