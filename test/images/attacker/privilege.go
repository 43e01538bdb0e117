package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// harmlessSysctl is of the network namespace, so that writing it changes nothing beyond.
	harmlessSysctl = "/proc/sys/net/ipv4/ip_default_ttl"
	self           = "/proc/self/exe"
)

// trySetuid becomes root. The program's file is root's and setuid, so without no_new_privs it has already happened.
func trySetuid(context.Context, []string) (string, error) {
	if err := syscall.Setuid(0); err != nil {
		return "", fmt.Errorf("setuid(0) as %d, effectively %d: %w", os.Getuid(), os.Geteuid(), err)
	}
	return fmt.Sprintf("user %d, effectively %d", os.Getuid(), os.Geteuid()), nil
}

// tryMount mounts a file system of its own over the folder that it is given.
func tryMount(_ context.Context, args []string) (string, error) {
	if err := want(args, "folder"); err != nil {
		return "", err
	}
	if err := unix.Mount("attacker", args[0], "tmpfs", 0, "size=4k"); err != nil {
		return "", fmt.Errorf("mount: %w", err)
	}
	return "mounted", unix.Unmount(args[0], unix.MNT_DETACH)
}

// tryUserNamespace starts a process in a user namespace of its own, in which it would have every capability.
func tryUserNamespace(ctx context.Context, _ []string) (string, error) {
	cmd := exec.CommandContext(ctx, self, "noop")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("clone(CLONE_NEWUSER): %w", err)
	}
	return "a process ran in a user namespace of its own", nil
}

// tryPacketSocket opens a socket that reads and forges whole frames.
func tryPacketSocket(context.Context, []string) (string, error) {
	return openSocket("socket(AF_PACKET, SOCK_RAW)", unix.AF_PACKET, unix.SOCK_RAW, 0)
}

// tryRawSocket opens a socket that forges packets of any protocol.
func tryRawSocket(context.Context, []string) (string, error) {
	return openSocket("socket(AF_INET, SOCK_RAW)", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
}

func openSocket(what string, family, kind, protocol int) (string, error) {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return what, unix.Close(fd)
}

// trySysctl writes a kernel setting, with the value that it has.
func trySysctl(context.Context, []string) (string, error) {
	value, err := os.ReadFile(harmlessSysctl)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnjudged, err)
	}
	return "written", os.WriteFile(harmlessSysctl, value, 0)
}

// tryPtrace takes hold of a process of another program. It lets go by ending, and stops nobody.
func tryPtrace(_ context.Context, args []string) (string, error) {
	if err := want(args, "program"); err != nil {
		return "", err
	}
	runtime.LockOSThread() // The thread is the tracer.
	defer runtime.UnlockOSThread()
	pids, err := processesOf(args[0])
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnjudged, err)
	}
	last := fmt.Errorf("no process of %s is to be seen", args[0])
	for _, pid := range pids {
		if last = unix.PtraceSeize(pid); last == nil {
			return fmt.Sprintf("holds process %d", pid), nil
		}
		last = fmt.Errorf("ptrace of process %d: %w", pid, last)
	}
	return "", last
}

// processesOf are the processes of a program that are to be seen.
func processesOf(program string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range files {
		name, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(name)) != program { // It may have ended meanwhile.
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// held are the fields of /proc/self/status that say what a process may do, and whether a value lets it do more than nothing.
var held = map[string]func(value string) bool{
	"Uid": hasZero, "Gid": hasZero,
	"NoNewPrivs": func(v string) bool { return v == "0" },
	"Seccomp":    func(v string) bool { return v == "0" },
	"CapInh":     notZero, "CapPrm": notZero, "CapEff": notZero, "CapBnd": notZero, "CapAmb": notZero,
}

func hasZero(value string) bool {
	for field := range strings.FieldsSeq(value) {
		if field == "0" {
			return true
		}
	}
	return false
}

func notZero(value string) bool { return strings.Trim(value, "0") != "" }

// tryStatus looks for a privilege in one field of /proc/self/status.
func tryStatus(_ context.Context, args []string) (string, error) {
	if err := want(args, "field"); err != nil {
		return "", err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnjudged, err)
	}
	return privilegeIn(string(status), args[0])
}

func privilegeIn(status, field string) (string, error) {
	privileged, ok := held[field]
	if !ok {
		return "", fmt.Errorf("%w: nothing is known of field %s", errUnjudged, field)
	}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		if name != field {
			continue
		}
		said := field + " " + strings.Join(strings.Fields(value), " ")
		if privileged(strings.TrimSpace(value)) {
			return said, nil
		}
		return "", errors.New(said)
	}
	return "", fmt.Errorf("%w: there is no field %s", errUnjudged, field)
}

// tryNamespace compares the namespace of a kind with the one that the host has.
func tryNamespace(_ context.Context, args []string) (string, error) {
	if err := want(args, "kind", "host's"); err != nil {
		return "", err
	}
	own, err := os.Readlink("/proc/self/ns/" + args[0])
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnjudged, err)
	}
	if own != args[1] {
		return "", fmt.Errorf("its own: %s", own)
	}
	return "the host's: " + own, nil
}
