package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/altairalabs/omnia-sandboxes/hack/image"
)

const (
	pauseImage = "omnia.local/pause:1"
	pauseTar   = "pause.tar"
)

// build makes every program of the cluster that is not there yet and installs what Debian has to give.
func build(ctx context.Context, l layout, p *progress) error {
	if err := os.MkdirAll(l.dir("bin"), 0o755); err != nil {
		return err
	}
	start := time.Now()
	p.say("building the cluster's programs into %s", l.dir("bin"))
	if err := installPackages(ctx, p); err != nil {
		return err
	}
	for _, t := range tools {
		if upToDate(l, t) {
			continue
		}
		if err := p.step(t.name, func() error { return compile(ctx, l, t) }); err != nil {
			return err
		}
	}
	if err := p.step("our own programs", func() error { return buildOwn(ctx, l) }); err != nil {
		return err
	}
	if err := p.step("modules of the tests", func() error { return fetchModules(ctx, l) }); err != nil {
		return err
	}
	p.say("built in %s", time.Since(start).Round(100*time.Millisecond))
	return nil
}

// fetchModules downloads what tests and checks will compile. While a cluster is up, its firewall drops what goes to the
// addresses that stand for the internet there: a module proxy that has one of them is out of reach then.
func fetchModules(ctx context.Context, l layout) error {
	dirs := []string{l.root}
	for _, module := range []string{"dev", "docs", "promql"} {
		dirs = append(dirs, l.toolModule(module))
	}
	for _, dir := range dirs {
		cmd := exec.CommandContext(ctx, "go", "mod", "download")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("downloading the modules of %s: %w\n%s", dir, err, output)
		}
	}
	return nil
}

func (l layout) toolModule(module string) string {
	return filepath.Join(l.root, "hack", "tools", module)
}

// upToDate tells whether a tool's binary is newer than all that decides its version. Asking the compiler instead would
// take a second or two for each.
func upToDate(l layout, t tool) bool {
	binary, err := os.Stat(l.bin(t.name))
	if err != nil {
		return false
	}
	for _, source := range []string{"go.mod", "go.sum"} {
		info, err := os.Stat(filepath.Join(l.toolModule(t.module), source))
		if err != nil || info.ModTime().After(binary.ModTime()) {
			return false
		}
	}
	return true
}

// compile builds one tool. The compiler gets a lower priority, since the first time takes both cores for minutes.
func compile(ctx context.Context, l layout, t tool) error {
	args := []string{"-n", "10", "go", "build", "-trimpath", "-buildvcs=false", "-o", l.bin(t.name)}
	args = append(append(args, t.args...), t.pkg)
	cmd := exec.CommandContext(ctx, "nice", args...)
	cmd.Dir = l.toolModule(t.module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", t.pkg, cmd.Dir, err, output)
	}
	now := time.Now() // The compiler leaves a binary that has not changed alone, its time as well.
	return os.Chtimes(l.bin(t.name), now, now)
}

// buildOwn builds the volume provisioner and the pause image, which are part of this repository and change with it.
func buildOwn(ctx context.Context, l layout) error {
	if err := image.Compile(ctx, l.root, "./hack/cluster/hostpath", l.bin(hostpathProvisioner)); err != nil {
		return err
	}
	_, err := image.WritePackage(ctx, l.root, "./hack/pause", l.bin(pauseTar), image.Spec{Reference: pauseImage})
	return err
}
