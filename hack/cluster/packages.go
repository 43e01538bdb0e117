package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// debianPackages maps each package the cluster needs to a file that shows it is installed. A pattern, since Debian moves
// programs between bin and sbin from one release to the next.
var debianPackages = map[string]string{
	"runc":                        "/usr/*bin/runc",
	"containernetworking-plugins": "/usr/lib/cni/bridge",
	"nftables":                    "/usr/*bin/nft",
	"iptables":                    "/usr/*bin/iptables",
	"ipset":                       "/usr/*bin/ipset",
	"conntrack":                   "/usr/*bin/conntrack",
	"iproute2":                    "/usr/*bin/ip",
	"socat":                       "/usr/*bin/socat",
	"ethtool":                     "/usr/*bin/ethtool",
	// For test/chaos, which makes a disk slow by it.
	"strace": "/usr/*bin/strace",
}

// missingPackages lists the packages whose file is not found, in alphabetical order.
func missingPackages(found func(pattern string) bool) []string {
	var missing []string
	for name, pattern := range debianPackages {
		if !found(pattern) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

// installPackages installs the Debian packages that are missing, and asks apt for nothing if none is.
func installPackages(ctx context.Context, p *progress) error {
	missing := missingPackages(func(pattern string) bool {
		files, err := filepath.Glob(pattern)
		return err == nil && len(files) > 0
	})
	if len(missing) == 0 {
		return nil
	}
	return p.step("Debian packages", func() error {
		install := append([]string{"apt-get", "install", "-y", "--no-install-recommends"}, missing...)
		for _, args := range [][]string{{"apt-get", "update"}, install} {
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			if output, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s(install %s by hand if this machine is not Debian)",
					strings.Join(args, " "), err, output, strings.Join(missing, " "))
			}
		}
		return nil
	})
}
