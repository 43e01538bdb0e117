package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

const (
	// containerdNamespace is the one whose images the kubelet sees.
	containerdNamespace = "k8s.io"
	// podNetwork is the CNI network's name. The plugins name their records after it.
	podNetwork = "omnia-pods"
	// otherHandler is the second runtime handler that a RuntimeClass may name.
	otherHandler = "runc-other"
)

// otherRuncRoot is where the containers of otherHandler are recorded.
func otherRuncRoot() string { return filepath.Join(machineDir, otherHandler) }

// containerd runs the containers, through Debian's runc. What has short-lived state or a socket lies in machineDir.
func (c *cluster) containerd() (component, error) {
	config, err := render("containerd.toml", map[string]string{
		"Root":          c.state("containerd"),
		"State":         filepath.Join(machineDir, "containerd"),
		"Socket":        containerdSocket(),
		"ShimSockets":   filepath.Join(machineDir, "s"),
		"RuncRoot":      filepath.Join(machineDir, "runc"),
		"OtherHandler":  otherHandler,
		"OtherRuncRoot": otherRuncRoot(),
		"Shim":          c.bin("containerd-shim-runc-v2"),
		"CNI":           c.config("cni"),
		"PauseImage":    pauseImage,
	})
	if err != nil {
		return component{}, err
	}
	if err := os.WriteFile(c.config("containerd.toml"), config, 0o644); err != nil {
		return component{}, err
	}
	return component{
		name: "containerd",
		args: []string{"--config=" + c.config("containerd.toml")},
		ready: func(ctx context.Context) error {
			conn, err := new(net.Dialer).DialContext(ctx, "unix", containerdSocket())
			if err != nil {
				return err
			}
			return conn.Close()
		},
	}, nil
}

// writePodNetwork tells containerd how pods get their addresses: a bridge, masqueraded towards everything else.
func (c *cluster) writePodNetwork() error {
	config, err := render("cni.conflist", map[string]string{
		"Network": podNetwork,
		"Bridge":  bridge,
		"DataDir": c.state("cni"),
		"PodCIDR": podCIDR,
		"Gateway": podGateway,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(c.config("cni/10-pods.conflist"), config, 0o644)
}

// importImage puts an image tarball where the kubelet finds it.
func importImage(l layout, tarball string) error {
	err := runCommand(l.bin("ctr"), "--address", containerdSocket(), "--namespace", containerdNamespace,
		"images", "import", "--local", tarball)
	if err != nil {
		return fmt.Errorf("importing %s: %w", tarball, err)
	}
	return nil
}
