package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// podCgroup is the cgroup in which the kubelet puts all pods, in each hierarchy of cgroup v1 or the one of v2.
const podCgroup = "kubepods"

// stopContainers kills every process of a pod and removes the pods' cgroups.
func stopContainers() error {
	var roots []string
	for _, pattern := range []string{"/sys/fs/cgroup/" + podCgroup, "/sys/fs/cgroup/*/" + podCgroup} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		roots = append(roots, found...)
	}
	var problem error
	empty := waitFor(10*time.Second, func() bool {
		problem = nil
		for _, root := range roots {
			problem = errors.Join(problem, removeCgroup(root))
		}
		return problem == nil
	})
	if !empty {
		return fmt.Errorf("ending containers: %w", problem)
	}
	return nil
}

// removeCgroup kills what is in a cgroup and removes it with all below. It fails while processes are still ending.
func removeCgroup(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if entry != nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Reverse(dirs) // Children come first.
	for _, dir := range dirs {
		procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for field := range strings.FieldsSeq(string(procs)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL) // Ended by itself in between, at worst.
			}
		}
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// unmountBelow unmounts everything below a folder: pods' volumes and containers' file systems.
func unmountBelow(dir string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for _, point := range mountsBelow(string(table), dir) {
		// Lazily, because a file that is still open must not keep the cluster from ending.
		err := syscall.Unmount(point, syscall.MNT_DETACH)
		if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unmounting %s: %w", point, err)
		}
	}
	return nil
}

// mountsBelow lists the mount points below a folder, the latest first, from the text of /proc/self/mountinfo.
func mountsBelow(table, dir string) []string {
	const mountPoint = 4
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) <= mountPoint {
			continue
		}
		if point := unescape.Replace(fields[mountPoint]); strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	slices.Reverse(points)
	return points
}
