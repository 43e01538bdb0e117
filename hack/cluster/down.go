package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// down ends the machine's cluster, also another clone's, and leaves nothing but the built programs.
func down(_ context.Context, l layout, p *progress) error {
	start := time.Now()
	if err := tearDown(l, p); err != nil {
		return err
	}
	p.say("nothing of a cluster is left but %s (%s)", l.dir("bin"), time.Since(start).Round(100*time.Millisecond))
	return nil
}

// tearDown clears the machine, whether a cluster runs, died or never was. All parts are tried, since each may help the
// next run, and all errors are told.
func tearDown(l layout, p *progress) error {
	record, err := readActive()
	if err != nil {
		return err
	}
	clones := []layout{l}
	if record.Root != "" && record.Root != l.root {
		p.say("ending the cluster of another clone, %s", record.Root)
		clones = append(clones, layout{root: record.Root})
	}
	var errs []error
	for _, clone := range clones {
		errs = append(errs, stopClone(clone))
	}
	errs = append(errs, stopContainers())
	for _, clone := range clones {
		errs = append(errs, unmountBelow(clone.dir()))
	}
	errs = append(errs, unmountBelow(machineDir), clearNetwork(), writeSysctls(record.Sysctls))
	if err := errors.Join(errs...); err != nil {
		return err // Files stay: the record of processes and mounts is needed for the next attempt.
	}
	for _, clone := range clones {
		errs = append(errs, clone.clear())
	}
	return errors.Join(append(errs, clearFiles(clones), os.RemoveAll(machineDir))...)
}

// stopClone ends the programs that a clone's launcher started, and what they started in turn from the clone's folder.
func stopClone(l layout) error {
	names, err := recordedNames(l)
	if err != nil {
		return err
	}
	var processes []process
	for _, name := range names {
		if p, ok := recorded(l, name); ok {
			processes = append(processes, p)
		}
	}
	if err := stopAll(processes); err != nil {
		return fmt.Errorf("ending the programs of %s: %w", l.root, err)
	}
	strays, err := programsOf(l)
	if err != nil {
		return err
	}
	return stopAll(strays)
}

// programsOf finds processes whose executable lies in the clone's folder: containerd's shims, which it starts itself,
// and programs whose record was lost with the clone. The executable's whole path is compared, so no other program of
// the same name is meant; kubectl and ctr are the user's.
func programsOf(l layout) ([]process, error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return nil, err
	}
	var found []process
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue // Ended by now, or a kernel thread.
		}
		if !isComponent(l, target) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(link, "/proc/%d/exe", &pid); err != nil {
			return nil, err
		}
		if p, err := identify(pid); err == nil {
			found = append(found, p)
		}
	}
	return found, nil
}

// isComponent tells whether an executable, as /proc shows it, is one of the cluster's programs in this clone.
func isComponent(l layout, executable string) bool {
	executable = strings.TrimSuffix(executable, " (deleted)") // Built again since.
	name := filepath.Base(executable)
	return executable == l.bin(name) && name != "kubectl" && name != "ctr"
}

// clearFiles removes what programs write to fixed places outside of the cluster's folder, if it is the cluster's.
func clearFiles(clones []layout) error {
	for _, pattern := range []string{
		"/var/lib/cni/results/" + podNetwork + "-*",
		"/var/lib/kubelet/device-plugins/kubelet.sock",
		"/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	logs, err := filepath.Glob("/var/log/containers/*")
	if err != nil {
		return err
	}
	for _, link := range logs {
		target, err := os.Readlink(link)
		if err == nil && belongsTo(clones, target) {
			if err := os.Remove(link); err != nil {
				return err
			}
		}
	}
	return removeEmpty("/var/lib/cni/results", "/var/lib/cni", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet",
		"/var/log/containers")
}

func belongsTo(clones []layout, file string) bool {
	for _, clone := range clones {
		if strings.HasPrefix(file, clone.dir()+"/") {
			return true
		}
	}
	return false
}

// removeEmpty removes the folders that have nothing in them. The others are in somebody else's use.
func removeEmpty(dirs ...string) error {
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.Remove(dir); err != nil {
			return err
		}
	}
	return nil
}
